/* resnet_v1: a 7x7 convolution, a max pool and four blocks of bottleneck units, global average.
 *
 * A unit is y = relu(shortcut + BN(conv 1x1(relu(BN(conv 3x3(relu(BN(conv 1x1(x))))))))). The stride
 * of blocks 1 to 3 sits in the block's LAST unit, on its 3x3 convolution, so that a block's features
 * come out at its input's resolution until the very end. Strided convolutions larger than 1x1 pad
 * symmetrically, whatever the input's size, which TensorFlow's SAME would not. Works at any size. */
#include "nets/nets.h"

#define CONV "conv2d filters=%d kernel=%d stride=%d bias=false weights_init=variance_scaling(2) "
/* The fused kernel never goes below this epsilon; the original asks for 1e-5. */
#define BATCH_NORM "batch_norm decay=%.17g epsilon=1.001e-5 activation=%s"

struct resnet_v1_cfg {
    double batch_norm_decay; /* double: 1 - decay is what counts */
};

static const struct pm_opt opts[] = {
    PM_DOUBLE(resnet_v1_cfg, batch_norm_decay, 0.997, 0, 1,
              "decay of batch norm's moving averages; lower for runs of few steps"),
    { 0 },
};

enum { BLOCKS = 4 };
struct depths {
    const char *scope;
    int units[BLOCKS];
};

static struct pm_node *batch_norm(struct pm_net *net, const struct resnet_v1_cfg *cfg,
                                  const char *conv, struct pm_node *x, const char *activation)
{
    return pm_net_add(net, pm_arena_printf(net->arena, "%s/BatchNorm", conv), x, BATCH_NORM,
                      cfg->batch_norm_decay, activation);
}

/* Convolution without bias whose size is ceil(in / stride) on every input, taken from pixel 0 on. */
static struct pm_node *conv2d_same(struct pm_net *net, const char *name, struct pm_node *x,
                                   int filters, int kernel, int stride)
{
    const int before = (kernel - 1) / 2, after = kernel - 1 - before;

    if (stride == 1 || kernel == 1)
        return pm_net_add(net, name, x, CONV "padding=same", filters, kernel, stride);
    return pm_net_add(net, name, x, CONV "padding=explicit pad=[%d,%d,%d,%d]", filters, kernel,
                      stride, before, after, before, after);
}

static struct pm_node *conv_bn(struct pm_net *net, const struct resnet_v1_cfg *cfg,
                               const char *name, struct pm_node *x, int filters, int kernel,
                               int stride, const char *activation)
{
    return batch_norm(net, cfg, name, conv2d_same(net, name, x, filters, kernel, stride),
                      activation);
}

/* x at stride, with `filters` channels: a subsampling where the channels fit, else a projection. */
static struct pm_node *shortcut(struct pm_net *net, const struct resnet_v1_cfg *cfg,
                                const char *name, struct pm_node *x, int filters, int stride)
{
    if (x->out_shape.dim[3] != filters)
        return conv_bn(net, cfg, name, x, filters, 1, stride, "none");
    if (stride == 1)
        return x;
    return pm_net_add(net, name, x, "max_pool kernel=1 stride=%d padding=valid", stride);
}

static struct pm_node *bottleneck(struct pm_net *net, const struct resnet_v1_cfg *cfg,
                                  const char *scope, struct pm_node *x, int width, int stride)
{
    struct pm_arena *a = net->arena;
    const char *last = pm_arena_printf(a, "%s/conv3", scope);
    struct pm_node *in = shortcut(net, cfg, pm_arena_printf(a, "%s/shortcut", scope), x,
                                  4 * width, stride);

    x = conv_bn(net, cfg, pm_arena_printf(a, "%s/conv1", scope), x, width, 1, 1, "relu");
    x = conv_bn(net, cfg, pm_arena_printf(a, "%s/conv2", scope), x, width, 3, stride, "relu");
    x = conv2d_same(net, last, x, 4 * width, 1, 1);
    return pm_net_add_many(net, pm_arena_printf(a, "%s/BatchNorm", last),
                           (struct pm_node *[]){ x, in }, 2, BATCH_NORM,
                           cfg->batch_norm_decay, "relu");
}

static void build(const struct depths *d, const struct resnet_v1_cfg *cfg, struct pm_net *net,
                  struct pm_node *x, int num_classes, struct pm_heads *heads)
{
    struct pm_arena *a = net->arena;

    x = conv_bn(net, cfg, pm_arena_printf(a, "%s/conv1", d->scope), x, 64, 7, 2, "relu");
    x = pm_net_add(net, pm_arena_printf(a, "%s/pool1", d->scope), x,
                   "max_pool kernel=3 stride=2 padding=same");
    for (int block = 0; block < BLOCKS; block++)
        for (int unit = 1; unit <= d->units[block]; unit++) {
            const int stride = block < BLOCKS - 1 && unit == d->units[block] ? 2 : 1;
            const char *scope = pm_arena_printf(a, "%s/block%d/unit_%d/bottleneck_v1", d->scope,
                                                block + 1, unit);
            x = bottleneck(net, cfg, scope, x, 64 << block, stride);
        }
    x = pm_net_add(net, pm_arena_printf(a, "%s/pool5", d->scope), x, "global_pool");
    x = pm_net_add(net, pm_arena_printf(a, "%s/logits", d->scope), x, "conv2d filters=%d kernel=1 "
                   "bias=true weights_init=variance_scaling(2)", num_classes);
    heads->logits = pm_net_add(net, pm_arena_printf(a, "%s/SpatialSqueeze", d->scope), x,
                               "flatten");
}

#define RESNET(depth, ...)                                                                         \
    static void build_##depth(struct pm_net *net, struct pm_node *images, int num_classes,         \
                              const void *config, struct pm_heads *heads)                          \
    {                                                                                              \
        static const struct depths d = { "resnet_v1_" #depth, { __VA_ARGS__ } };                   \
        build(&d, config, net, images, num_classes, heads);                                        \
    }                                                                                              \
    const struct pm_net_row pm_net_row_resnet_v1_##depth = {                                       \
        .name = "resnet_v1_" #depth, .help = "residual net of " #depth " layers, first version",   \
        .opts = opts, .cfg_size = sizeof(struct resnet_v1_cfg),                                    \
        .default_size = 224, .default_channels = 3, .preprocessing = "vgg",                        \
        .weight_decay = 1e-4f, .build = build_##depth,                                             \
    }

RESNET(50, 3, 4, 6, 3);
RESNET(101, 3, 4, 23, 3);
RESNET(152, 3, 8, 36, 3);
RESNET(200, 3, 24, 36, 3);
