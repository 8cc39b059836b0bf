/* deeplab_decoder: joins finer maps of the backbone with the output of the pyramid pooling. Each
 * stage projects one of these maps (feature_projection0) and resizes both to the size of the
 * stage's stride. Then it joins them and applies two 3x3 convolutions. With sum merge it applies
 * one convolution to the coarser map and adds the projection. If the result is the logits, layers
 * have biases instead of batch norm and activations. Nets for instance segmentation have one 5x5
 * convolution per stage, and narrower projections. */
#include "nets/deeplab.h"

enum { PROJECTED = 48 };

/* Returns the backbone's map at a stride. Returns NULL and sets the net's error if there is
 * none. */
static struct pm_node *low_level(const struct pm_deeplab *d, int stride)
{
    const int index = stride == 4 ? 0 : stride == 8 ? 1 : stride == 16 ? 2 : -1;
    const char *name = index < 0 ? NULL : d->backbone->low[index];
    struct pm_node *x = name ? pm_net_find(d->net, name) : NULL, *clipped = NULL;

    if (name && d->o->bounded_activation)
        clipped = pm_net_find(d->net, pm_arena_printf(d->net->arena, "%s/clip", name));
    if (clipped)
        return clipped;
    if (!x && !d->net->error)
        d->net->error = pm_fail(PM_ECONFIG,
                                "model.decoder_strides: deeplab_%s has no map with stride %d for a "
                                "decoder; allowed are 4, 8 and 16, or [] for no decoder",
                                d->backbone->name, stride);
    return x;
}

/* Returns SCOPE/what, followed by the stage's number if it is not the first stage. */
static const char *name_of(const struct pm_deeplab *d, const char *what, int stage)
{
    const char *number = stage ? pm_arena_printf(d->net->arena, "_%d", stage) : "";

    return pm_arena_printf(d->net->arena, "decoder%s/%s%s", d->instance, what, number);
}

/* Returns the width of a stage's projection. In nets for instance segmentation the coarsest stage
 * has the most channels. */
static int projected(const struct pm_deeplab *d, int stage)
{
    const struct pm_deeplab_options *o = d->o;

    if (o->instance)
        return (d->instance[0] ? 16 : 32) << (o->decoder_strides.count - 1 - stage);
    return o->decoder_sum_merge ? o->decoder_filters : PROJECTED;
}

/* Builds a convolution of the decoder: with batch norm, or with a bias only. */
static struct pm_node *conv(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                            int filters, int kernel)
{
    if (d->o->decoder_is_logits)
        return pm_net_add(d->net, name, x, "conv2d filters=%d kernel=%d", filters, kernel);
    return pm_deeplab_conv(d, name, x, filters, kernel, 1);
}

static bool separable(const struct pm_deeplab *d)
{
    return d->o->decoder_separable && !d->o->decoder_is_logits;
}

/* Builds two 3x3 convolutions. Non-separable ones are named like a repeated layer's. */
static struct pm_node *refine(const struct pm_deeplab *d, struct pm_node *x, int stage)
{
    const char *number = stage ? pm_arena_printf(d->net->arena, "_%d", stage) : "";
    const int filters = d->o->decoder_filters;

    for (int i = 0; i < 2; i++) {
        const char *name = pm_arena_printf(d->net->arena, "decoder_conv%d", i);

        if (separable(d))
            x = pm_deeplab_separable(d, name_of(d, name, stage), x, filters, 3, 1);
        else
            x = conv(d, pm_arena_printf(d->net->arena, "%s/decoder_conv0%s_%d",
                                        name_of(d, "decoder_conv0", stage), number, i + 1), x,
                     filters, 3);
    }
    return x;
}

static struct pm_node *joined(const struct pm_deeplab *d, struct pm_node *both[2], int stage)
{
    struct pm_node *x = pm_net_add_many(d->net, name_of(d, "joined", stage), both, 2, "concat");

    if (d->o->instance)
        return pm_deeplab_output_conv(d, name_of(d, "decoder_conv0", stage), x,
                                      d->instance[0] ? d->o->decoder_filters_instance.v[0]
                                                     : d->o->decoder_filters);
    return refine(d, x, stage);
}

static struct pm_node *summed(const struct pm_deeplab *d, struct pm_node *both[2], int stage)
{
    const int filters = d->o->decoder_filters;

    if (separable(d))
        both[0] = pm_deeplab_separable(d, name_of(d, "decoder_split_sep_conv0", stage), both[0],
                                       filters, 3, 1);
    else
        both[0] = conv(d, name_of(d, "decoder_conv0", stage), both[0], filters,
                       d->o->decoder_is_logits ? 1 : 3);
    return pm_net_add_many(d->net, name_of(d, "sum", stage), both, 2, "add");
}

static struct pm_node *stage_of(const struct pm_deeplab *d, struct pm_node *x, int stage)
{
    const int stride = d->o->decoder_strides.v[stage];
    struct pm_node *low = low_level(d, stride), *both[2];
    int size[2];

    if (!low)
        return x;
    pm_deeplab_map(d, stride, size);
    low = conv(d, name_of(d, "feature_projection0", stage), low, projected(d, stage), 1);
    both[0] = pm_deeplab_resize(d, name_of(d, "resized", stage), x, size);
    both[1] = pm_deeplab_resize(d, name_of(d, "projection_resized", stage), low, size);
    return d->o->decoder_sum_merge ? summed(d, both, stage) : joined(d, both, stage);
}

struct pm_node *pm_deeplab_decoder(const struct pm_deeplab *d, struct pm_node *x)
{
    for (int i = 0; i < d->o->decoder_strides.count; i++)
        x = stage_of(d, x, i);
    return x;
}

struct pm_node *pm_deeplab_output_conv(const struct pm_deeplab *d, const char *name,
                                       struct pm_node *x, int filters)
{
    return d->o->decoder_separable ? pm_deeplab_separable(d, name, x, filters, 5, 1)
                                   : pm_deeplab_conv(d, name, x, filters, 5, 1);
}
