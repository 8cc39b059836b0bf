/* text_resnet: residual units, then recurrent layers over the columns, for text recognition: the
 * encoder of the text recognition fork of TensorFlow's Object Detection API (Shi et al., "ASTER",
 * 2018). A 3x3 convolution and five blocks of units reduce pictures of 32 rows to one row, with a
 * step for every four columns. A unit is
 *     y = relu(shortcut + BN(conv 3x3(relu(BN(conv(x))))))
 * where conv is 1x1 and the shortcut is x. In the first unit of a block, conv is 3x3 with the
 * block's stride, and the shortcut is relu(BN(conv 3x3(x))) with the same stride. Two bidirectional
 * LSTM layers follow, each with a dense layer.
 *
 * The depth counts the convolutions, with those of the shortcuts. The fork has the units of depth
 * 50 only. Those of depth 30 are ours, in nearly the same proportion. */
#include "nets/nets.h"

static const struct pm_opt opts[] = {
    PM_NETS_DEPTH(1, 8), PM_NETS_DIVISIBLE, PM_NETS_BATCH_NORM(0.99, 0.001), PM_NETS_INIT, { 0 },
};

#define SCOPE "FeatureExtractor"
enum { BLOCKS = 5 };
static const int widths[BLOCKS] = { 32, 64, 128, 256, 512 };

struct maker {
    struct pm_net *net;
    const struct pm_nets_options *o;
};

static struct pm_node *conv(const struct maker *m, const char *unit, const char *name,
                            struct pm_node *x, const char *rest, int filters, int kernel,
                            const char *stride)
{
    return pm_nets_conv_bn(m->net, m->o, pm_arena_printf(m->net->arena, "%s/%s", unit, name), x,
                           rest, "conv2d filters=%d kernel=%d stride=%s padding=same "
                           "weights_init=%s", pm_nets_depth(m->o, filters), kernel, stride,
                           pm_nets_init(m->net, m->o, "variance_scaling(2)"));
}

static struct pm_node *unit(const struct maker *m, const char *name, struct pm_node *x, int filters,
                            const char *stride)
{
    struct pm_node *y = conv(m, name, "Conv1", x, "activation=relu", filters, stride ? 3 : 1,
                             stride ? stride : "1");
    struct pm_node *in[2] = { y, x };

    in[0] = conv(m, name, "Conv2", y, "activation=none", filters, 3, "1");
    if (stride)
        in[1] = conv(m, name, "ShortCut", x, "activation=relu", filters, 3, stride);
    return pm_net_add_many(m->net, pm_arena_printf(m->net->arena, "%s/add", name), in, 2,
                           "add activation=relu");
}

static struct pm_node *blocks(const struct maker *m, struct pm_node *x, const int units[BLOCKS])
{
    const char *scope = SCOPE "/Convnet/ResNet";

    x = conv(m, scope, "Conv0", x, "activation=relu", widths[0], 3, "1");
    for (int k = 0; k < BLOCKS; k++)
        for (int j = 0; j < units[k]; j++)
            x = unit(m, pm_arena_printf(m->net->arena, "%s/Block_%d/Unit_%d", scope, k + 1, j + 1),
                     x, widths[k], j > 0 ? NULL : k < 2 ? "2" : "[2,1]");
    return x;
}

static void build(const char *row, const int units[BLOCKS], struct pm_net *net,
                  struct pm_node *images, int num_classes, const struct pm_nets_options *o,
                  struct pm_heads *heads)
{
    const struct maker m = { net, o };
    struct pm_node *x;

    if (!pm_nets_fits_text(net, row, images))
        return;
    x = blocks(&m, images, units);
    for (int k = 0; k < 2; k++)
        x = pm_nets_recurrent(
            net, o, pm_arena_printf(net->arena, SCOPE "/BidirectionalRnn_Branch_0_%d", k), x, true);
    pm_nets_text_end(net, o, "Predictor/logits", x, num_classes, heads);
}

#define TEXT_RESNET(depth, ...)                                                                    \
    static void build_##depth(struct pm_net *net, struct pm_node *images, int num_classes,         \
                              const void *options, struct pm_heads *heads)                         \
    {                                                                                              \
        static const int units[BLOCKS] = { __VA_ARGS__ };                                          \
        build("text_resnet" #depth, units, net, images, num_classes, options, heads);              \
    }                                                                                              \
    const struct pm_net_row pm_net_row_text_resnet##depth = {                                      \
        .name = "text_resnet" #depth,                                                              \
        .help = "reads words: " #depth " convolutions in residual units and two bidirectional "    \
                "LSTM layers, for pictures of 32 rows",                                            \
        .task = "recognition", .opts = opts, .cfg_size = sizeof(struct pm_nets_options),           \
        .default_size = 32, .default_channels = 3, .preprocessing = "ssd", .weight_decay = 0,      \
        .build = build_##depth,                                                                    \
    };
TEXT_RESNET(30, 2, 2, 3, 3, 2)
TEXT_RESNET(50, 3, 4, 6, 6, 3)
