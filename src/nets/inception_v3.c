/* inception_v3: a stem with VALID padding, then eleven blocks: three with 5x5 windows, a reduction,
 * four with 1x7 and 7x1, a reduction, and two that fork into 1x3 and 3x1. Every convolution has
 * batch norm (no gamma) and relu. An auxiliary head uses Mixed_6e. Some names repeat mistakes of
 * the original, so that its checkpoints load. With PyTorch's conventions batch norm has gammas, the
 * averages in blocks count the zeros around the map, and the last average covers the whole map. */
#include "nets/extractors.h"

#include <string.h>

#define OPTS(torch, keep, pool, decay)                                                             \
    {                                                                                              \
        PM_NETS_DEPTH(1, 16), PM_NETS_KEEP_PROB(keep),                                             \
        PM_BOOL(pm_nets_options, global_pool, pool, PM_NETS_GLOBAL_POOL_HELP),                     \
        PM_NETS_BATCH_NORM(decay, 0.001), PM_NETS_AUX_HEAD, PM_NETS_INIT,                          \
        PM_NETS_CONVENTIONS(torch), { 0 },                                                         \
    }
static const struct pm_opt opts[] = OPTS(0, 0.8, false, 0.9997);
static const struct pm_opt torch_opts[] = OPTS(1, 0.5, true, 0.9);

static const struct { const char *name, *branches[5]; } blocks[] = {
    { "Mixed_5b",
      { "Conv2d_0a_1x1 64", "Conv2d_0a_1x1 48, Conv2d_0b_5x5 64",
        "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96", "avg, Conv2d_0b_1x1 32" } },
    { "Mixed_5c",
      { "Conv2d_0a_1x1 64", "Conv2d_0b_1x1 48, Conv_1_0c_5x5 64",
        "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96", "avg, Conv2d_0b_1x1 64" } },
    { "Mixed_5d",
      { "Conv2d_0a_1x1 64", "Conv2d_0a_1x1 48, Conv2d_0b_5x5 64",
        "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96", "avg, Conv2d_0b_1x1 64" } },
    { "Mixed_6a",
      { "Conv2d_1a_1x1@3x3/2v 384",
        "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_1a_1x1@3x3/2v 96", "max/2v" } },
#define SEVENS(name, n)                                                                            \
    { name,                                                                                        \
      { "Conv2d_0a_1x1 192", "Conv2d_0a_1x1 " n ", Conv2d_0b_1x7 " n ", Conv2d_0c_7x1 192",        \
        "Conv2d_0a_1x1 " n ", Conv2d_0b_7x1 " n ", Conv2d_0c_1x7 " n ", Conv2d_0d_7x1 " n          \
        ", Conv2d_0e_1x7 192", "avg, Conv2d_0b_1x1 192" } }
    SEVENS("Mixed_6b", "128"), SEVENS("Mixed_6c", "160"), SEVENS("Mixed_6d", "160"),
    SEVENS("Mixed_6e", "192"),
    { "Mixed_7a",
      { "Conv2d_0a_1x1 192, Conv2d_1a_3x3/2v 320",
        "Conv2d_0a_1x1 192, Conv2d_0b_1x7 192, Conv2d_0c_7x1 192, Conv2d_1a_3x3/2v 192",
        "max/2v" } },
    { "Mixed_7b",
      { "Conv2d_0a_1x1 320", "Conv2d_0a_1x1 384, Conv2d_0b_1x3 384 & Conv2d_0b_3x1 384",
        "Conv2d_0a_1x1 448, Conv2d_0b_3x3 384, Conv2d_0c_1x3 384 & Conv2d_0d_3x1 384",
        "avg, Conv2d_0b_1x1 192" } },
    { "Mixed_7c",
      { "Conv2d_0a_1x1 320", "Conv2d_0a_1x1 384, Conv2d_0b_1x3 384 & Conv2d_0c_3x1 384",
        "Conv2d_0a_1x1 448, Conv2d_0b_3x3 384, Conv2d_0c_1x3 384 & Conv2d_0d_3x1 384",
        "avg, Conv2d_0b_1x1 192" } },
};

/* On a 17x17 map: 5x5 averages with stride 3, then a convolution over the whole remaining map. */
static struct pm_node *auxiliary(const struct pm_branches *b, struct pm_node *x, int num_classes)
{
    const int *dim;

    x = pm_branches_pool(b, "AuxLogits/AvgPool_1a_5x5", x, "avg", 5, 3, true);
    x = pm_branches_chain(b, "AuxLogits/", x, "Conv2d_1b_1x1 128");
    dim = x->out_shape.dim;
    const int h = dim[1] < 5 ? dim[1] : 5, w = dim[2] < 5 ? dim[2] : 5;
    x = pm_branches_conv(b, pm_arena_printf(b->net->arena, "AuxLogits/Conv2d_2a_%dx%d", h, w), x,
                         768, h, w, 1, true, "truncated(0.01)");
    if (x->out_shape.dim[1] > 1 || x->out_shape.dim[2] > 1)
        x = pm_net_add(b->net, "InceptionV3/AuxLogits/global_pool", x, "global_pool");
    return pm_nets_logits(b->net, "InceptionV3/AuxLogits/Conv2d_2b_1x1", x, num_classes,
                          "truncated(0.001)");
}

static struct pm_node *features(struct pm_net *net, struct pm_node *images,
                                const struct pm_nets_options *o)
{
    const struct pm_branches b = { net, o, "InceptionV3", "variance_scaling(2)", false };
    struct pm_node *x = pm_branches_stem(&b, images);

    for (int i = 0; i < (int)PM_COUNT(blocks); i++)
        x = pm_branches_block(&b, blocks[i].name, x, blocks[i].branches);
    return x;
}

static const struct pm_extractor_map maps[] = { { "Mixed_5d", "InceptionV3/Mixed_5d" },
                                                { "Mixed_6e", "InceptionV3/Mixed_6e" },
                                                { "Mixed_7c", "InceptionV3/Mixed_7c" } };
const struct pm_extractor pm_extractor_inception_v3 = {
    .scope = "InceptionV3", .least = 75, .build = features, .maps = maps, .count = PM_COUNT(maps),
};

static const struct pm_nets_end end = {
    "InceptionV3/Logits/AvgPool_1a_8x8", "InceptionV3/Logits/Dropout_1b",
    "InceptionV3/Logits/Conv2d_1c_1x1", "variance_scaling(2)", 8, 2,
};

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    const struct pm_branches b = { net, o, "InceptionV3", "variance_scaling(2)", false };
    struct pm_node *x;

    pm_nets_begin(net, o);
    if (!pm_nets_fits(net, "inception_v3", images, 107))
        return;
    x = pm_branches_stem(&b, images);
    for (int i = 0; i < (int)PM_COUNT(blocks); i++) {
        x = pm_branches_block(&b, blocks[i].name, x, blocks[i].branches);
        if (o->aux_head && strcmp(blocks[i].name, "Mixed_6e") == 0)
            pm_nets_add_auxiliary(net, heads, auxiliary(&b, x, num_classes));
    }
    pm_heads_add(net, heads, "logits",
                 pm_nets_average_end(net, o, "inception_v3", &end, x, num_classes));
}

#define ROW(table, source, other)                                                                  \
    {                                                                                              \
        .name = "inception_v3", .help = "eleven blocks of branches, for 299x299, auxiliary head",  \
        .task = "classification",                                                                  \
        .opts = table, .cfg_size = sizeof(struct pm_nets_options), .default_size = 299,            \
        .default_channels = 3, .preprocessing = source, .weight_decay = 4e-5f, .build = build,     \
        .torch = other,                                                                            \
    }
static const struct pm_net_row torch = ROW(torch_opts, "torch", NULL);
const struct pm_net_row pm_net_row_inception_v3 = ROW(opts, "inception", &torch);
