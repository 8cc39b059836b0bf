/* inception_v2: like inception_v1, with two 3x3 windows instead of each 5x5 window and reductions
 * by strided convolutions. The first layer filters each colour separately: depthwise 7x7 with eight
 * outputs per channel, then 1x1. It has bias and relu, but neither batch norm nor weight decay; a
 * detector's has both. All padding is SAME. */
#include "nets/extractors.h"

static const struct pm_opt opts[] = {
    PM_NETS_DEPTH(1, 16), PM_NETS_KEEP_PROB(0.8), PM_NETS_GLOBAL_POOL,
    PM_NETS_BATCH_NORM(0.9997, 0.001), PM_NETS_INIT,
    PM_BOOL(pm_nets_options, separable_conv, true,
            "first layer depthwise and 1x1; false: an ordinary 7x7 convolution with batch norm"),
    { 0 },
};

#define NARROW " truncated(0.09)"
#define NORMAL(name, a, b, c, d, e, pool, f)                                                       \
    { name,                                                                                        \
      { "Conv2d_0a_1x1 " a, "Conv2d_0a_1x1 " b NARROW ", Conv2d_0b_3x3 " c,                        \
        "Conv2d_0a_1x1 " d NARROW ", Conv2d_0b_3x3 " e ", Conv2d_0c_3x3 " e,                       \
        pool ", Conv2d_0b_1x1 " f " truncated(0.1)" } }
#define REDUCTION(name, p, q, r, t)                                                                \
    { name,                                                                                        \
      { "Conv2d_0a_1x1 " p NARROW ", Conv2d_1a_3x3/2 " q,                                          \
        "Conv2d_0a_1x1 " r NARROW ", Conv2d_0b_3x3 " t ", Conv2d_1a_3x3/2 " t, "max/2" } }

static const struct { const char *name, *branches[5]; } blocks[] = {
    NORMAL("Mixed_3b", "64", "64", "64", "64", "96", "avg", "32"),
    NORMAL("Mixed_3c", "64", "64", "96", "64", "96", "avg", "64"),
    REDUCTION("Mixed_4a", "128", "160", "64", "96"),
    NORMAL("Mixed_4b", "224", "64", "96", "96", "128", "avg", "128"),
    NORMAL("Mixed_4c", "192", "96", "128", "96", "128", "avg", "128"),
    NORMAL("Mixed_4d", "160", "128", "160", "128", "160", "avg", "96"),
    NORMAL("Mixed_4e", "96", "128", "192", "160", "192", "avg", "96"),
    REDUCTION("Mixed_5a", "128", "192", "192", "256"),
    NORMAL("Mixed_5b", "352", "192", "320", "160", "224", "avg", "128"),
    NORMAL("Mixed_5c", "352", "192", "320", "192", "224", "max", "128"),
};

/* Outputs per colour: as many as 64 (times the multiplier) has room for, at most 8. */
static struct pm_node *first_layer(const struct pm_branches *b, struct pm_node *x)
{
    static const char name[] = "InceptionV2/Conv2d_1a_7x7";
    const int filters = pm_branches_depth(b, 64), room = filters / x->out_shape.dim[3];
    const char *regularize = b->options->override ? "true" : "false";
    const char *scope = pm_net_scope(b->net, name);

    if (!b->options->separable_conv)
        return pm_branches_chain(b, "", x, "Conv2d_1a_7x7/2 64 truncated(1)");
    x = pm_net_add(b->net, name, x,
                   "depthwise_conv2d kernel=7 stride=2 multiplier=%d bias=false regularize=%s "
                   "weights_init=truncated(1)", room < 1 ? 1 : room > 8 ? 8 : room, regularize);
    x = pm_net_add(b->net, pm_arena_printf(b->net->arena, "%s/pointwise", name), x,
                   "conv2d filters=%d kernel=1 bias=%s activation=%s regularize=%s "
                   "weights_init=truncated(1) scope=%s weights_name=pointwise_weights", filters,
                   b->options->override ? "false" : "true",
                   b->options->override ? "none" : "relu", regularize, scope);
    if (!b->options->override)
        return x;
    return pm_nets_batch_norm(b->net, b->options,
                              pm_arena_printf(b->net->arena, "%s/BatchNorm", name), x, NULL,
                              pm_arena_printf(b->net->arena, "activation=%s",
                                              b->options->override->activation));
}

static const struct pm_nets_end end = {
    "InceptionV2/Logits/AvgPool_1a_7x7", "InceptionV2/Logits/Dropout_1b",
    "InceptionV2/Logits/Conv2d_1c_1x1", "variance_scaling(2)", 7, 2,
};

enum { BLOCKS = PM_COUNT(blocks), SECOND = 3 }; /* SECOND: blocks after the last map at stride 16 */

static struct pm_branches branches_of(struct pm_net *net, const struct pm_nets_options *o)
{
    return (struct pm_branches){ net, o, "InceptionV2", "variance_scaling(2)", false };
}

/* Builds the blocks from..to - 1. */
static struct pm_node *build_blocks(const struct pm_branches *b, int from, int to,
                                    struct pm_node *x)
{
    for (int i = from; i < to; i++)
        x = pm_branches_block(b, blocks[i].name, x, blocks[i].branches);
    return x;
}

static struct pm_node *base(struct pm_net *net, struct pm_node *images,
                            const struct pm_nets_options *o)
{
    const struct pm_branches b = branches_of(net, o);
    struct pm_node *x = first_layer(&b, images);

    x = pm_branches_pool(&b, "MaxPool_2a_3x3", x, "max", 3, 2, false);
    x = pm_branches_chain(&b, "", x, "Conv2d_2b_1x1 64 truncated(0.1), Conv2d_2c_3x3 192");
    x = pm_branches_pool(&b, "MaxPool_3a_3x3", x, "max", 3, 2, false);
    return build_blocks(&b, 0, BLOCKS - (o->short_end ? SECOND : 0), x);
}

static struct pm_node *second(struct pm_net *net, struct pm_node *crops,
                              const struct pm_nets_options *o)
{
    const struct pm_branches b = branches_of(net, o);

    return build_blocks(&b, BLOCKS - SECOND, BLOCKS, crops);
}

static const struct pm_extractor_map maps[] = { { "Mixed_4c", "InceptionV2/Mixed_4c" },
                                                { "Mixed_5c", "InceptionV2/Mixed_5c" } };
const struct pm_extractor pm_extractor_inception_v2 = {
    .scope = "InceptionV2", .least = 33, .build = base, .maps = maps, .count = PM_COUNT(maps),
    .crops = { "Mixed_4e", "InceptionV2/Mixed_4e" }, .second = second,
};

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    struct pm_node *x = base(net, images, o);

    pm_heads_add(net, heads, "logits",
                 pm_nets_average_end(net, o, "inception_v2", &end, x, num_classes));
}

const struct pm_net_row pm_net_row_inception_v2 = {
    .name = "inception_v2", .help = "the net of the batch norm paper: ten blocks of branches",
    .task = "classification",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 224, .default_channels = 3, .preprocessing = "inception",
    .weight_decay = 4e-5f, .build = build,
};
