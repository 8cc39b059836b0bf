/* nasnet: NASNet-A, found by search. It has normal cells and separate reduction cells. The
 * reduction cells are at one third and two thirds of the depth and, for large images, twice in the
 * stem. */
#include "nets/nets.h"

/* The normal cell and the cell that halves the map. */
#define CELLS                                                                                      \
    { { { "sep5 0 + sep3 1", "sep5 1 + sep3 1", "avg3 0 + id0 1", "avg3 1 + avg3 1",               \
          "sep3 0 + id0 0" }, { true } },                                                          \
      { { "sep5 0 + sep7 1", "max3 0 + sep7 1", "avg3 0 + sep5 1", "id0 3 + avg3 2",               \
          "sep3 2 + max3 0" }, { true, true, true } } }

#define NASNET(id, text, size, source, decay, share, average, epsilon, paths, steps, ...)          \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *options, struct pm_heads *heads)                            \
    {                                                                                              \
        static const struct pm_nas nas = { #id, CELLS, true, __VA_ARGS__ };                        \
        pm_nas_build(&nas, net, images, num_classes, options, heads);                              \
    }                                                                                              \
    static const struct pm_opt opts_##id[] = {                                                     \
        PM_NETS_KEEP_PROB(share), PM_NETS_BATCH_NORM(average, epsilon), PM_NETS_AUX_HEAD,          \
        PM_NETS_DROP_PATH(paths, steps), PM_NETS_INIT, { 0 },                                      \
    };                                                                                             \
    const struct pm_net_row pm_net_row_##id = {                                                    \
        .name = #id, .help = text, .opts = opts_##id, .cfg_size = sizeof(struct pm_nets_options),  \
        .task = "classification",                                                                  \
        .default_size = size, .default_channels = 3, .preprocessing = source,                      \
        .weight_decay = decay, .build = build_##id,                                                \
    }

NASNET(nasnet_cifar, "18 searched cells for 32x32, auxiliary head", 32, "cifarnet", 5e-4f, 1, 0.9,
       1e-5, 0.6, 937500, 18, 32, 0, false);
NASNET(nasnet_mobile, "12 searched cells, the smaller, auxiliary head", 224, "inception", 4e-5f,
       0.5, 0.9997, 0.001, 1, 250000, 12, 44, 32, false);
NASNET(nasnet_large, "18 searched cells for 331x331, auxiliary head", 331, "inception", 5e-5f, 0.5,
       0.9997, 0.001, 0.7, 250000, 18, 168, 96, true);
