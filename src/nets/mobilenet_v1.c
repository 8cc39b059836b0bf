/* mobilenet_v1: a 3x3 convolution and 13 pairs of a depthwise 3x3 and a pointwise 1x1 convolution,
 * each with batch norm and relu6. Widths are multiplied by depth_multiplier, truncated to an
 * integer, and are at least min_depth. Depthwise weights have no weight decay.
 *
 * The head averages over 7x7 pixels, or over all if there are fewer. Larger maps (images above 256
 * pixels, or a smaller output_stride) need global_pool. */
#include "nets/extractors.h"

#define OPTS(factor)                                                                               \
    {                                                                                              \
        PM_NETS_DEPTH(factor, 8), PM_NETS_KEEP_PROB(0.999), PM_NETS_GLOBAL_POOL,                   \
        PM_NETS_BATCH_NORM(0.9997, 0.001), PM_NETS_OUTPUT_STRIDE, PM_NETS_INIT, { 0 },             \
    }

/* The pairs: width of the pointwise convolution, stride of the depthwise one. */
static const struct { int width, stride; } pairs[] = {
    { 64, 1 },  { 128, 2 }, { 128, 1 }, { 256, 2 }, { 256, 1 },  { 512, 2 },  { 512, 1 },
    { 512, 1 }, { 512, 1 }, { 512, 1 }, { 512, 1 }, { 1024, 2 }, { 1024, 1 },
};

static int depth(const struct pm_nets_options *o, int width)
{
    const int scaled = (int)(width * o->depth_multiplier);
    return scaled < o->min_depth ? o->min_depth : scaled;
}

/* Returns the width of pair i. FPNLite's last two pairs have half and a quarter of it. */
static int width_of(const struct pm_nets_options *o, int i)
{
    const int from_end = (int)PM_COUNT(pairs) - 1 - i;

    return depth(o, o->narrow_end && from_end < 2 ? 256 << from_end : pairs[i].width);
}

static struct pm_node *pointwise(struct pm_net *net, const struct pm_nets_options *o, int i,
                                 struct pm_node *x, const char *activation)
{
    return pm_nets_conv_bn(
        net, o, pm_arena_printf(net->arena, "MobilenetV1/Conv2d_%d_pointwise", i + 1), x,
        pm_arena_printf(net->arena, "activation=%s", activation),
        "conv2d filters=%d kernel=1 weights_init=%s", width_of(o, i),
        pm_nets_init(net, o, "truncated(0.09)"));
}

static const struct pm_nets_end end = {
    "MobilenetV1/AvgPool_1a", "MobilenetV1/Dropout_1b",
    "MobilenetV1/Logits/Conv2d_1c_1x1", "truncated(0.09)", 7, 2,
};

/* Builds the pairs from..to - 1. */
static struct pm_node *build_pairs(struct pm_net *net, const struct pm_nets_options *o,
                                   struct pm_nets_atrous *atrous, int from, int to,
                                   struct pm_node *x)
{
    const char *activation = pm_nets_activation(o, "relu6");

    for (int i = from; i < to; i++) {
        int stride = pairs[i].stride, rate;

        pm_nets_atrous_step(atrous, &stride, &rate);
        x = pm_nets_depthwise_bn(
            net, o, pm_arena_printf(net->arena, "MobilenetV1/Conv2d_%d_depthwise", i + 1), x, 3,
            stride, rate, activation);
        x = pointwise(net, o, i, x, activation);
    }
    return x;
}

enum { PAIRS = PM_COUNT(pairs), SECOND = 2 }; /* SECOND: pairs after the map at stride 16 */

static struct pm_node *base(struct pm_net *net, struct pm_node *images,
                            const struct pm_nets_options *o)
{
    const char *activation = pm_nets_activation(o, "relu6");
    struct pm_nets_atrous atrous;
    struct pm_node *x = pm_nets_mobile_begin(net, "mobilenet_v1", o, "MobilenetV1/Conv2d_0", images,
                                             depth(o, 32), activation, &atrous);

    return build_pairs(net, o, &atrous, 0, PAIRS - (o->short_end ? SECOND : 0), x);
}

static struct pm_node *second(struct pm_net *net, struct pm_node *crops,
                              const struct pm_nets_options *o)
{
    struct pm_nets_atrous none = { 0, 1, 1 };

    return build_pairs(net, o, &none, PAIRS - SECOND, PAIRS, crops);
}

#define MAP(n) { "Conv2d_" #n "_pointwise", "MobilenetV1/Conv2d_" #n "_pointwise/BatchNorm" }
static const struct pm_extractor_map maps[] = { MAP(11), MAP(13) };
const struct pm_extractor pm_extractor_mobilenet_v1 = {
    .scope = "MobilenetV1", .least = 33, .build = base,
    .maps = maps, .count = PM_COUNT(maps),
    .levels = { MAP(3), MAP(5), MAP(11), MAP(13) }, .coarse = "bottom_up_Conv2d_", .first = 14,
    .second = second,
};

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    struct pm_node *x = base(net, images, o);

    pm_heads_add(net, heads, "logits",
                 pm_nets_average_end(net, o, "mobilenet_v1", &end, x, num_classes));
}

#define MOBILENET(suffix, factor)                                                                  \
    static const struct pm_opt opts##suffix[] = OPTS(factor);                                      \
    const struct pm_net_row pm_net_row_mobilenet_v1##suffix = {                                    \
        .name = "mobilenet_v1" #suffix,                                                            \
        .help = "depthwise separable convolutions, width x " #factor,                              \
        .task = "classification",                                                                  \
        .opts = opts##suffix, .cfg_size = sizeof(struct pm_nets_options),                          \
        .default_size = 224, .default_channels = 3, .preprocessing = "inception",                  \
        .weight_decay = 4e-5f, .build = build,                                                     \
    }

MOBILENET(, 1.0);
MOBILENET(_075, 0.75);
MOBILENET(_050, 0.5);
MOBILENET(_025, 0.25);
