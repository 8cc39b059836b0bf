/* deeplab: segmentation nets made of a backbone, pyramid pooling, a decoder and logits. There is
 * one logit per pixel of a map. The map is smaller than the image by output_stride, or by the
 * decoder's last stride. Sizes of maps follow the originals' rule, (size - 1) / stride + 1. So the
 * corners of maps and of images of k stride + 1 pixels coincide. Any size works. */
#include "nets/deeplab.h"

/* ---- logits ------------------------------------------------------------------------------ */

/* Builds logits/NAME: a 1x1 convolution. Without pyramid pooling it builds one convolution per rate
 * and adds them; the second is logits/NAME_1. */
static struct pm_node *logits(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                              int channels)
{
    const struct pm_ints rates = d->o->aspp_rates;
    const int count = d->o->aspp_batch_norm || !rates.count ? 1 : rates.count;
    struct pm_node *made[PM_MAX_JOINED];
    struct pm_arena *a = d->net->arena;

    name = pm_arena_printf(a, "logits/%s", name);
    for (int i = 0; i < count; i++)
        made[i] = pm_net_add(d->net, i ? pm_arena_printf(a, "%s_%d", name, i) : name, x,
                             "conv2d filters=%d kernel=%d dilation=%d weights_init=truncated(0.01)",
                             channels, d->o->logits_kernel_size,
                             d->o->aspp_batch_norm || !rates.count ? 1 : rates.v[i]);
    if (count == 1)
        return made[0];
    return pm_net_add_many(d->net, pm_arena_printf(a, "%s_sum", name), made, count, "add");
}

/* Builds an output of a net for instance segmentation. */
static struct pm_node *far_logits(const struct pm_deeplab *d, const char *name, struct pm_node *x,
                                  int filters, int channels)
{
    const char *conv = pm_arena_printf(d->net->arena, "decoder%s/%s_conv", d->instance, name);

    return logits(d, name, pm_deeplab_output_conv(d, conv, x, filters), channels);
}

/* ---- scales ------------------------------------------------------------------------------ */

/* The outputs for one scale of the images. */
struct outputs {
    struct pm_node *semantic, *center, *offset, *edge;
};

static struct pm_node *refined(const struct pm_deeplab *d, struct pm_node *x)
{
    x = pm_deeplab_aspp(d, x);
    return d->o->decoder_strides.count ? pm_deeplab_decoder(d, x) : x;
}

static struct outputs outputs_of(const struct pm_deeplab *d, struct pm_node *images)
{
    const struct pm_deeplab_options *o = d->o;
    struct outputs out = { 0 };
    struct pm_node *map = d->backbone->build(d->net, images, o), *x;

    if (d->net->error)
        return out;
    x = refined(d, map);
    if (o->instance)
        out.semantic = far_logits(d, "semantic", x, o->decoder_filters, d->classes);
    else
        out.semantic = o->decoder_is_logits ? x : logits(d, "semantic", x, d->classes);
    if (o->edge_classes)
        out.edge = logits(d, "edge", x, o->edge_classes);
    if (o->instance) {
        struct pm_deeplab second = *d;
        const int filters = o->decoder_filters_instance.v[1];

        second.instance = "_instance";
        x = refined(&second, map);
        out.center = far_logits(&second, "center", x, filters, 1);
        out.offset = far_logits(&second, "offset", x, filters, 2);
    }
    return out;
}

/* Returns the scales of the images. A scale given by the evaluation replaces the image pyramid. */
static struct pm_floats scales_of(const struct pm_deeplab *d)
{
    static const float whole[] = { 1 };
    const float *scale = &d->net->eval_scale.scale;

    if (*scale > 0)
        return (struct pm_floats){ 1, scale };
    return d->o->image_pyramid.count ? d->o->image_pyramid : (struct pm_floats){ 1, whole };
}

/* Computes the final map size: the largest scale's map at the finest stride. The largest scale
 * counts as at least 1. */
static void final_size(const struct pm_deeplab *d, const struct pm_floats scales, int size[2])
{
    const struct pm_ints strides = d->o->decoder_strides;
    const float stride = (float)(strides.count ? strides.v[strides.count - 1]
                                               : d->o->nets.output_stride);
    float largest = 1;

    for (int i = 0; i < scales.count; i++)
        if (scales.v[i] > largest)
            largest = scales.v[i];
    for (int i = 0; i < 2; i++)
        size[i] = pm_deeplab_size(d->size[i], largest / stride);
}

/* Builds the outputs for images of this size at d->scale. */
static struct outputs outputs_at(const struct pm_deeplab *d, struct pm_node *images,
                                 const int size[2])
{
    struct pm_deeplab scaled = *d;
    struct outputs out;

    if (d->scale != 1) {
        for (int i = 0; i < 2; i++)
            scaled.size[i] = pm_deeplab_size(d->size[i], d->scale);
        images = pm_deeplab_resize(d, "scaled_images", images, scaled.size);
    }
    out = outputs_of(&scaled, images);
    if (d->net->error)
        return out;
    out.semantic = pm_deeplab_resize(d, "logits/semantic_resized", out.semantic, size);
    if (out.edge)
        out.edge = pm_deeplab_resize(d, "logits/edge_resized", out.edge, size);
    if (d->o->instance) {
        out.center = pm_deeplab_resize(d, "logits/center_resized", out.center, size);
        out.offset = pm_deeplab_resize(d, "logits/offset_resized", out.offset, size);
    }
    return out;
}

static struct pm_node *merge(const struct pm_deeplab *d, const char *name, struct pm_node **xs,
                             int count)
{
    struct pm_node *x = xs[0];
    struct pm_arena *a = d->net->arena;

    if (count == 1)
        return x;
    if (d->o->merge_method) {
        x = pm_net_add_many(d->net, pm_arena_printf(a, "%s_sum", name), xs, count, "add");
        return pm_net_add(d->net, name, x, "affine scale=%.9g", 1.0 / count);
    }
    for (int i = 1; i < count; i++)
        x = pm_net_add_many(d->net, i + 1 < count ? pm_arena_printf(a, "%s_%d", name, i) : name,
                            (struct pm_node *[]){ x, xs[i] }, 2, "maximum");
    return x;
}

/* Builds all scales. Later scales are passes that share the first scale's variables. */
static void build_scales(struct pm_deeplab *d, struct pm_node *images, struct pm_heads *heads)
{
    const struct pm_floats scales = scales_of(d);
    const int count = scales.count;
    const char *outer = d->net->pass;
    struct pm_node *semantic[PM_MAX_JOINED], *edges[PM_MAX_JOINED]; /* merge() joins them */
    struct outputs out = { 0 };
    int size[2];

    final_size(d, scales, size);
    for (int i = 0; i < count && !d->net->error; i++) {
        d->scale = scales.v[i];
        if (i)
            d->net->pass = pm_arena_printf(d->net->arena, "%s%sscale_%.2f", outer ? outer : "",
                                           outer ? "/" : "", (double)d->scale);
        out = outputs_at(d, images, size);
        semantic[i] = out.semantic;
        edges[i] = out.edge;
    }
    d->net->pass = outer;
    if (d->net->error)
        return;
    pm_heads_add(d->net, heads, "logits", merge(d, "merged_logits", semantic, count));
    out.edge = out.edge ? merge(d, "merged_edges", edges, count) : NULL;
    pm_heads_add(d->net, heads, "center", out.center);
    pm_heads_add(d->net, heads, "offset", out.offset);
    pm_heads_add(d->net, heads, "edge", out.edge);
    for (int i = 0; i < count && count > 1; i++)
        pm_heads_add_loss_only(d->net, heads, "scale_logits", semantic[i], PM_HEAD_SCALE, 1);
}

void pm_deeplab_build(struct pm_net *net, struct pm_node *images, int num_classes,
                      const struct pm_deeplab_options *o, const struct pm_backbone *b,
                      struct pm_heads *heads)
{
    struct pm_deeplab d = {
        .net = net, .o = o, .backbone = b, .norm = o->nets, .classes = num_classes, .scale = 1,
        .size = { images->out_shape.dim[1], images->out_shape.dim[2] }, .instance = "",
    };

    if (net->eval_scale.scale > 0) /* the images are already scaled */
        d.size[0] = net->eval_scale.height, d.size[1] = net->eval_scale.width;
    d.norm.batch_norm_decay = o->head_batch_norm_decay;
    d.norm.batch_norm_epsilon = 1e-5f;
    pm_nets_begin(net, &o->nets);
    if (pm_deeplab_check(net, num_classes, o, b))
        build_scales(&d, images, heads);
}
