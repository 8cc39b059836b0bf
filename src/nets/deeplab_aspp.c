/* deeplab_aspp: pyramid pooling. Parallel branches cover the map with different receptive fields:
 * its average over the image (image_pooling), each pixel (aspp0), and 3x3 windows at every rate
 * (aspp1, ...). Their outputs are joined, and a 1x1 convolution reduces them to one map
 * (concat_projection). With squeeze and excite the average is not a branch; it multiplies the
 * result instead. */
#include "nets/deeplab.h"

static const char *name_of(const struct pm_deeplab *d, const char *name)
{
    return pm_arena_printf(d->net->arena, "%s%s", name, d->instance);
}

static struct pm_node *image_level(const struct pm_deeplab *d, struct pm_node *x)
{
    const struct pm_deeplab_options *o = d->o;
    const int stride[2] = { pm_deeplab_two(o->aspp_pooling_stride, 0),
                            pm_deeplab_two(o->aspp_pooling_stride, 1) };
    const char *name = name_of(d, "image_pooling");
    int size[2];
    struct pm_node *y = pm_deeplab_average(d, pm_arena_printf(d->net->arena, "%s/average", name), x,
                                           (const int[]){ 1, 1 }, stride);

    if (o->aspp_squeeze_excite) {
        y = pm_net_add(d->net, name, y, "conv2d filters=%d kernel=1", o->aspp_filters);
        y = pm_net_add(d->net, pm_arena_printf(d->net->arena, "%s/gate", name), y,
                       o->aspp_se_qsigmoid ? "hard_sigmoid" : "sigmoid");
    } else {
        y = pm_nets_conv_bn(d->net, &d->norm, name, y, "activation=relu",
                            "conv2d filters=%d kernel=1", o->aspp_filters);
    }
    pm_deeplab_map(d, o->nets.output_stride, size);
    return pm_deeplab_resize(d, pm_arena_printf(d->net->arena, "%s/resized", name), y, size);
}

static struct pm_node *at_rate(const struct pm_deeplab *d, int branch, struct pm_node *x)
{
    const char *name = pm_arena_printf(d->net->arena, "aspp%d%s", branch + 1, d->instance);
    const int rate = d->o->aspp_rates.v[branch];

    return d->o->aspp_separable ? pm_deeplab_separable(d, name, x, d->o->aspp_filters, 3, rate)
                                : pm_deeplab_conv(d, name, x, d->o->aspp_filters, 3, rate);
}

struct pm_node *pm_deeplab_aspp(const struct pm_deeplab *d, struct pm_node *x)
{
    const struct pm_deeplab_options *o = d->o;
    struct pm_node *branches[PM_MAX_JOINED], *level = NULL;
    int count = 0;

    if (!o->aspp_batch_norm)
        return x;
    if (o->dense_prediction_cell)
        return pm_deeplab_cell(d, x);
    if (o->aspp_image_level)
        level = image_level(d, x);
    if (level && !o->aspp_squeeze_excite)
        branches[count++] = level;
    branches[count++] = pm_deeplab_conv(d, name_of(d, "aspp0"), x, o->aspp_filters, 1, 1);
    for (int i = 0; i < o->aspp_rates.count; i++)
        branches[count++] = at_rate(d, i, x);
    x = branches[0];
    if (count > 1)
        x = pm_net_add_many(d->net, name_of(d, "aspp_joined"), branches, count, "concat");
    if (o->aspp_concat_projection) {
        x = pm_deeplab_conv(d, name_of(d, "concat_projection"), x, o->aspp_filters, 1, 1);
        x = pm_net_add(d->net, name_of(d, "concat_projection_dropout"), x, "dropout keep=%.9g",
                       (double)o->nets.keep_prob);
    }
    if (level && o->aspp_squeeze_excite)
        x = pm_net_add_many(d->net, name_of(d, "aspp_excited"), (struct pm_node *[]){ x, level }, 2,
                            "multiply");
    return x;
}
