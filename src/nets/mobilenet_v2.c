/* mobilenet_v2: inverted residuals. A block expands to six times its channels (1x1), filters
 * depthwise (3x3) and projects back without an activation (1x1); where neither size nor depth change
 * its input is added. Every convolution has batch norm, all but projections relu6. Widths are
 * base x multiplier, rounded to multiples of 8 but never below nine tenths. Depthwise weights have
 * no weight decay. */
#include "nets/nets.h"

struct mobilenet_v2_cfg {
    double multiplier;
    float keep_prob;
    double batch_norm_decay; /* double: 1 - decay is what counts */
    bool scale_last;
};

#define OPTS(factor, last)                                                                         \
    {                                                                                              \
        PM_DOUBLE(mobilenet_v2_cfg, multiplier, factor, 0.01, 4, "factor of every layer's width"), \
        PM_FLOAT(mobilenet_v2_cfg, keep_prob, 0.8, 0.01, 1,                                        \
                 "share of the features that dropout keeps"),                                      \
        PM_DOUBLE(mobilenet_v2_cfg, batch_norm_decay, 0.997, 0, 1,                                 \
                  "decay of batch norm's moving averages; lower for runs of few steps"),           \
        PM_BOOL(mobilenet_v2_cfg, scale_last, last,                                                \
                "the last convolution's 1280 outputs follow a multiplier below 1 too"),            \
        { 0 },                                                                                     \
    }

/* Width of the projection, stride, of blocks 1 to 16; block 0 expands by 1. */
static const struct { int width, stride; } blocks[] = {
    { 16, 1 },  { 24, 2 },  { 24, 1 }, { 32, 2 }, { 32, 1 }, { 32, 1 },  { 64, 2 },  { 64, 1 },  { 64, 1 },
    { 64, 1 },  { 96, 1 },  { 96, 1 }, { 96, 1 }, { 160, 2 }, { 160, 1 }, { 160, 1 }, { 320, 1 },
};

static int depth(const struct mobilenet_v2_cfg *cfg, int width)
{
    return pm_nets_divisible(width * cfg->multiplier, 8);
}

static struct pm_node *batch_norm(struct pm_net *net, const struct mobilenet_v2_cfg *cfg,
                                  const char *conv, struct pm_node *x, const char *activation)
{
    return pm_net_add(net, pm_arena_printf(net->arena, "%s/BatchNorm", conv), x,
                      "batch_norm decay=%.17g epsilon=0.001 activation=%s", cfg->batch_norm_decay,
                      activation);
}

static struct pm_node *conv_bn(struct pm_net *net, const struct mobilenet_v2_cfg *cfg,
                               const char *name, struct pm_node *x, int filters, int kernel,
                               int stride, const char *activation)
{
    x = pm_net_add(net, name, x, "conv2d filters=%d kernel=%d stride=%d bias=false "
                   "weights_init=truncated(0.09)", filters, kernel, stride);
    return batch_norm(net, cfg, name, x, activation);
}

static struct pm_node *block(struct pm_net *net, const struct mobilenet_v2_cfg *cfg, int i,
                             struct pm_node *x)
{
    struct pm_arena *a = net->arena;
    const char *scope = i ? pm_arena_printf(a, "MobilenetV2/expanded_conv_%d", i)
                          : "MobilenetV2/expanded_conv";
    const char *depthwise = pm_arena_printf(a, "%s/depthwise", scope);
    const int in = x->out_shape.dim[3], out = depth(cfg, blocks[i].width);
    const int wide = i ? pm_nets_divisible(6 * in, 8) : in;
    struct pm_node *from = x;

    if (wide > in)
        x = conv_bn(net, cfg, pm_arena_printf(a, "%s/expand", scope), x, wide, 1, 1, "relu6");
    x = pm_net_add(net, depthwise, x, "depthwise_conv2d kernel=3 stride=%d bias=false "
                   "regularize=false weights_init=truncated(0.09)", blocks[i].stride);
    x = batch_norm(net, cfg, depthwise, x, "relu6");
    x = conv_bn(net, cfg, pm_arena_printf(a, "%s/project", scope), x, out, 1, 1, "none");
    if (blocks[i].stride > 1 || in != out)
        return x;
    return pm_net_add_many(net, pm_arena_printf(a, "%s/output", scope),
                           (struct pm_node *[]){ x, from }, 2, "add");
}

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *config,
                  struct pm_heads *heads)
{
    const struct mobilenet_v2_cfg *cfg = config;
    struct pm_node *x = conv_bn(net, cfg, "MobilenetV2/Conv", images, depth(cfg, 32), 3, 2,
                                "relu6");

    for (int i = 0; i < (int)PM_COUNT(blocks); i++)
        x = block(net, cfg, i, x);
    x = conv_bn(net, cfg, "MobilenetV2/Conv_1", x,
                cfg->multiplier < 1 && !cfg->scale_last ? 1280 : depth(cfg, 1280), 1, 1, "relu6");
    x = pm_net_add(net, "MobilenetV2/Logits/AvgPool", x, "global_pool");
    x = pm_net_add(net, "MobilenetV2/Logits/Dropout", x, "dropout keep=%.9g",
                   (double)cfg->keep_prob);
    heads->logits = pm_nets_logits(net, "MobilenetV2/Logits/Conv2d_1c_1x1", x, num_classes,
                                   "truncated(0.09)");
}

#define MOBILENET(suffix, factor)                                                                  \
    static const struct pm_opt opts##suffix[] = OPTS(factor, false);                               \
    const struct pm_net_row pm_net_row_mobilenet_v2##suffix = {                                    \
        .name = "mobilenet_v2" #suffix,                                                            \
        .help = "inverted residuals with linear bottlenecks, width x " #factor,                    \
        .opts = opts##suffix, .cfg_size = sizeof(struct mobilenet_v2_cfg),                         \
        .default_size = 224, .default_channels = 3, .preprocessing = "inception",                  \
        .weight_decay = 4e-5f, .build = build,                                                     \
    }

MOBILENET(, 1.0);
MOBILENET(_140, 1.4);
MOBILENET(_050, 0.5);
MOBILENET(_035, 0.35);
