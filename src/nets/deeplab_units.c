/* deeplab_units: units shared by pyramid pooling, searched cell, decoder and logits: convolutions
 * with batch norm, resizing with aligned corners, and averages over windows. */
#include "nets/deeplab.h"

int pm_deeplab_size(int size, float scale)
{
    return (int)(((float)size - 1) * scale + 1);
}

static const char *activation(const struct pm_deeplab *d)
{
    return d->o->bounded_activation ? "activation=relu6" : "activation=relu";
}

struct pm_node *pm_deeplab_conv(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                                int filters, int kernel, int rate)
{
    return pm_nets_conv_bn(d->net, &d->norm, name, x, activation(d),
                           "conv2d filters=%d kernel=%d dilation=%d", filters, kernel, rate);
}

struct pm_node *pm_deeplab_separable(const struct pm_deeplab *d, const char *name,
                                     struct pm_node *x, int filters, int kernel, int rate)
{
    struct pm_arena *a = d->net->arena;

    x = pm_nets_conv_bn(d->net, &d->norm, pm_arena_printf(a, "%s_depthwise", name), x,
                        activation(d),
                        "depthwise_conv2d kernel=%d dilation=%d regularize=false "
                        "weights_init=truncated(0.33)",
                        kernel, rate);
    return pm_nets_conv_bn(d->net, &d->norm, pm_arena_printf(a, "%s_pointwise", name), x,
                           activation(d), "conv2d filters=%d kernel=1 weights_init=truncated(0.06)",
                           filters);
}

struct pm_node *pm_deeplab_resize(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                                  const int size[2])
{
    const int *dim = x->out_shape.dim;

    if (dim[1] == size[0] && dim[2] == size[1])
        return x;
    return pm_net_add(d->net, name, x, "resize size=[%d,%d] coordinates=align_corners", size[0],
                      size[1]);
}

void pm_deeplab_map(const struct pm_deeplab *d, int stride, int size[2])
{
    for (int i = 0; i < 2; i++)
        size[i] = pm_deeplab_size(d->size[i], 1 / (float)stride);
}

int pm_deeplab_two(struct pm_ints v, int axis)
{
    return v.v[axis < v.count ? axis : 0];
}

/* Returns the image size that windows of averages are computed from. Windows do not follow the size
 * of the map. */
static int pooling_crop(const struct pm_deeplab *d, int axis)
{
    const struct pm_ints crop = d->o->aspp_pooling_crop;

    if (!crop.count)
        return d->size[axis];
    return d->scale == 1 ? pm_deeplab_two(crop, axis)
                         : pm_deeplab_size(pm_deeplab_two(crop, axis), d->scale);
}

struct pm_node *pm_deeplab_average(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                                   const int grid[2], const int stride[2])
{
    const int *dim = x->out_shape.dim;
    int window[2];

    for (int i = 0; i < 2; i++) {
        window[i] = pm_deeplab_size(pooling_crop(d, i),
                                    1 / (float)(d->o->nets.output_stride * grid[i]));
        if (window[i] > dim[1 + i] && !d->net->error)
            d->net->error =
                pm_fail(PM_ECONFIG,
                        "model.aspp_pooling_crop: %s averages windows of %d along an axis of %d: "
                        "the pictures, %d pixels, must be at least as large as the crop, %d",
                        name, window[i], dim[1 + i], d->size[i], pooling_crop(d, i));
    }
    if (d->net->error)
        return x;
    if (window[0] == dim[1] && window[1] == dim[2])
        return pm_net_add(d->net, name, x, "global_pool");
    return pm_net_add(d->net, name, x, "avg_pool kernel=[%d,%d] stride=[%d,%d] padding=valid",
                      window[0], window[1], stride[0], stride[1]);
}
