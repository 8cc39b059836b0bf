/* second_masks: the head of Mask R-CNN that predicts an object's pixels, from the features of its
 * region. */
#include "nets/second_stage.h"

#include <math.h>

/* The API's depth: the power of 2 nearest to the weighted geometric mean of the numbers of channels
 * and of classes. */
static int depth_of(const struct pm_second_predictor *p, int channels, int classes)
{
    if (p->mask_prediction_conv_depth > 0)
        return p->mask_prediction_conv_depth;
    return (int)exp2(nearbyint((2 * log2(channels) + 3 * log2(classes)) / 5));
}

/* Features are enlarged by a whole factor. Returns it, at least 1. */
static int factor_of(const struct pm_second_stage *s, const char *axis, int wanted, int features)
{
    struct pm_net *net = s->ssd.net;

    if (wanted < features && !net->error)
        net->error = pm_fail(PM_ECONFIG, "model.second_stage_box_predictor.mask_%s: %d, but with "
                             "convolve_then_upsample_masks the features of a region have %d "
                             "already: set it to a multiple of %d", axis, wanted, features,
                             features);
    return wanted < features ? 1 : wanted / features;
}

static struct pm_node *resized(const struct pm_second_stage *s, struct pm_node *x, int height,
                               int width, const char *how)
{
    return pm_net_add(s->ssd.net, PM_SECOND_SCOPE "resized", x, "resize size=[%d,%d] %s", height,
                      width, how);
}

/* Builds 3x3 convolution number `index`; the API names them Conv, Conv_1, ... */
static struct pm_node *convolved(const struct pm_second_stage *s,
                                 const struct pm_second_predictor *p, int index, int filters,
                                 bool last, struct pm_node *x)
{
    struct pm_arena *a = s->ssd.net->arena;
    const struct pm_unit u = {
        .name = index == 0 ? PM_SECOND_SCOPE "Conv"
                           : pm_arena_printf(a, PM_SECOND_SCOPE "Conv_%d", index),
        .filters = filters, .kernel = 3, .plain = last,
    };

    return pm_unit_build(&s->ssd, &p->conv, &u, x);
}

void pm_second_stage_masks(struct pm_second_stage *s, const struct pm_second_predictor *p,
                           struct pm_node *x)
{
    const int masks = p->masks_are_class_agnostic ? 1 : s->classes, *dim = x->out_shape.dim;
    const int depth = depth_of(p, dim[3], s->classes);
    int index = 0;

    if (!p->convolve_then_upsample_masks)
        x = resized(s, x, p->mask_height, p->mask_width,
                    "method=bilinear coordinates=align_corners");
    for (; index < p->mask_prediction_num_conv_layers - 1; index++)
        x = convolved(s, p, index, depth, false, x);
    if (p->convolve_then_upsample_masks) {
        x = resized(s, x, factor_of(s, "height", p->mask_height, dim[1]) * dim[1],
                    factor_of(s, "width", p->mask_width, dim[2]) * dim[2],
                    "method=nearest coordinates=asymmetric rounding=floor");
        x = convolved(s, p, index++, depth, false, x);
    }
    pm_heads_add(s->ssd.net, s->heads, "box_masks", convolved(s, p, index, masks, true, x));
}
