/* crnn: convolutions, then recurrent layers over the columns, for text recognition (Shi et al., "An
 * End-to-End Trainable Neural Network for Image-based Sequence Recognition", 2015). Convolutions
 * and pools are those of crnn_net in the text recognition fork of TensorFlow's Object Detection
 * API. Pictures of 32 rows become one row, with a step for every four columns. Two bidirectional
 * LSTM layers follow, each with a dense layer as in the fork's encoder; the last gives the
 * logits, or the sequence that the task's attention reads. */
#include "nets/nets.h"

static const struct pm_opt opts[] = {
    PM_NETS_DEPTH(1, 8), PM_NETS_DIVISIBLE, PM_NETS_BATCH_NORM(0.99, 0.001), PM_NETS_INIT, { 0 },
};

static struct pm_node *conv(struct pm_net *net, const struct pm_nets_options *o, const char *name,
                            struct pm_node *x, int filters, const char *kernel,
                            const char *padding)
{
    return pm_nets_conv_bn(net, o, pm_arena_printf(net->arena, "CRNN/Convnet/%s", name), x,
                           "activation=relu", "conv2d filters=%d kernel=%s padding=%s "
                           "weights_init=%s", pm_nets_depth(o, filters), kernel, padding,
                           pm_nets_init(net, o, "variance_scaling(2)"));
}

static struct pm_node *pool(struct pm_net *net, const char *name, struct pm_node *x,
                            const char *stride)
{
    return pm_net_add(net, pm_arena_printf(net->arena, "CRNN/Convnet/%s", name), x,
                      "max_pool kernel=2 stride=%s padding=same", stride);
}

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    struct pm_node *x = images;

    if (!pm_nets_fits_text(net, "crnn", images))
        return;
    x = pool(net, "pool1", conv(net, o, "conv1", x, 64, "3", "same"), "2");
    x = pool(net, "pool2", conv(net, o, "conv2", x, 128, "3", "same"), "2");
    x = conv(net, o, "conv3", x, 256, "3", "same");
    x = conv(net, o, "conv4", x, 256, "3", "same");
    x = pool(net, "pool3", x, "[2,1]");
    x = conv(net, o, "conv5", x, 512, "3", "same");
    x = conv(net, o, "conv6", x, 512, "3", "same");
    x = pool(net, "pool4", x, "[2,1]");
    x = conv(net, o, "conv7", x, 512, "[2,1]", "valid");
    x = pm_nets_recurrent(net, o, "CRNN/BidirectionalRnn_0", x, true);
    x = pm_nets_recurrent(net, o, "CRNN/BidirectionalRnn_1", x, net->ends.sequence);
    pm_nets_text_end(net, o, "CRNN/logits", x, num_classes, heads);
}

const struct pm_net_row pm_net_row_crnn = {
    .name = "crnn", .help = "reads words: convolutions and two bidirectional LSTM layers, for "
                            "pictures of 32 rows",
    .task = "recognition",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 32, .default_channels = 3, .preprocessing = "ssd", .weight_decay = 0,
    .build = build,
};
