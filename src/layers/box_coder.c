/* box_coder: reads the options of a box coder. The coders' defaults are those of TensorFlow's
 * Object Detection API; those of corners are keras-retinanet's, those of rotated
 * RBox-CNN's. */
#include "layers/box_coder.h"

static const struct {
    const char *name;
    int scales, size;
    float scale[5];
} coders[] = {
    [PM_CODER_FASTER_RCNN] = { "faster_rcnn", 4, 4, { 10, 10, 5, 5 } },
    [PM_CODER_MEAN_STDDEV] = { "mean_stddev", 1, 4, { 0.01f, 1, 1, 1 } },
    [PM_CODER_SQUARE] = { "square", 3, 3, { 10, 10, 5, 1 } },
    [PM_CODER_CORNERS] = { "corners", 1, 4, { 0.2f, 1, 1, 1 } },
    [PM_CODER_ROTATED] = { "rotated", 5, 5, { 10, 10, 5, 5, 5 } },
};

int pm_box_coder_make(int kind, struct pm_floats scales, const char *where,
                      struct pm_box_coder *out)
{
    if (scales.count && scales.count != coders[kind].scales)
        return pm_fail(PM_ECONFIG, "%s: coder_scales has %d numbers, but the coder %s has %d",
                       where, scales.count, coders[kind].name, coders[kind].scales);
    out->kind = kind;
    for (int i = 0; i < 5; i++)
        out->scales[i] = i < scales.count ? scales.v[i] : coders[kind].scale[i];
    return PM_OK;
}

int pm_box_coder_size(const struct pm_box_coder *coder)
{
    return coders[coder->kind].size;
}
