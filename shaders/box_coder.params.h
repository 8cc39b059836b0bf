/* box_coder: numbers shared by src/layers/box_coder.h and shaders/lib/box_coder.glsl. */
#define PM_CODER_FASTER_RCNN 0
#define PM_CODER_MEAN_STDDEV 1
#define PM_CODER_SQUARE 2
#define PM_CODER_CORNERS 3

#define PM_BOX_EPSILON 1e-8f /* added to sides when encoding */
/* Largest logarithm of a decoded side: 2e17 times the anchor's. Areas of such boxes, and sums of
 * two areas, are finite in float32. */
#define PM_BOX_MOST_LOG 40.0f
