/* xception_41, 65 and 71, backbones of DeepLab. They have two 3x3 convolutions, then modules of
 * three separable convolutions (depthwise 3x3 and 1x1, each with batch norm), up to 2048 channels.
 * A module of the entry, of the middle and of the exit's first block is
 *     y = shortcut(x) + s3(relu(s2(relu(s1(relu(x)))))),  s = BN(pointwise(BN(depthwise)));
 * its sum has no activation. The shortcut is x itself in the middle, and a 1x1 convolution with
 * batch norm elsewhere. The last block has no shortcut. It has a relu after every batch norm
 * instead of the relus before each convolution. The third depthwise convolution has the stride and
 * pads symmetrically.
 *
 * With a bounded activation, relu is relu6. The output of each batch norm without an activation is
 * clipped to -6..6, and so is the shortcut. The sum goes through relu6, so the module's first relu
 * and the identity's clip have no effect. A strided depthwise convolution then pads like
 * TensorFlow's SAME. */
#include "nets/deeplab.h"

#include <string.h>

enum { SEPARABLES = 3 };
enum shortcut { CONV, SUM, NONE };
struct block {
    const char *scope;
    int depth[SEPARABLES], stride, units;
    enum shortcut shortcut;
};
struct maker {
    struct pm_net *net;
    const struct pm_backbone *backbone;
    const struct pm_nets_options *o;
    bool bounded;
    struct pm_nets_atrous atrous;
    int grid[SEPARABLES]; /* multi_grid of the last block */
};
/* The options of one separable convolution. */
struct separable {
    int filters, stride, rate;
    const char *inner, *outer; /* after depthwise, pointwise; NULL: none, or clipped */
    struct pm_node *residual;
};

static const char *name_of(const struct maker *m, const char *scope, const char *end)
{
    return pm_arena_printf(m->net->arena, "%s/%s", scope, end);
}

static const char *relu(const struct maker *m)
{
    return m->bounded ? "relu6" : "relu";
}

/* Builds the batch norm of the convolution x, which is called name. */
static struct pm_node *norm(const struct maker *m, const char *name, struct pm_node *x,
                            struct pm_node *residual, const char *activation)
{
    const char *rest = pm_arena_printf(m->net->arena, "activation=%s",
                                       activation ? activation : "none");

    x = pm_nets_batch_norm(m->net, m->o, name_of(m, name, "BatchNorm"), x, residual, rest);
    if (!m->bounded || activation)
        return x;
    return pm_net_add(m->net, name_of(m, name, "BatchNorm/clip"), x, "clip min=-6 max=6");
}

static struct pm_node *separable(const struct maker *m, const char *name, struct pm_node *x,
                                 const struct separable *s)
{
    struct pm_arena *a = m->net->arena;
    const char *window = m->bounded ? pm_nets_window(a, m->o, 3, s->stride, s->rate)
                                    : pm_nets_window_same(a, 3, s->stride, s->rate);
    const char *depthwise = pm_arena_printf(a, "%s_depthwise", name);
    const char *pointwise = pm_arena_printf(a, "%s_pointwise", name);

    x = pm_net_add(m->net, depthwise, x, "depthwise_conv2d %s bias=false regularize=false "
                   "weights_init=truncated(0.09)", window);
    x = norm(m, depthwise, x, NULL, s->inner);
    x = pm_net_add(m->net, pointwise, x, "conv2d filters=%d kernel=1 bias=false "
                   "weights_init=truncated(0.09)", s->filters);
    return norm(m, pointwise, x, s->residual, s->outer);
}

/* Whether a decoder joins this convolution's output. It uses the output before the next relu. */
static bool joined(const struct maker *m, const char *name)
{
    const size_t length = strlen(name);

    for (size_t i = 0; i < PM_COUNT(m->backbone->low); i++)
        if (strncmp(m->backbone->low[i], name, length) == 0 &&
            strcmp(m->backbone->low[i] + length, "_pointwise/BatchNorm") == 0)
            return true;
    return false;
}

static struct pm_node *activated(const struct maker *m, const char *name, struct pm_node *x)
{
    return pm_net_add(m->net, pm_arena_printf(m->net->arena, "%s/%s", name, relu(m)), x, "%s",
                      relu(m));
}

/* Builds a module's three convolutions with an activation before each. The previous convolution
 * applies that activation if it can. */
static struct pm_node *residual_of(const struct maker *m, const struct block *b, const char *scope,
                                   struct pm_node *x, struct pm_node *shortcut, int stride,
                                   int rate)
{
    for (int i = 0; i < SEPARABLES; i++) {
        const char *name = pm_arena_printf(m->net->arena, "%s/separable_conv%d", scope, i + 1);
        const bool last = i == SEPARABLES - 1, apart = joined(m, name);
        const struct separable s = {
            .filters = b->depth[i], .stride = last ? stride : 1, .rate = rate,
            .outer = last || apart ? NULL : relu(m), .residual = last ? shortcut : NULL,
        };

        x = separable(m, name, x, &s);
        if (apart)
            x = activated(m, name, x);
    }
    return x;
}

static struct pm_node *shortcut_of(const struct maker *m, const struct block *b, const char *scope,
                                   struct pm_node *x, int stride)
{
    const char *name = name_of(m, scope, "shortcut");

    if (b->shortcut == SUM)
        return x;
    x = pm_net_add(m->net, name, x, "conv2d filters=%d kernel=1 stride=%d "
                   "bias=false weights_init=truncated(0.09)", b->depth[SEPARABLES - 1], stride);
    return norm(m, name, x, NULL, NULL);
}

static struct pm_node *module(const struct maker *m, const struct block *b, const char *scope,
                              struct pm_node *x, bool is_activated, int stride, int rate)
{
    struct pm_node *shortcut = shortcut_of(m, b, scope, x, stride), *y = x;

    if (!is_activated)
        y = activated(m, scope, x);
    if (!m->bounded)
        return residual_of(m, b, scope, y, shortcut, stride, rate);
    y = residual_of(m, b, scope, y, NULL, stride, rate);
    return pm_net_add_many(m->net, scope, (struct pm_node *[]){ y, shortcut }, 2,
                           "add activation=relu6");
}

static struct pm_node *last_module(const struct maker *m, const struct block *b, const char *scope,
                                   struct pm_node *x, int stride, int rate)
{
    for (int i = 0; i < SEPARABLES; i++) {
        const struct separable s = {
            b->depth[i], i == SEPARABLES - 1 ? stride : 1, rate * m->grid[i], relu(m), relu(m),
            NULL,
        };

        x = separable(m, pm_arena_printf(m->net->arena, "%s/separable_conv%d", scope, i + 1), x,
                      &s);
    }
    return x;
}

static struct pm_node *stem(const struct maker *m, const char *end, struct pm_node *x, int filters,
                            int stride)
{
    const char *activation = pm_arena_printf(m->net->arena, "activation=%s", relu(m));

    return pm_nets_conv_bn(m->net, m->o, name_of(m, m->backbone->name, end), x, activation,
                           "conv2d filters=%d %s weights_init=truncated(0.09)", filters,
                           pm_nets_window_same(m->net->arena, 3, stride, 1));
}

static struct pm_node *build(const struct pm_backbone *backbone, const struct block *blocks,
                             int count, struct pm_net *net, struct pm_node *x,
                             const struct pm_deeplab_options *o)
{
    struct maker m = { net, backbone, &o->nets, o->bounded_activation, { 0 }, { 0 } };
    bool is_activated = true; /* x is activated */

    if (!pm_nets_atrous_begin(net, backbone->name, &o->nets, backbone->min_stride,
                              backbone->max_stride, &m.atrous) ||
        !pm_backbone_grid(net, backbone, o, SEPARABLES, m.grid))
        return x;
    m.atrous.stride = 2;
    x = stem(&m, "entry_flow/conv1_1", x, 32, 2);
    x = stem(&m, "entry_flow/conv1_2", x, 64, 1);
    for (const struct block *b = blocks; b < blocks + count; b++)
        for (int unit = 1; unit <= b->units; unit++) {
            const char *scope = pm_arena_printf(net->arena, "%s/%s/unit_%d/xception_module",
                                                backbone->name, b->scope, unit);
            int stride = b->stride, rate;

            pm_nets_atrous_step(&m.atrous, &stride, &rate);
            x = b->shortcut == NONE ? last_module(&m, b, scope, x, stride, rate)
                                    : module(&m, b, scope, x, is_activated, stride, rate);
            is_activated = m.bounded;
        }
    return x;
}

#define REST(units)                                                                                \
    { "middle_flow/block1", { 728, 728, 728 }, 1, units, SUM },                                    \
    { "exit_flow/block1", { 728, 1024, 1024 }, 2, 1, CONV },                                       \
    { "exit_flow/block2", { 1536, 1536, 2048 }, 1, 1, NONE }
#define ENTRY(number, width, stride)                                                               \
    { "entry_flow/block" #number, { width, width, width }, stride, 1, CONV }

static const struct block blocks_41[] = {
    ENTRY(1, 128, 2), ENTRY(2, 256, 2), ENTRY(3, 728, 2), REST(8),
};
static const struct block blocks_65[] = {
    ENTRY(1, 128, 2), ENTRY(2, 256, 2), ENTRY(3, 728, 2), REST(16),
};
static const struct block blocks_71[] = {
    ENTRY(1, 128, 2), ENTRY(2, 256, 1), ENTRY(3, 256, 2), ENTRY(4, 728, 1), ENTRY(5, 728, 2),
    REST(16),
};

/* four, eight: the entry's blocks whose second convolution a decoder joins. */
#define XCEPTION(depth, four, eight)                                                               \
    static struct pm_node *build_##depth(struct pm_net *net, struct pm_node *images,               \
                                         const struct pm_deeplab_options *o)                       \
    {                                                                                              \
        return build(&pm_backbone_xception_##depth, blocks_##depth, PM_COUNT(blocks_##depth), net, \
                     images, o);                                                                   \
    }                                                                                              \
    const struct pm_backbone pm_backbone_xception_##depth = {                                      \
        .name = "xception_" #depth, .min_stride = 4, .max_stride = 32, .build = build_##depth,     \
        .low = { LOW(depth, "entry_flow/block" #four), LOW(depth, "entry_flow/block" #eight),      \
                 LOW(depth, "exit_flow/block1") },                                                 \
    }
#define LOW(depth, block)                                                                          \
    "xception_" #depth "/" block "/unit_1/xception_module/separable_conv2_pointwise/BatchNorm"

XCEPTION(41, 2, 3);
XCEPTION(65, 2, 3);
XCEPTION(71, 3, 5);
