/* resnet_v1 and resnet_v2: a 7x7 convolution, a max pool, four blocks of bottleneck units and a
 * global average. A unit of the first version is
 *     y = relu(shortcut + BN(conv 1x1(relu(BN(conv 3x3(relu(BN(conv 1x1(x))))))))).
 * The second version normalises before it convolves: conv1 has a bias and neither batch norm nor
 * relu. A unit is y = shortcut + conv 1x1(relu(BN(conv 3x3(relu(BN(conv 1x1(p))))))) with p =
 * relu(BN(x)). Its projection shortcut reads p. A last batch norm follows block 4.
 *
 * The stride of blocks 1 to 3 is in the block's LAST unit, on its 3x3 convolution. So a block's
 * features keep the input's resolution up to the last unit. Strided convolutions larger than 1x1
 * pad symmetrically for every input size, unlike TensorFlow's SAME. With PyTorch's conventions the
 * stride is in the FIRST unit of blocks 2 to 4, and the pool pads symmetrically too. resnet_v1_18
 * and 34 exist only in PyTorch; their units have two 3x3 convolutions. Works at any size. Without
 * root_block the 7x7 convolution and the pool are omitted, for small images.
 *
 * The backbones of DeepLab are of the first version and end with block 4. Its units' dilations are
 * multiplied by multi_grid. The beta backbones start with three 3x3 convolutions instead of the 7x7
 * one. Those of 18 layers have units of two 3x3 convolutions with the stride on the second. */
#include "nets/deeplab.h"
#include "nets/extractors.h"

#include <string.h>

#define OPTS(decay, epsilon, ...)                                                                  \
    {                                                                                              \
        PM_NETS_BATCH_NORM(decay, epsilon), PM_NETS_INIT, PM_NETS_OUTPUT_STRIDE,                   \
        PM_BOOL(pm_nets_options, root_block, true,                                                 \
                "start with a 7x7 convolution and a pool, which divide the size by 4"),            \
        __VA_ARGS__                                                                                \
    }
/* The fused kernel never uses a smaller epsilon; the original asks for 1e-5. */
static const struct pm_opt opts_v2[] = OPTS(0.997, 1.001e-5, { 0 });
static const struct pm_opt opts_v1[] =
    OPTS(0.997, 1.001e-5, PM_NETS_DEPTH(1, 8), PM_NETS_CONVENTIONS(0), { 0 });
static const struct pm_opt torch_opts[] =
    OPTS(0.9, 1e-5, PM_NETS_DEPTH(1, 8), PM_NETS_CONVENTIONS(1), { 0 });

enum { BLOCKS = 4 };
enum kind { BASIC, BOTTLENECK, PREACT /* PREACT: the second version */, LITE };
static const char *const kinds[] = { "basic_v1", "bottleneck_v1", "bottleneck_v2",
                                     "lite_bottleneck_v1" };
struct depths {
    const char *scope;
    int units[BLOCKS];
    enum kind kind;
    int beta; /* width of the first of three initial convolutions; 0: one convolution */
};
struct maker {
    struct pm_net *net;
    const struct depths *d;
    const struct pm_nets_options *o;
    struct pm_nets_atrous atrous;
    const struct pm_backbone *backbone; /* NULL: a classifier */
    const int *grid;                    /* dilations of block 4's units; NULL: 1 */
    bool whole;                         /* the last unit of a block has its input's size; its output
                                         * is subsampled for the next block */
};

static const char *name_of(const struct maker *m, const char *scope, const char *end)
{
    return pm_arena_printf(m->net->arena, "%s/%s", scope, end);
}

static int depth(const struct maker *m, int width)
{
    const int scaled = (int)(width * m->o->depth_multiplier);

    if (m->d->kind == PREACT)
        return width;
    return scaled < m->o->min_depth ? m->o->min_depth : scaled;
}

static struct pm_node *conv_bn(const struct maker *m, const char *name, struct pm_node *x,
                               int filters, int kernel, int stride, int rate, const char *rest)
{
    return pm_nets_conv_bn(m->net, m->o, name, x, rest, "conv2d filters=%d %s weights_init=%s",
                           filters, pm_nets_window_same(m->net->arena, kernel, stride, rate),
                           pm_nets_init(m->net, m->o, "variance_scaling(2)"));
}

/* Builds a convolution with bias and without batch norm. */
static struct pm_node *conv_bias(const struct maker *m, const char *name, struct pm_node *x,
                                 int filters, int kernel, int stride)
{
    return pm_net_add(m->net, name, x, "conv2d filters=%d %s bias=true weights_init=%s",
                      filters,
                      pm_nets_window_same(m->net->arena, kernel, stride, 1),
                      pm_nets_init(m->net, m->o, "variance_scaling(2)"));
}

static struct pm_node *subsampled(const struct maker *m, const char *name, struct pm_node *x,
                                  int stride)
{
    return stride == 1 ? x : pm_net_add(m->net, name, x,
                                        "max_pool kernel=1 stride=%d padding=valid", stride);
}

static struct pm_node *shortcut_v1(const struct maker *m, const char *scope, struct pm_node *x,
                                   int out, int stride)
{
    const char *name = name_of(m, scope, "shortcut");

    return x->out_shape.dim[3] == out ? subsampled(m, name, x, stride)
                                      : conv_bn(m, name, x, out, 1, stride, 1, "activation=none");
}

/* Builds relu(shortcut + BN(x)) of a unit; x is its last convolution. A decoder joins the output of
 * some units' batch norm. */
static struct pm_node *sum_v1(const struct maker *m, const char *scope, const char *last,
                              struct pm_node *x, struct pm_node *in)
{
    const char *name = name_of(m, last, "BatchNorm");

    for (size_t i = 0; m->backbone && i < PM_COUNT(m->backbone->low); i++)
        if (strcmp(m->backbone->low[i], name) == 0) {
            x = pm_nets_batch_norm(m->net, m->o, name, x, NULL, "");
            return pm_net_add_many(m->net, scope, (struct pm_node *[]){ x, in }, 2,
                                   "add activation=relu");
        }
    return pm_nets_batch_norm(m->net, m->o, name, x, in, "activation=relu");
}

/* y = relu(shortcut + BN(conv 3x3(relu(BN(conv 3x3(x)))))), with the stride on the first
 * convolution. The lite unit has it on the second. */
static struct pm_node *basic_v1(const struct maker *m, const char *scope, struct pm_node *x,
                                int width, int out, int stride, int rate)
{
    const char *last = name_of(m, scope, "conv2");
    const int first = m->d->kind == LITE ? 1 : stride;
    struct pm_node *in = shortcut_v1(m, scope, x, out, stride);

    (void)width;
    x = conv_bn(m, name_of(m, scope, "conv1"), x, out, 3, first, rate, "activation=relu");
    x = pm_net_add(m->net, last, x, "conv2d filters=%d %s bias=false weights_init=%s", out,
                   pm_nets_window_same(m->net->arena, 3, stride / first, rate),
                   pm_nets_init(m->net, m->o, "variance_scaling(2)"));
    return sum_v1(m, scope, last, x, in);
}

/* Returns the activation inside a unit. After its sum it is always relu. */
static const char *inner(const struct maker *m)
{
    return pm_arena_printf(m->net->arena, "activation=%s", pm_nets_activation(m->o, "relu"));
}

static struct pm_node *bottleneck_v1(const struct maker *m, const char *scope, struct pm_node *x,
                                     int width, int out, int stride, int rate)
{
    const char *last = name_of(m, scope, "conv3"), *activation = inner(m);
    struct pm_node *in = shortcut_v1(m, scope, x, out, stride);

    x = conv_bn(m, name_of(m, scope, "conv1"), x, width, 1, 1, 1, activation);
    x = conv_bn(m, name_of(m, scope, "conv2"), x, width, 3, stride, rate, activation);
    x = pm_net_add(m->net, last, x, "conv2d filters=%d kernel=1 bias=false weights_init=%s", out,
                   pm_nets_init(m->net, m->o, "variance_scaling(2)"));
    return sum_v1(m, scope, last, x, in);
}

static struct pm_node *bottleneck_v2(const struct maker *m, const char *scope, struct pm_node *x,
                                     int width, int out, int stride, int rate)
{
    const char *name = name_of(m, scope, "shortcut");
    struct pm_node *p = pm_nets_batch_norm(m->net, m->o, name_of(m, scope, "preact"), x, NULL,
                                           "activation=relu");
    struct pm_node *in = x->out_shape.dim[3] == out ? subsampled(m, name, x, stride)
                                                    : conv_bias(m, name, p, out, 1, stride);

    x = conv_bn(m, name_of(m, scope, "conv1"), p, width, 1, 1, 1, "activation=relu");
    x = conv_bn(m, name_of(m, scope, "conv2"), x, width, 3, stride, rate, "activation=relu");
    x = conv_bias(m, name_of(m, scope, "conv3"), x, out, 1, 1);
    return pm_net_add_many(m->net, scope, (struct pm_node *[]){ in, x }, 2, "add");
}

static struct pm_node *first_layers(const struct maker *m, struct pm_node *x)
{
    static const char *const ends[] = { "conv1_1", "conv1_2", "conv1_3" };
    const char *name = name_of(m, m->d->scope, "conv1");
    const int width = m->d->beta;

    if (m->d->kind == PREACT)
        return conv_bias(m, name, x, 64, 7, 2);
    if (width == 0)
        return conv_bn(m, name, x, 64, 7, 2, 1,
                       pm_arena_printf(m->net->arena, "activation=%s",
                                       pm_nets_activation(m->o, "relu")));
    for (int i = 0; i < 3; i++)
        x = conv_bn(m, name_of(m, m->d->scope, ends[i]), x, i == 2 ? 2 * width : width, 3,
                    i == 0 ? 2 : 1, 1, "activation=relu");
    return x;
}

/* Builds the root. It is never dilated: with it, output_stride is at least 4. */
static struct pm_node *root(struct maker *m, struct pm_node *x)
{
    m->atrous.stride = 4;
    x = first_layers(m, x);
    return pm_net_add(m->net, name_of(m, m->d->scope, "pool1"), x, "max_pool kernel=3 stride=2 %s",
                      m->o->conventions ? "padding=explicit pad=[1,1,1,1]" : "padding=same");
}

/* Returns a unit's stride. PyTorch's is in the first unit of blocks 2 to 4. */
static int stride_of(const struct maker *m, int block, int unit)
{
    if (m->o->conventions)
        return block > 0 && unit == 1 ? 2 : 1;
    return block < BLOCKS - 1 && unit == m->d->units[block] ? 2 : 1;
}

static struct pm_node *block_of(struct maker *m, int block, struct pm_node *x)
{
    static struct pm_node *(*const makers[])(const struct maker *, const char *, struct pm_node *,
                                             int, int, int, int) = {
        basic_v1, bottleneck_v1, bottleneck_v2, basic_v1
    };
    const enum kind kind = m->d->kind;

    for (int unit = 1; unit <= m->d->units[block]; unit++) {
        int stride = stride_of(m, block, unit), rate, width = depth(m, 64 << block);
        const char *scope = pm_arena_printf(m->net->arena, "%s/block%d/unit_%d/%s", m->d->scope,
                                            block + 1, unit, kinds[kind]);
        const int out = kind == BASIC || kind == LITE ? width : 4 * width;

        pm_nets_atrous_step(&m->atrous, &stride, &rate);
        if (m->grid && block == BLOCKS - 1)
            rate *= m->grid[unit - 1];
        x = makers[kind](m, scope, x, width, out, m->whole ? 1 : stride, rate);
        if (m->whole && !(m->o->short_end && block == BLOCKS - 2))
            x = subsampled(m, name_of(m, scope, "subsampled"), x, stride);
    }
    return x;
}

static struct pm_node *blocks(struct maker *m, struct pm_node *x)
{
    for (int block = 0; block < BLOCKS - m->o->short_end; block++)
        x = block_of(m, block, x);
    return x;
}

static void build(const struct depths *d, const struct pm_nets_options *o, struct pm_net *net,
                  struct pm_node *x, int num_classes, struct pm_heads *heads)
{
    struct maker m = { .net = net, .d = d, .o = o };

    if (d->kind != PREACT)
        pm_nets_begin(net, o);
    if (!pm_nets_atrous_begin(net, d->scope, o, o->root_block ? 4 : 1, o->root_block ? 32 : 8,
                              &m.atrous))
        return;
    x = blocks(&m, o->root_block ? root(&m, x) : x);
    if (d->kind == PREACT)
        x = pm_nets_batch_norm(net, o, name_of(&m, d->scope, "postnorm"), x, NULL,
                               "activation=relu");
    x = pm_net_add(net, name_of(&m, d->scope, "pool5"), x, "global_pool");
    pm_heads_add(net, heads, "logits",
                 pm_nets_logits(net, name_of(&m, d->scope, "logits"), x, num_classes,
                                pm_nets_logits_init(net, o,
                                                    pm_nets_init(net, o, "variance_scaling(2)"))));
}

static struct pm_node *backbone(const struct depths *d, const struct pm_backbone *b,
                                struct pm_net *net, struct pm_node *x,
                                const struct pm_deeplab_options *o)
{
    struct pm_nets_options nets = o->nets;
    int grid[3];
    struct maker m = { .net = net, .d = d, .o = &nets, .backbone = b, .grid = grid };

    nets.depth_multiplier = 1;
    if (!pm_nets_atrous_begin(net, b->name, &nets, b->min_stride, b->max_stride, &m.atrous) ||
        !pm_backbone_grid(net, b, o, d->units[BLOCKS - 1], grid))
        return x;
    return blocks(&m, root(&m, x));
}

#define ROW(id, number, text, table, source, other)                                                \
    {                                                                                              \
        .name = "resnet_" #id, .help = "residual net of " number " layers, " text " version",      \
        .task = "classification",                                                                  \
        .opts = table, .cfg_size = sizeof(struct pm_nets_options), .default_size = 224,            \
        .default_channels = 3, .preprocessing = source, .weight_decay = 1e-4f, .build = build_##id,\
        .slim_preprocessing = "vgg", .torch = other,                                               \
    }
#define BUILD(id, kind, ...)                                                                       \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *options, struct pm_heads *heads)                            \
    {                                                                                              \
        static const struct depths d = { "resnet_" #id, { __VA_ARGS__ }, kind };                   \
        build(&d, options, net, images, num_classes, heads);                                       \
    }
#define RESNET_V1(depth, ...)                                                                      \
    BUILD(v1_##depth, BOTTLENECK, __VA_ARGS__)                                                     \
    static const struct pm_net_row torch_##depth =                                                 \
        ROW(v1_##depth, #depth, "first", torch_opts, "torch", NULL);                               \
    const struct pm_net_row pm_net_row_resnet_v1_##depth =                                         \
        ROW(v1_##depth, #depth, "first", opts_v1, "vgg", &torch_##depth)
#define RESNET_V2(depth, ...)                                                                      \
    BUILD(v2_##depth, PREACT, __VA_ARGS__)                                                         \
    const struct pm_net_row pm_net_row_resnet_v2_##depth =                                         \
        ROW(v2_##depth, #depth, "second", opts_v2, "vgg", NULL)
/* Defines a net that only PyTorch has, with its conventions as the default. */
#define RESNET_BASIC(depth, ...)                                                                   \
    BUILD(v1_##depth, BASIC, __VA_ARGS__)                                                          \
    const struct pm_net_row pm_net_row_resnet_v1_##depth =                                         \
        ROW(v1_##depth, #depth, "first", torch_opts, "torch", NULL)

RESNET_BASIC(18, 2, 2, 2, 2);
RESNET_BASIC(34, 3, 4, 6, 3);
RESNET_V1(50, 3, 4, 6, 3);
RESNET_V1(101, 3, 4, 23, 3);
RESNET_V1(152, 3, 8, 36, 3);
RESNET_V1(200, 3, 24, 36, 3);
RESNET_V2(50, 3, 4, 6, 3);
RESNET_V2(101, 3, 4, 23, 3);
RESNET_V2(152, 3, 8, 36, 3);
RESNET_V2(200, 3, 24, 36, 3);

/* unit1..3: the units of blocks 1 to 3 whose last convolution a decoder joins. */
#define LOW(scope, block, unit, conv)                                                              \
    "resnet_" #scope "/block" #block "/unit_" #unit "/" conv "/BatchNorm"
#define BACKBONE(id, scope, beta, kind, conv, unit1, unit2, unit3, ...)                            \
    static struct pm_node *backbone_##id(struct pm_net *net, struct pm_node *images,               \
                                         const struct pm_deeplab_options *o)                       \
    {                                                                                              \
        static const struct depths d = { "resnet_" #scope, { __VA_ARGS__ }, kind, beta };          \
        return backbone(&d, &pm_backbone_resnet_##id, net, images, o);                             \
    }                                                                                              \
    const struct pm_backbone pm_backbone_resnet_##id = {                                           \
        .name = "resnet_" #id, .min_stride = 4, .max_stride = 32, .build = backbone_##id,          \
        .low = { LOW(scope, 1, unit1, conv), LOW(scope, 2, unit2, conv),                           \
                 LOW(scope, 3, unit3, conv) },                                                     \
    }

BACKBONE(v1_18, v1_18, 0, LITE, "lite_bottleneck_v1/conv2", 1, 1, 1, 2, 2, 2, 2);
BACKBONE(v1_18_beta, v1_18, 16, LITE, "lite_bottleneck_v1/conv2", 1, 1, 1, 2, 2, 2, 2);
BACKBONE(v1_50, v1_50, 0, BOTTLENECK, "bottleneck_v1/conv3", 2, 3, 5, 3, 4, 6, 3);
BACKBONE(v1_50_beta, v1_50, 64, BOTTLENECK, "bottleneck_v1/conv3", 2, 3, 5, 3, 4, 6, 3);
BACKBONE(v1_101, v1_101, 0, BOTTLENECK, "bottleneck_v1/conv3", 2, 3, 22, 3, 4, 23, 3);
BACKBONE(v1_101_beta, v1_101, 64, BOTTLENECK, "bottleneck_v1/conv3", 2, 3, 22, 3, 4, 23, 3);

/* unit1..4: the last unit of each block. */
#define BLOCK(depth, n, unit)                                                                      \
    { "block" #n, "resnet_v1_" #depth "/block" #n "/unit_" #unit "/bottleneck_v1/conv3/BatchNorm" }
#define EXTRACTOR(depth, unit1, unit2, unit3, unit4)                                               \
    static const struct depths depths_##depth = {                                                  \
        "resnet_v1_" #depth, { unit1, unit2, unit3, unit4 }, BOTTLENECK, 0                         \
    };                                                                                             \
    static struct pm_node *features_##depth(struct pm_net *net, struct pm_node *x,                 \
                                            const struct pm_nets_options *o)                       \
    {                                                                                              \
        struct maker m = { .net = net, .d = &depths_##depth, .o = o,                               \
                           .atrous = { o->output_stride, 1, 1 },                                   \
                           .whole = !o->conventions && o->output_stride == 0 };                    \
                                                                                                   \
        pm_nets_begin(net, o);                                                                     \
        return blocks(&m, root(&m, x));                                                            \
    }                                                                                              \
    static struct pm_node *second_##depth(struct pm_net *net, struct pm_node *crops,               \
                                          const struct pm_nets_options *o)                         \
    {                                                                                              \
        struct maker m = { .net = net, .d = &depths_##depth, .o = o, .atrous = { 0, 1, 1 } };      \
                                                                                                   \
        return block_of(&m, BLOCKS - 1, crops);                                                    \
    }                                                                                              \
    static const struct pm_extractor_map maps_##depth[] = { BLOCK(depth, 3, unit3) };              \
    const struct pm_extractor pm_extractor_resnet_v1_##depth = {                                   \
        .scope = "resnet_v1_" #depth, .least = 129, .build = features_##depth, .own_scale = true,  \
        .own_norm = true, .maps = maps_##depth, .count = 1,                                        \
        .levels = { BLOCK(depth, 1, unit1), BLOCK(depth, 2, unit2), BLOCK(depth, 3, unit3),        \
                    BLOCK(depth, 4, unit4) },                                                      \
        .coarse = "bottom_up_block", .first = 0, .second = second_##depth,                         \
    }

EXTRACTOR(50, 3, 4, 6, 3);
EXTRACTOR(101, 3, 4, 23, 3);
EXTRACTOR(152, 3, 8, 36, 3);
