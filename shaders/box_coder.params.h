/* box_coder: numbers shared by src/layers/box_coder.h and shaders/lib/box_coder.glsl. */
#define PM_CODER_FASTER_RCNN 0
#define PM_CODER_MEAN_STDDEV 1
#define PM_CODER_SQUARE 2
#define PM_CODER_CORNERS 3
#define PM_CODER_ROTATED 4

#define PM_BOX_EPSILON 1e-8f /* added to sides when encoding */
/* Largest logarithm of a decoded side: 2e17 times the anchor's. Areas of such boxes, and sums of
 * two areas, are finite in float32. */
#define PM_BOX_MOST_LOG 40.0f

/* A quarter of a turn, the unit of coded angles, as a sum of three floats. The first has 8 bits, so
 * that its product with a number of quarters up to 65536 is exact. */
#define PM_QUARTER_TURN 1.57079637f
#define PM_QUARTER_HIGH 1.5703125f
#define PM_QUARTER_MIDDLE 4.83810902e-4f
#define PM_QUARTER_LOW 1.58932547e-8f
/* A box is a square if its sides differ by at most this part. */
#define PM_BOX_SQUARE 1e-3f
