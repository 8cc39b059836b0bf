/* deeplab: segmentation nets of a backbone, pyramid pooling, a decoder and logits, one per pixel of a
 * map that is smaller than the picture by output_stride or by the decoder's last stride. Sizes on the
 * way follow the originals' rule, (size - 1) / stride + 1, so that corners of maps and pictures of
 * k stride + 1 pixels lie upon each other. Any size works. */
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

    x = pm_nets_conv_bn(d->net, &d->norm, pm_arena_printf(a, "%s_depthwise", name), x, activation(d),
                        "depthwise_conv2d kernel=%d dilation=%d regularize=false "
                        "weights_init=truncated(0.33)", kernel, rate);
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

static struct pm_node *logits(const struct pm_deeplab *d, struct pm_node *x, int num_classes)
{
    return pm_net_add(d->net, "logits/semantic", x,
                      "conv2d filters=%d kernel=1 bias=true weights_init=truncated(0.01)",
                      num_classes);
}

/* Backbones of classifiers have strides that a decoder's sizes do not follow. */
static bool stride_fits(struct pm_net *net, int stride, const struct pm_backbone *b)
{
    if (!net->error && (stride < b->min_stride || stride > b->max_stride || stride & (stride - 1)))
        net->error = pm_fail(PM_ECONFIG, "model.output_stride: %d is none that deeplab_%s has: %s%s"
                             "16 or 32", stride, b->name, b->min_stride < 8 ? "4, " : "",
                             b->min_stride < 16 ? "8, " : "");
    return !net->error;
}

void pm_deeplab_build(struct pm_net *net, struct pm_node *images, int num_classes,
                      const struct pm_deeplab_options *o, const struct pm_backbone *b,
                      struct pm_heads *heads)
{
    struct pm_deeplab d = { net, o, b, o->nets,
                            { images->out_shape.dim[1], images->out_shape.dim[2] }, "decoder" };
    struct pm_node *x;

    d.norm.batch_norm_decay = o->head_batch_norm_decay;
    d.norm.batch_norm_epsilon = 1e-5f;
    pm_nets_begin(net, &o->nets);
    if (!stride_fits(net, o->nets.output_stride, b))
        return;
    x = b->build(net, images, o);
    if (net->error)
        return;
    x = pm_deeplab_aspp(&d, x);
    if (o->decoder_strides.count)
        x = pm_deeplab_decoder(&d, x);
    heads->logits = logits(&d, x, num_classes);
}
