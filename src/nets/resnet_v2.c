/* resnet_v2: residual units that normalise before they convolve. conv1 has a bias and neither batch
 * norm nor relu; a unit is y = shortcut + conv 1x1(relu(BN(conv 3x3(relu(BN(conv 1x1(p))))))) with
 * p = relu(BN(x)), its projection shortcut is taken of p; a last batch norm follows block 4.
 *
 * As in the first version the stride of blocks 1 to 3 sits in the block's LAST unit, on its 3x3
 * convolution, and strided convolutions larger than 1x1 pad symmetrically. Works at any size. */
#include "nets/nets.h"

#define BATCH_NORM "batch_norm decay=%.17g epsilon=1.001e-5 activation=relu"
#define INIT "weights_init=variance_scaling(2)"

struct resnet_v2_cfg {
    double batch_norm_decay; /* double: 1 - decay is what counts */
};

static const struct pm_opt opts[] = {
    PM_DOUBLE(resnet_v2_cfg, batch_norm_decay, 0.997, 0, 1,
              "decay of batch norm's moving averages; lower for runs of few steps"),
    { 0 },
};

enum { BLOCKS = 4 };
struct depths {
    const char *scope;
    int units[BLOCKS];
};

/* Size ceil(in / stride) on every input, taken from pixel 0 on. */
static struct pm_node *conv2d_same(struct pm_net *net, const char *name, struct pm_node *x,
                                   int filters, int kernel, int stride, bool bias)
{
    const int before = (kernel - 1) / 2, after = kernel - 1 - before;
    const char *with = bias ? "true" : "false";

    if (stride == 1 || kernel == 1)
        return pm_net_add(net, name, x, "conv2d filters=%d kernel=%d stride=%d bias=%s " INIT,
                          filters, kernel, stride, with);
    return pm_net_add(net, name, x, "conv2d filters=%d kernel=%d stride=%d bias=%s " INIT
                      " padding=explicit pad=[%d,%d,%d,%d]", filters, kernel, stride, with, before,
                      after, before, after);
}

static struct pm_node *conv_bn(struct pm_net *net, const struct resnet_v2_cfg *cfg,
                               const char *name, struct pm_node *x, int filters, int kernel,
                               int stride)
{
    x = conv2d_same(net, name, x, filters, kernel, stride, false);
    return pm_net_add(net, pm_arena_printf(net->arena, "%s/BatchNorm", name), x, BATCH_NORM,
                      cfg->batch_norm_decay);
}

static struct pm_node *bottleneck(struct pm_net *net, const struct resnet_v2_cfg *cfg,
                                  const char *scope, struct pm_node *x, int width, int stride)
{
    struct pm_arena *a = net->arena;
    const char *name = pm_arena_printf(a, "%s/shortcut", scope);
    struct pm_node *in = x, *p = pm_net_add(net, pm_arena_printf(a, "%s/preact", scope), x,
                                            BATCH_NORM, cfg->batch_norm_decay);

    if (x->out_shape.dim[3] != 4 * width)
        in = conv2d_same(net, name, p, 4 * width, 1, stride, true);
    else if (stride > 1)
        in = pm_net_add(net, name, x, "max_pool kernel=1 stride=%d padding=valid", stride);
    x = conv_bn(net, cfg, pm_arena_printf(a, "%s/conv1", scope), p, width, 1, 1);
    x = conv_bn(net, cfg, pm_arena_printf(a, "%s/conv2", scope), x, width, 3, stride);
    x = conv2d_same(net, pm_arena_printf(a, "%s/conv3", scope), x, 4 * width, 1, 1, true);
    return pm_net_add_many(net, scope, (struct pm_node *[]){ in, x }, 2, "add");
}

static void build(const struct depths *d, const struct resnet_v2_cfg *cfg, struct pm_net *net,
                  struct pm_node *x, int num_classes, struct pm_heads *heads)
{
    struct pm_arena *a = net->arena;

    x = conv2d_same(net, pm_arena_printf(a, "%s/conv1", d->scope), x, 64, 7, 2, true);
    x = pm_net_add(net, pm_arena_printf(a, "%s/pool1", d->scope), x,
                   "max_pool kernel=3 stride=2 padding=same");
    for (int block = 0; block < BLOCKS; block++)
        for (int unit = 1; unit <= d->units[block]; unit++) {
            const int stride = block < BLOCKS - 1 && unit == d->units[block] ? 2 : 1;
            const char *scope = pm_arena_printf(a, "%s/block%d/unit_%d/bottleneck_v2", d->scope,
                                                block + 1, unit);
            x = bottleneck(net, cfg, scope, x, 64 << block, stride);
        }
    x = pm_net_add(net, pm_arena_printf(a, "%s/postnorm", d->scope), x, BATCH_NORM,
                   cfg->batch_norm_decay);
    x = pm_net_add(net, pm_arena_printf(a, "%s/pool5", d->scope), x, "global_pool");
    heads->logits = pm_nets_logits(net, pm_arena_printf(a, "%s/logits", d->scope), x, num_classes,
                                   "variance_scaling(2)");
}

#define RESNET(depth, ...)                                                                         \
    static void build_##depth(struct pm_net *net, struct pm_node *images, int num_classes,         \
                              const void *config, struct pm_heads *heads)                          \
    {                                                                                              \
        static const struct depths d = { "resnet_v2_" #depth, { __VA_ARGS__ } };                   \
        build(&d, config, net, images, num_classes, heads);                                        \
    }                                                                                              \
    const struct pm_net_row pm_net_row_resnet_v2_##depth = {                                       \
        .name = "resnet_v2_" #depth, .help = "residual net of " #depth " layers, second version",  \
        .opts = opts, .cfg_size = sizeof(struct resnet_v2_cfg),                                    \
        .default_size = 224, .default_channels = 3, .preprocessing = "inception",                  \
        .weight_decay = 1e-4f, .build = build_##depth,                                             \
    }

RESNET(50, 3, 4, 6, 3);
RESNET(101, 3, 4, 23, 3);
RESNET(152, 3, 8, 36, 3);
RESNET(200, 3, 24, 36, 3);
