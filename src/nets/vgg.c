/* vgg: five stages of 3x3 convolutions, each halved by a 2x2 max pool, then three fully connected
 * layers made as convolutions: fc6 covers the 7x7 that are left of 224x224, and larger pictures give
 * a map of scores, which global_pool averages. With fc_conv_padding "same" fc6 keeps the map's size,
 * so that smaller pictures work. */
#include "nets/nets.h"

static const struct pm_opt opts[] = {
    PM_NETS_KEEP_PROB(0.5), PM_NETS_GLOBAL_POOL,
    PM_ENUM(pm_nets_options, fc_conv_padding, 0, "valid|same",
            "padding of fc6; same: images from 32x32 work, with global_pool for those above it"),
    { 0 },
};

enum { STAGES = 5 };
static const int widths[STAGES] = { 64, 128, 256, 512, 512 };

static void build(const char *scope, const int convs[STAGES], struct pm_net *net,
                  struct pm_node *images, int num_classes, const struct pm_nets_options *o,
                  struct pm_heads *heads)
{
    struct pm_arena *a = net->arena;
    struct pm_node *x = images;

    if (!pm_nets_fits(net, scope, images, o->fc_conv_padding ? 32 : 224))
        return;
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 1; i <= convs[stage]; i++)
            x = pm_net_add(net, pm_arena_printf(a, "%s/conv%d/conv%d_%d", scope, stage + 1,
                                                stage + 1, i), x,
                           "conv2d filters=%d kernel=3 activation=relu", widths[stage]);
        x = pm_net_add(net, pm_arena_printf(a, "%s/pool%d", scope, stage + 1), x,
                       "max_pool kernel=2 stride=2 padding=valid");
    }
    x = pm_nets_fc_conv(net, o, pm_arena_printf(a, "%s/fc6", scope), x, 4096, 7, "xavier",
                        "constant(0)");
    x = pm_nets_fc_conv(net, o, pm_arena_printf(a, "%s/fc7", scope), x, 4096, 1, "xavier",
                        "constant(0)");
    heads->logits = pm_nets_fc_scores(net, scope, x, num_classes, "xavier", o->global_pool);
}

#define VGG(which, text, ...)                                                                      \
    static void build_##which(struct pm_net *net, struct pm_node *images, int num_classes,         \
                              const void *cfg, struct pm_heads *heads)                             \
    {                                                                                              \
        static const int convs[STAGES] = { __VA_ARGS__ };                                          \
        build("vgg_" #which, convs, net, images, num_classes, cfg, heads);                         \
    }                                                                                              \
    const struct pm_net_row pm_net_row_vgg_##which = {                                             \
        .name = "vgg_" #which, .help = text " layers of 3x3 convolutions, fully connected end",    \
        .opts = opts, .cfg_size = sizeof(struct pm_nets_options),                                          \
        .default_size = 224, .default_channels = 3, .preprocessing = "vgg",                        \
        .weight_decay = 5e-4f, .build = build_##which,                                             \
    }

VGG(a, "11", 1, 1, 2, 2, 2);
VGG(16, "16", 2, 2, 3, 3, 3);
VGG(19, "19", 2, 2, 4, 4, 4);
