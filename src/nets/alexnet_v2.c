/* alexnet_v2 ("one weird trick" without its split over two GPUs): five convolutions with three max
 * pools, then three fully connected layers made as convolutions. 224x224; larger pictures give a map
 * of scores, which global_pool averages. */
#include "nets/nets.h"

static const struct pm_opt opts[] = {
    PM_NETS_KEEP_PROB(0.5), PM_NETS_GLOBAL_POOL, { 0 },
};

static struct pm_node *conv(struct pm_net *net, const char *name, struct pm_node *x, int filters,
                            int kernel, int stride, const char *padding)
{
    return pm_net_add(net, name, x, "conv2d filters=%d kernel=%d stride=%d padding=%s "
                      "activation=relu bias_init=constant(0.1)", filters, kernel, stride, padding);
}

static struct pm_node *pool(struct pm_net *net, const char *name, struct pm_node *x)
{
    return pm_net_add(net, name, x, "max_pool kernel=3 stride=2 padding=valid");
}

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    static const char fc[] = "truncated(0.005)", bias[] = "constant(0.1)";
    const struct pm_nets_options *o = options;
    struct pm_node *x = images;

    if (!pm_nets_fits(net, "alexnet_v2", images, 195))
        return;
    x = conv(net, "alexnet_v2/conv1", x, 64, 11, 4, "valid");
    x = pool(net, "alexnet_v2/pool1", x);
    x = conv(net, "alexnet_v2/conv2", x, 192, 5, 1, "same");
    x = pool(net, "alexnet_v2/pool2", x);
    x = conv(net, "alexnet_v2/conv3", x, 384, 3, 1, "same");
    x = conv(net, "alexnet_v2/conv4", x, 384, 3, 1, "same");
    x = conv(net, "alexnet_v2/conv5", x, 256, 3, 1, "same");
    x = pool(net, "alexnet_v2/pool5", x);
    x = pm_nets_fc_conv(net, o, "alexnet_v2/fc6", x, 4096, 5, fc, bias);
    x = pm_nets_fc_conv(net, o, "alexnet_v2/fc7", x, 4096, 1, fc, bias);
    heads->logits = pm_nets_fc_scores(net, "alexnet_v2", x, num_classes, fc, o->global_pool);
}

const struct pm_net_row pm_net_row_alexnet_v2 = {
    .name = "alexnet_v2", .help = "five convolutions and a fully connected end, of 2014",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 224, .default_channels = 3, .preprocessing = "vgg", .weight_decay = 5e-4f,
    .build = build,
};
