/* inception_v1: a stem of three convolutions, then nine blocks of four branches. All padding is
 * SAME, and every convolution has batch norm (no gamma) and relu. The paper's 5x5 windows are 3x3,
 * as in the original program. */
#include "nets/nets.h"

#include <string.h>

static const struct pm_opt opts[] = {
    PM_NETS_KEEP_PROB(0.8), PM_NETS_GLOBAL_POOL, PM_NETS_BATCH_NORM(0.9997, 0.001),
    PM_NETS_INIT, { 0 },
};

/* Widths of 1x1; 1x1 and 3x3; 1x1 and 3x3; 1x1 after the pool. A block without widths is a pool. */
static const struct { const char *name; int a, b, c, d, e, f, pool; } blocks[] = {
    { "Mixed_3b", 64, 96, 128, 16, 32, 32, 0 },
    { "Mixed_3c", 128, 128, 192, 32, 96, 64, 0 },
    { "MaxPool_4a_3x3", .pool = 3 },
    { "Mixed_4b", 192, 96, 208, 16, 48, 64, 0 },
    { "Mixed_4c", 160, 112, 224, 24, 64, 64, 0 },
    { "Mixed_4d", 128, 128, 256, 24, 64, 64, 0 },
    { "Mixed_4e", 112, 144, 288, 32, 64, 64, 0 },
    { "Mixed_4f", 256, 160, 320, 32, 128, 128, 0 },
    { "MaxPool_5a_2x2", .pool = 2 },
    { "Mixed_5b", 256, 160, 320, 32, 128, 128, 0 },
    { "Mixed_5c", 384, 192, 384, 48, 128, 128, 0 },
};

static struct pm_node *mixed(const struct pm_branches *b, int i, struct pm_node *x)
{
    struct pm_arena *a = b->net->arena;
    /* A naming mistake of the original, kept so that its checkpoints load. */
    const char *slip = strcmp(blocks[i].name, "Mixed_5b") == 0 ? "Conv2d_0a_3x3" : "Conv2d_0b_3x3";
    const char *branches[] = {
        pm_arena_printf(a, "Conv2d_0a_1x1 %d", blocks[i].a),
        pm_arena_printf(a, "Conv2d_0a_1x1 %d, Conv2d_0b_3x3 %d", blocks[i].b, blocks[i].c),
        pm_arena_printf(a, "Conv2d_0a_1x1 %d, %s %d", blocks[i].d, slip, blocks[i].e),
        pm_arena_printf(a, "max, Conv2d_0b_1x1 %d", blocks[i].f),
        NULL,
    };

    return pm_branches_block(b, blocks[i].name, x, branches);
}

static const struct pm_nets_end end = {
    "InceptionV1/Logits/AvgPool_0a_7x7", "InceptionV1/Logits/Dropout_0b",
    "InceptionV1/Logits/Conv2d_0c_1x1", "variance_scaling(2)", 7, 1,
};

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    const struct pm_branches b = { net, o, "InceptionV1", "truncated(0.01)", false };
    struct pm_node *x = pm_branches_chain(&b, "", images, "Conv2d_1a_7x7/2 64");

    x = pm_branches_pool(&b, "MaxPool_2a_3x3", x, "max", 3, 2, false);
    x = pm_branches_chain(&b, "", x, "Conv2d_2b_1x1 64, Conv2d_2c_3x3 192");
    x = pm_branches_pool(&b, "MaxPool_3a_3x3", x, "max", 3, 2, false);
    for (int i = 0; i < (int)PM_COUNT(blocks); i++)
        x = blocks[i].pool ? pm_branches_pool(&b, blocks[i].name, x, "max", blocks[i].pool, 2,
                                              false)
                           : mixed(&b, i, x);
    pm_heads_add(net, heads, "logits",
                 pm_nets_average_end(net, o, "inception_v1", &end, x, num_classes));
}

const struct pm_net_row pm_net_row_inception_v1 = {
    .name = "inception_v1", .help = "GoogLeNet with batch norm: nine blocks of four branches",
    .task = "classification",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 224, .default_channels = 3, .preprocessing = "inception",
    .weight_decay = 4e-5f, .build = build,
};
