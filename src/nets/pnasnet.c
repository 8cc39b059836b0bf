/* pnasnet: PNASNet-5, found by progressive search. It has one kind of cell. The cell halves the map
 * if its first operations have a stride of 2. */
#include "nets/nets.h"

#define CELL                                                                                       \
    { { "sep5 1 + max3 1", "sep7 0 + max3 0", "sep5 0 + sep3 0", "sep3 4 + max3 0",                \
        "sep3 1 + id0 0" }, { true, true } }

#define PNASNET(id, text, size, paths, ...)                                                        \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *options, struct pm_heads *heads)                            \
    {                                                                                              \
        static const struct pm_nas nas = { #id, { CELL, CELL }, false, __VA_ARGS__ };        \
        pm_nas_build(&nas, net, images, num_classes, options, heads);                              \
    }                                                                                              \
    static const struct pm_opt opts_##id[] = {                                                     \
        PM_NETS_KEEP_PROB(0.5), PM_NETS_BATCH_NORM(0.9997, 0.001), PM_NETS_AUX_HEAD,               \
        PM_NETS_DROP_PATH(paths, 250000), PM_NETS_INIT, { 0 },                                     \
    };                                                                                             \
    const struct pm_net_row pm_net_row_##id = {                                                    \
        .name = #id, .help = text, .opts = opts_##id, .cfg_size = sizeof(struct pm_nets_options),  \
        .task = "classification",                                                                  \
        .default_size = size, .default_channels = 3, .preprocessing = "inception",                 \
        .weight_decay = 4e-5f, .build = build_##id,                                                \
    }

PNASNET(pnasnet_mobile, "9 progressively searched cells, the smaller, auxiliary head", 224, 1, 9,
        54, 32);
PNASNET(pnasnet_large, "12 progressively searched cells for 331x331, auxiliary head", 331, 0.6, 12,
        216, 96);
