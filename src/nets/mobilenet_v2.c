/* mobilenet_v2: inverted residuals. A block expands to six times its channels (1x1), filters
 * depthwise (3x3) and projects back without an activation (1x1). If neither size nor depth changes,
 * the input is added. Every convolution has batch norm; all except projections have relu6. Widths
 * are base x depth_multiplier, rounded to multiples of 8 but never below nine tenths. Depthwise
 * weights have no weight decay. Works at any size. With PyTorch's conventions strided windows are
 * padded symmetrically.
 *
 * As a backbone of DeepLab it ends with the last block's 320 linear channels. If the multiplier is
 * not 1, widths are not rounded to 8, as in the original. */
#include "nets/deeplab.h"
#include "nets/extractors.h"

#define OPTS(factor, last, torch, decay, epsilon)                                                  \
    {                                                                                              \
        PM_NETS_DEPTH(factor, 8), PM_NETS_DIVISIBLE, PM_NETS_SCALE_LAST(last),                     \
        PM_NETS_KEEP_PROB(0.8), PM_NETS_BATCH_NORM(decay, epsilon), PM_NETS_OUTPUT_STRIDE,         \
        PM_NETS_INIT, PM_NETS_CONVENTIONS(torch), { 0 },                                           \
    }

/* Width of the projection and stride of blocks 1 to 16. Block 0 expands by 1. */
static const struct { int width, stride;
} blocks[] = {
    { 16, 1 }, { 24, 2 },  { 24, 1 },  { 32, 2 },  { 32, 1 },  { 32, 1 },
    { 64, 2 }, { 64, 1 },  { 64, 1 },  { 64, 1 },  { 96, 1 },  { 96, 1 },
    { 96, 1 }, { 160, 2 }, { 160, 1 }, { 160, 1 }, { 320, 1 },
};

static struct pm_node *conv_bn(struct pm_net *net, const struct pm_nets_options *o,
                               const char *name, struct pm_node *x, int filters,
                               const char *activation)
{
    return pm_nets_conv_bn(net, o, name, x,
                           pm_arena_printf(net->arena, "activation=%s", activation),
                           "conv2d filters=%d kernel=1 weights_init=%s", filters,
                           pm_nets_init(net, o, "truncated(0.09)"));
}

static struct pm_node *block(struct pm_net *net, const struct pm_nets_options *o, int i,
                             struct pm_nets_atrous *atrous, struct pm_node *x)
{
    struct pm_arena *a = net->arena;
    const char *scope = i ? pm_arena_printf(a, "MobilenetV2/expanded_conv_%d", i)
                          : "MobilenetV2/expanded_conv";
    const int in = x->out_shape.dim[3], out = pm_nets_depth(o, blocks[i].width);
    const int wide = i ? pm_nets_divisible(6 * in, 8, 8) : in;
    struct pm_node *from = x;
    int stride = blocks[i].stride, rate;

    pm_nets_atrous_step(atrous, &stride, &rate);
    if (wide > in)
        x = conv_bn(net, o, pm_arena_printf(a, "%s/expand", scope), x, wide, "relu6");
    x = pm_nets_depthwise_bn(net, o, pm_arena_printf(a, "%s/depthwise", scope), x, 3, stride, rate,
                             "relu6");
    x = conv_bn(net, o, pm_arena_printf(a, "%s/project", scope), x, out, "none");
    if (stride > 1 || in != out)
        return x;
    return pm_net_add_many(net, pm_arena_printf(a, "%s/output", scope),
                           (struct pm_node *[]){ x, from }, 2, "add");
}

/* Builds all layers except the head. */
static struct pm_node *base(struct pm_net *net, struct pm_node *images,
                            const struct pm_nets_options *o)
{
    struct pm_nets_atrous atrous;
    struct pm_node *x;

    pm_nets_begin(net, o);
    x = pm_nets_mobile_begin(net, "mobilenet_v2", o, "MobilenetV2/Conv", images,
                             pm_nets_depth(o, 32), "relu6", &atrous);
    for (int i = 0; i < (int)PM_COUNT(blocks); i++)
        x = block(net, o, i, &atrous, x);
    return x;
}

static struct pm_node *backbone(struct pm_net *net, struct pm_node *images,
                                const struct pm_deeplab_options *o)
{
    struct pm_nets_options nets = o->nets;
    const int least = nets.depth_multiplier == 1 ? 8 : 1;

    nets.min_depth = least;
    if (nets.divisible_by == 0)
        nets.divisible_by = least;
    return base(net, images, &nets);
}

const struct pm_backbone pm_backbone_mobilenet_v2 = {
    .name = "mobilenet_v2", .min_stride = 4, .max_stride = 32, .build = backbone,
    .low = { "MobilenetV2/expanded_conv_2/depthwise/BatchNorm",
             "MobilenetV2/expanded_conv_5/depthwise/BatchNorm",
             "MobilenetV2/expanded_conv_12/depthwise/BatchNorm" },
};

/* As in the original, a multiplier also scales the last convolution. */
static struct pm_node *features(struct pm_net *net, struct pm_node *images,
                                const struct pm_nets_options *o)
{
    struct pm_node *x = base(net, images, o);

    return conv_bn(net, o, "MobilenetV2/Conv_1", x, pm_nets_depth(o, o->narrow_end ? 256 : 1280),
                   "relu6");
}

#define LAST { "layer_19", "MobilenetV2/Conv_1/BatchNorm" }
#define SUM(layer, block) { "layer_" #layer, "MobilenetV2/expanded_conv_" #block "/output" }
static const struct pm_extractor_map maps[] = {
    { "layer_15/expansion_output", "MobilenetV2/expanded_conv_13/expand/BatchNorm" }, LAST
};
const struct pm_extractor pm_extractor_mobilenet_v2 = {
    .scope = "MobilenetV2", .least = 33, .build = features, .own_scale = true,
    .maps = maps, .count = PM_COUNT(maps),
    .levels = { SUM(4, 2), SUM(7, 5), SUM(14, 12), LAST }, .coarse = "bottom_up_Conv2d_",
    .first = 20,
};

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    struct pm_node *x = base(net, images, o);

    x = conv_bn(net, o, "MobilenetV2/Conv_1", x, pm_nets_last_depth(o, 1280), "relu6");
    x = pm_net_add(net, "MobilenetV2/Logits/AvgPool", x, "global_pool");
    x = pm_net_add(net, "MobilenetV2/Logits/Dropout", x, "dropout keep=%.9g", (double)o->keep_prob);
    pm_heads_add(net, heads, "logits",
                 pm_nets_logits(net, "MobilenetV2/Logits/Conv2d_1c_1x1", x, num_classes,
                                pm_nets_logits_init(net, o,
                                                    pm_nets_init(net, o, "truncated(0.09)"))));
}

#define ROW(suffix, factor, table, source, other)                                                  \
    {                                                                                              \
        .name = "mobilenet_v2" #suffix,                                                            \
        .help = "inverted residuals with linear bottlenecks, width x " #factor,                    \
        .task = "classification",                                                                  \
        .opts = table, .cfg_size = sizeof(struct pm_nets_options),                                 \
        .default_size = 224, .default_channels = 3, .preprocessing = source,                       \
        .weight_decay = 4e-5f, .build = build, .torch = other,                                     \
    }
#define MOBILENET(suffix, factor, last)                                                            \
    static const struct pm_opt opts##suffix[] = OPTS(factor, last, 0, 0.997, 0.001);               \
    static const struct pm_opt torch_opts##suffix[] = OPTS(factor, last, 1, 0.9, 1e-5);            \
    static const struct pm_net_row torch##suffix =                                                 \
        ROW(suffix, factor, torch_opts##suffix, "torch", NULL);                                    \
    const struct pm_net_row pm_net_row_mobilenet_v2##suffix =                                      \
        ROW(suffix, factor, opts##suffix, "inception", &torch##suffix)

MOBILENET(, 1.0, true);
MOBILENET(_140, 1.4, true);
MOBILENET(_050, 0.5, false);
MOBILENET(_035, 0.35, false);
