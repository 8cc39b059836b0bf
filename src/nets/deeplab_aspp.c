/* deeplab_aspp: pyramid pooling. Branches side by side look at the map with different reach: its
 * average over the picture (image_pooling), each pixel (aspp0), and 3x3 windows at every rate (aspp1,
 * ...); joined, a 1x1 convolution makes one map of them (concat_projection). */
#include "nets/deeplab.h"

/* The average's window follows from the size of the images and not from the map's. */
static struct pm_node *average(const struct pm_deeplab *d, struct pm_node *x)
{
    const float scale = 1 / (float)d->o->nets.output_stride;
    const int *dim = x->out_shape.dim;
    const int h = pm_deeplab_size(d->size[0], scale), w = pm_deeplab_size(d->size[1], scale);

    if (h == dim[1] && w == dim[2])
        return pm_net_add(d->net, "image_pooling/average", x, "global_pool");
    return pm_net_add(d->net, "image_pooling/average", x,
                      "avg_pool kernel=[%d,%d] stride=1 padding=valid", h, w);
}

static struct pm_node *image_level(const struct pm_deeplab *d, struct pm_node *x)
{
    const float scale = 1 / (float)d->o->nets.output_stride;
    const int size[2] = { pm_deeplab_size(d->size[0], scale), pm_deeplab_size(d->size[1], scale) };
    struct pm_node *y = pm_nets_conv_bn(d->net, &d->norm, "image_pooling", average(d, x),
                                        "activation=relu", "conv2d filters=%d kernel=1",
                                        d->o->aspp_filters);

    return pm_deeplab_resize(d, "image_pooling/resized", y, size);
}

struct pm_node *pm_deeplab_aspp(const struct pm_deeplab *d, struct pm_node *x)
{
    const struct pm_deeplab_options *o = d->o;
    struct pm_node *branches[PM_MAX_INPUTS];
    int count = 0;

    if (o->aspp_image_level)
        branches[count++] = image_level(d, x);
    branches[count++] = pm_deeplab_conv(d, "aspp0", x, o->aspp_filters, 1, 1);
    for (int i = 0; i < o->aspp_rates.count; i++) {
        const char *name = pm_arena_printf(d->net->arena, "aspp%d", i + 1);
        const int rate = o->aspp_rates.v[i];

        branches[count++] = o->aspp_separable
                                ? pm_deeplab_separable(d, name, x, o->aspp_filters, 3, rate)
                                : pm_deeplab_conv(d, name, x, o->aspp_filters, 3, rate);
    }
    x = count == 1 ? branches[0]
                   : pm_net_add_many(d->net, "aspp/joined", branches, count, "concat");
    if (!o->aspp_concat_projection)
        return x;
    x = pm_deeplab_conv(d, "concat_projection", x, o->aspp_filters, 1, 1);
    return pm_net_add(d->net, "concat_projection_dropout", x, "dropout keep=%.9g",
                      (double)o->nets.keep_prob);
}
