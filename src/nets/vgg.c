/* vgg: five stages of 3x3 convolutions, each followed by a 2x2 max pool, then three fully connected
 * layers implemented as convolutions. fc6 covers the 7x7 map that remains of 224x224 images. Larger
 * images give a map of scores, which global_pool averages. With fc_conv_padding "same" fc6 keeps
 * the map's size, so smaller images work. With PyTorch's conventions maps of a multiple of 7x7 are
 * averaged down to 7x7 before fc6, unless global_pool requests the map of scores. */
#include "nets/nets.h"

#define OPTS(torch)                                                                                \
    {                                                                                              \
        PM_NETS_KEEP_PROB(0.5), PM_NETS_GLOBAL_POOL, PM_NETS_INIT,                                 \
        PM_ENUM(pm_nets_options, fc_conv_padding, 0, "valid|same",                                 \
                "padding of fc6; same: images from 32x32 work, with global_pool for those above "  \
                "it"),                                                                             \
        PM_NETS_CONVENTIONS(torch), { 0 },                                                         \
    }
static const struct pm_opt opts[] = OPTS(0), torch_opts[] = OPTS(1);

enum { STAGES = 5 };
static const int widths[STAGES] = { 64, 128, 256, 512, 512 };

/* Averages down to 7x7: PyTorch's adaptive average if its windows are equal. */
static struct pm_node *down_to_seven(struct pm_net *net, const char *scope, struct pm_node *x)
{
    const int *dim = x->out_shape.dim, h = dim[1] / 7, w = dim[2] / 7;

    if (net->error || (dim[1] == 7 && dim[2] == 7))
        return x;
    if (dim[1] % 7 || dim[2] % 7) {
        net->error =
            pm_fail(PM_ECONFIG,
                    "model %s: the last map is %dx%d, but PyTorch's conventions average it to 7x7: "
                    "set an input size that is a multiple of 224, or model.global_pool to true",
                    scope, dim[1], dim[2]);
        return x;
    }
    return pm_net_add(net, pm_arena_printf(net->arena, "%s/avgpool", scope), x,
                      "avg_pool kernel=[%d,%d] stride=[%d,%d] padding=valid", h, w, h, w);
}

static void build(const char *scope, const int convs[STAGES], struct pm_net *net,
                  struct pm_node *images, int num_classes, const struct pm_nets_options *o,
                  struct pm_heads *heads)
{
    struct pm_arena *a = net->arena;
    const char *init = pm_nets_init(net, o, "xavier");
    struct pm_node *x = images;

    pm_nets_begin(net, o);
    if (!pm_nets_fits(net, scope, images, o->fc_conv_padding ? 32 : 224))
        return;
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 1; i <= convs[stage]; i++)
            x = pm_net_add(net, pm_arena_printf(a, "%s/conv%d/conv%d_%d", scope, stage + 1,
                                                stage + 1, i), x,
                           "conv2d filters=%d kernel=3 activation=relu weights_init=%s",
                           widths[stage], init);
        x = pm_net_add(net, pm_arena_printf(a, "%s/pool%d", scope, stage + 1), x,
                       "max_pool kernel=2 stride=2 padding=valid");
    }
    if (o->conventions && !o->global_pool && !o->fc_conv_padding)
        x = down_to_seven(net, scope, x);
    x = pm_nets_fc_conv(net, o, pm_arena_printf(a, "%s/fc6", scope), x, 4096, 7, init,
                        "constant(0)");
    x = pm_nets_fc_conv(net, o, pm_arena_printf(a, "%s/fc7", scope), x, 4096, 1, init,
                        "constant(0)");
    pm_heads_add(net, heads, "logits",
                 pm_nets_fc_scores(net, scope, x, num_classes, pm_nets_logits_init(net, o, init),
                                   o->global_pool));
}

#define ROW(which, text, table, source, other)                                                     \
    {                                                                                              \
        .name = "vgg_" #which, .help = text " layers of 3x3 convolutions, fully connected end",    \
        .task = "classification",                                                                  \
        .opts = table, .cfg_size = sizeof(struct pm_nets_options), .default_size = 224,            \
        .default_channels = 3, .preprocessing = source, .weight_decay = 5e-4f,                     \
        .build = build_##which, .torch = other,                                                    \
    }
#define VGG(which, text, ...)                                                                      \
    static void build_##which(struct pm_net *net, struct pm_node *images, int num_classes,         \
                              const void *cfg, struct pm_heads *heads)                             \
    {                                                                                              \
        static const int convs[STAGES] = { __VA_ARGS__ };                                          \
        build("vgg_" #which, convs, net, images, num_classes, cfg, heads);                         \
    }                                                                                              \
    static const struct pm_net_row torch_##which =                                                 \
        ROW(which, text, torch_opts, "torch", NULL);                                               \
    const struct pm_net_row pm_net_row_vgg_##which = ROW(which, text, opts, "vgg", &torch_##which)

VGG(a, "11", 1, 1, 2, 2, 2);
VGG(16, "16", 2, 2, 3, 3, 3);
VGG(19, "19", 2, 2, 4, 4, 4);
