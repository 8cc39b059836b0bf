/* nas_pnasnet and nas_hnasnet, backbones of searched cells (nasnet_cells.c). Three convolutions
 * reduce the size to a quarter, then twelve cells follow. Each cell is at a level from 0 (output
 * stride 4) to 3 (32). A cell one level up halves the map and doubles the width. A cell one level
 * down has its input enlarged and half the width. The levels of nas_pnasnet follow from
 * output_stride. Those of nas_hnasnet go up and down and end at output stride 8. output_stride
 * changes no dilation, except in the classification head. That head has stages of 3x3 convolutions
 * down to output stride 32 and a 1x1 convolution to 2048 channels. */
#include "nets/deeplab.h"

enum { CELLS = 12 };

struct maker {
    struct pm_net *net;
    const struct pm_deeplab_options *o;
    const struct pm_nas *nas;
    const char *scope;
};

static const char *name_of(const struct maker *m, const char *end)
{
    return pm_arena_printf(m->net->arena, "%s/%s", m->scope, end);
}

/* Builds NAME_conv or NAME, its batch norm NAME_bn, and relu unless a later layer applies it. */
static struct pm_node *conv_bn(const struct maker *m, const char *conv, const char *bn,
                               struct pm_node *x, int filters, const char *window,
                               const char *activation)
{
    x = pm_net_add(m->net, name_of(m, conv), x, "conv2d filters=%d %s bias=false "
                   "weights_init=variance_scaling_uniform(0.33333333)", filters, window);
    return pm_nets_batch_norm(m->net, &m->o->nets, name_of(m, bn), x, NULL, activation);
}

/* before: receives the map before the first cell's input. */
static struct pm_node *stem(const struct maker *m, struct pm_node *x, struct pm_node **before)
{
    struct pm_arena *a = m->net->arena;

    x = conv_bn(m, "conv0", "conv0_bn", x, 64, pm_nets_window_same(a, 3, 2, 1), "activation=relu");
    *before = conv_bn(m, "conv1", "conv1_bn", x, 64, pm_nets_window_same(a, 3, 1, 1), "");
    x = pm_net_add(m->net, name_of(m, "conv1_relu"), *before, "relu");
    return conv_bn(m, "conv2", "conv2_bn", x, 128, pm_nets_window_same(a, 3, 2, 1), "");
}

static struct pm_node *enlarged(const struct maker *m, int number, struct pm_node *x)
{
    const int *dim = x->out_shape.dim;
    const char *end = pm_arena_printf(m->net->arena, "cell_%d/resized", number);

    return pm_net_add(m->net, name_of(m, end), x, "resize size=[%d,%d] coordinates=align_corners",
                      2 * dim[1] - 1, 2 * dim[2] - 1);
}

static struct pm_node *cells(const struct maker *m, const int *levels, struct pm_node *x,
                             struct pm_node *before)
{
    const bool keeps_size = m->o->nas_remove_os32_stride; /* level 3 has the same size as level 2 */
    int filters = m->o->nas_stem_filters, level = 0;

    for (int i = 0; i < CELLS; i++) {
        struct pm_node *last = x;
        const int largest = levels[i] > level ? levels[i] : level;
        const bool resized = levels[i] != level && !(keeps_size && largest == 3);

        if (levels[i] < level && resized)
            x = enlarged(m, i, x);
        filters = levels[i] > level ? 2 * filters : levels[i] < level ? filters / 2 : filters;
        x = pm_nas_cell(m->nas, m->net, name_of(m, pm_arena_printf(m->net->arena, "cell_%d", i)), i,
                        filters, levels[i] > level && resized ? 2 : 1, x, before, &m->o->nets);
        before = last;
        level = levels[i];
    }
    return pm_net_add(m->net, name_of(m, "relu"), x, "relu");
}

/* Builds the classification head, starting at the last cell's stride. */
static struct pm_node *head(const struct maker *m, struct pm_node *x, int stride)
{
    struct pm_arena *a = m->net->arena;
    int rate = 1;

    for (int to = 2 * stride; to <= 32; to *= 2) {
        const char *scope = pm_arena_printf(a, "downsample_os%d", to);
        const bool strided = to <= m->o->nets.output_stride;

        rate *= strided ? 1 : 2;
        x = conv_bn(m, pm_arena_printf(a, "%s_conv", scope), pm_arena_printf(a, "%s_bn", scope), x,
                    32 * to, pm_nets_window_same(a, 3, strided ? 2 : 1, rate), "activation=relu");
    }
    return conv_bn(m, "classification_head_conv", "classification_head_bn", x, 2048, "kernel=1",
                   "activation=relu");
}

static struct pm_node *build(const struct maker *m, const int *levels, struct pm_node *images)
{
    const int last = 4 << levels[CELLS - 1];
    struct pm_node *before, *x = stem(m, images, &before);

    x = cells(m, levels, x, before);
    return m->o->nas_classification_head ? head(m, x, last) : x;
}

static bool stride_fits(struct pm_net *net, const struct pm_backbone *b,
                        const struct pm_deeplab_options *o)
{
    struct pm_nets_atrous atrous;

    return pm_nets_atrous_begin(net, b->name, &o->nets, b->min_stride, b->max_stride, &atrous);
}

/* ---- nas_pnasnet ------------------------------------------------------------------------- */

#define PNAS                                                                                       \
    { { "sep5 1 + max3 1", "sep7 0 + max3 0", "sep5 0 + sep3 0", "sep3 4 + max3 0",                \
        "sep3 1 + id0 0" }, { true, true } }

static struct pm_node *pnasnet(struct pm_net *net, struct pm_node *images,
                               const struct pm_deeplab_options *o)
{
    static const struct pm_nas nas = { .name = "nas_pnasnet", .cells = { PNAS, PNAS },
                                       .count = CELLS, .dense = true };
    const struct maker m = { net, o, &nas, "pnasnet" };
    int levels[CELLS];

    if (!stride_fits(net, &pm_backbone_nas_pnasnet, o))
        return images;
    for (int i = 0; i < CELLS; i++) {
        const int most = o->nets.output_stride == 8 ? 1 : o->nets.output_stride == 16 ? 2 : 3;
        levels[i] = i / 4 + 1 < most ? i / 4 + 1 : most;
    }
    return build(&m, levels, images);
}

const struct pm_backbone pm_backbone_nas_pnasnet = {
    .name = "nas_pnasnet", .min_stride = 8, .max_stride = 32, .build = pnasnet,
    .low = { "pnasnet/conv2_bn", "pnasnet/cell_3/cell_output", "pnasnet/cell_7/cell_output" },
};

/* ---- nas_hnasnet ------------------------------------------------------------------------- */

#define HNAS                                                                                       \
    { { "atr5 1 + sep3 0", "sep3 1 + atr3 0", "sep3 3 + sep3 1", "sep5 4 + sep5 2",                \
        "sep5 3 + atr5 5" }, { true, true } }

static struct pm_node *hnasnet(struct pm_net *net, struct pm_node *images,
                               const struct pm_deeplab_options *o)
{
    static const struct pm_nas nas = { .name = "nas_hnasnet", .cells = { HNAS, HNAS },
                                       .count = CELLS, .dense = true };
    static const int levels[CELLS] = { 0, 0, 0, 1, 2, 1, 2, 2, 3, 3, 2, 1 };
    const struct maker m = { net, o, &nas, "hnasnet" };

    if (!stride_fits(net, &pm_backbone_nas_hnasnet, o))
        return images;
    if (o->nets.output_stride != 8 && !o->nas_classification_head) {
        if (!net->error)
            net->error = pm_fail(PM_ECONFIG,
                                 "model.output_stride: deeplab_nas_hnasnet has an output stride of "
                                 "8, not %d: set 8, or model.nas_classification_head",
                                 o->nets.output_stride);
        return images;
    }
    return build(&m, levels, images);
}

const struct pm_backbone pm_backbone_nas_hnasnet = {
    .name = "nas_hnasnet", .min_stride = 8, .max_stride = 32, .build = hnasnet,
    .low = { "hnasnet/cell_2/cell_output", "hnasnet/cell_5/cell_output",
             "hnasnet/cell_7/cell_output" },
};
