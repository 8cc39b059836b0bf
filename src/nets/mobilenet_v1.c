/* mobilenet_v1: a 3x3 convolution and 13 pairs of a depthwise 3x3 and a pointwise 1x1 convolution,
 * each with batch norm and relu6. Widths are multiplied by `multiplier`, cut to an integer, and are
 * at least 8. Depthwise weights have no weight decay.
 *
 * The head averages over 7x7 pixels, or all when there are fewer; larger maps (images above 256
 * pixels) need global_pool. */
#include "nets/nets.h"

struct mobilenet_v1_cfg {
    double multiplier;
    float keep_prob;
    bool global_pool;
    double batch_norm_decay; /* double: 1 - decay is what counts */
};

#define OPTS(factor)                                                                               \
    {                                                                                              \
        PM_DOUBLE(mobilenet_v1_cfg, multiplier, factor, 0.01, 4, "factor of every layer's width"), \
        PM_FLOAT(mobilenet_v1_cfg, keep_prob, 0.999, 0.01, 1,                                      \
                 "share of the features that dropout keeps"),                                      \
        PM_BOOL(mobilenet_v1_cfg, global_pool, false,                                              \
                "average the whole map at the end, so that images may be of any size"),            \
        PM_DOUBLE(mobilenet_v1_cfg, batch_norm_decay, 0.9997, 0, 1,                                \
                 "decay of batch norm's moving averages; lower for runs of few steps"),            \
        { 0 },                                                                                     \
    }

/* The pairs: width of the pointwise convolution, stride of the depthwise one. */
static const struct { int width, stride; } pairs[] = {
    { 64, 1 },  { 128, 2 }, { 128, 1 }, { 256, 2 }, { 256, 1 },  { 512, 2 },  { 512, 1 },
    { 512, 1 }, { 512, 1 }, { 512, 1 }, { 512, 1 }, { 1024, 2 }, { 1024, 1 },
};

#define WEIGHTS "bias=false weights_init=truncated(0.09) "

static int depth(const struct mobilenet_v1_cfg *cfg, int width)
{
    const int scaled = (int)(width * cfg->multiplier);
    return scaled < 8 ? 8 : scaled;
}

static struct pm_node *batch_norm(struct pm_net *net, const struct mobilenet_v1_cfg *cfg,
                                  const char *conv, struct pm_node *x)
{
    return pm_net_add(net, pm_arena_printf(net->arena, "%s/BatchNorm", conv), x,
                      "batch_norm decay=%.17g epsilon=0.001 activation=relu6",
                      cfg->batch_norm_decay);
}

static struct pm_node *conv_bn(struct pm_net *net, const struct mobilenet_v1_cfg *cfg,
                               const char *name, struct pm_node *x, int filters, int kernel,
                               int stride)
{
    x = pm_net_add(net, name, x, "conv2d filters=%d kernel=%d stride=%d " WEIGHTS, filters, kernel,
                   stride);
    return batch_norm(net, cfg, name, x);
}

static struct pm_node *depthwise_bn(struct pm_net *net, const struct mobilenet_v1_cfg *cfg,
                                    const char *name, struct pm_node *x, int stride)
{
    x = pm_net_add(net, name, x, "depthwise_conv2d kernel=3 stride=%d regularize=false " WEIGHTS,
                   stride);
    return batch_norm(net, cfg, name, x);
}

static struct pm_node *average(struct pm_net *net, struct pm_node *x, bool global)
{
    const int *dim = x->out_shape.dim;
    const int kernel_h = dim[1] < 7 ? dim[1] : 7, kernel_w = dim[2] < 7 ? dim[2] : 7;

    if (global)
        return pm_net_add(net, "MobilenetV1/global_pool", x, "global_pool");
    if (!net->error && (dim[1] > 8 || dim[2] > 8))
        net->error = pm_fail(PM_ECONFIG, "model mobilenet_v1: the last map is %dx%d, more than its "
                             "7x7 average takes (images up to 256x256): set model.global_pool to "
                             "true or a smaller input size", dim[1], dim[2]);
    return pm_net_add(net, "MobilenetV1/AvgPool_1a", x,
                      "avg_pool kernel=[%d,%d] stride=2 padding=valid", kernel_h, kernel_w);
}

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *config,
                  struct pm_heads *heads)
{
    const struct mobilenet_v1_cfg *cfg = config;
    struct pm_arena *a = net->arena;
    struct pm_node *x = conv_bn(net, cfg, "MobilenetV1/Conv2d_0", images, depth(cfg, 32), 3, 2);

    for (int i = 0; i < (int)PM_COUNT(pairs); i++) {
        x = depthwise_bn(net, cfg, pm_arena_printf(a, "MobilenetV1/Conv2d_%d_depthwise", i + 1),
                         x, pairs[i].stride);
        x = conv_bn(net, cfg, pm_arena_printf(a, "MobilenetV1/Conv2d_%d_pointwise", i + 1), x,
                    depth(cfg, pairs[i].width), 1, 1);
    }
    x = average(net, x, cfg->global_pool);
    x = pm_net_add(net, "MobilenetV1/Dropout_1b", x, "dropout keep=%.9g", (double)cfg->keep_prob);
    x = pm_net_add(net, "MobilenetV1/Logits/Conv2d_1c_1x1", x, "conv2d filters=%d kernel=1 "
                   "bias=true weights_init=truncated(0.09)", num_classes);
    heads->logits = pm_net_add(net, "MobilenetV1/Logits/SpatialSqueeze", x, "flatten");
}

#define MOBILENET(suffix, factor)                                                                  \
    static const struct pm_opt opts##suffix[] = OPTS(factor);                                      \
    const struct pm_net_row pm_net_row_mobilenet_v1##suffix = {                                    \
        .name = "mobilenet_v1" #suffix,                                                            \
        .help = "depthwise separable convolutions, width x " #factor,                              \
        .opts = opts##suffix, .cfg_size = sizeof(struct mobilenet_v1_cfg),                         \
        .default_size = 224, .default_channels = 3, .preprocessing = "inception",                  \
        .weight_decay = 4e-5f, .build = build,                                                     \
    }

MOBILENET(, 1.0);
MOBILENET(_075, 0.75);
MOBILENET(_050, 0.5);
MOBILENET(_025, 0.25);
