/* overfeat: five convolutions with three 2x2 max pools, then three fully connected layers made as
 * convolutions. 231x231; larger pictures give a map of scores, which global_pool averages. */
#include "nets/nets.h"

static const struct pm_opt opts[] = {
    PM_NETS_KEEP_PROB(0.5), PM_NETS_GLOBAL_POOL, { 0 },
};

static struct pm_node *conv(struct pm_net *net, const char *name, struct pm_node *x, int filters,
                            int kernel, int stride, const char *padding)
{
    return pm_net_add(net, name, x, "conv2d filters=%d kernel=%d stride=%d padding=%s "
                      "activation=relu", filters, kernel, stride, padding);
}

static struct pm_node *pool(struct pm_net *net, const char *name, struct pm_node *x)
{
    return pm_net_add(net, name, x, "max_pool kernel=2 stride=2 padding=valid");
}

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    static const char fc[] = "truncated(0.005)", bias[] = "constant(0.1)";
    const struct pm_nets_options *o = options;
    struct pm_node *x = images;

    if (!pm_nets_fits(net, "overfeat", images, 231))
        return;
    x = conv(net, "overfeat/conv1", x, 64, 11, 4, "valid");
    x = pool(net, "overfeat/pool1", x);
    x = conv(net, "overfeat/conv2", x, 256, 5, 1, "valid");
    x = pool(net, "overfeat/pool2", x);
    x = conv(net, "overfeat/conv3", x, 512, 3, 1, "same");
    x = conv(net, "overfeat/conv4", x, 1024, 3, 1, "same");
    x = conv(net, "overfeat/conv5", x, 1024, 3, 1, "same");
    x = pool(net, "overfeat/pool5", x);
    x = pm_nets_fc_conv(net, o, "overfeat/fc6", x, 3072, 6, fc, bias);
    x = pm_nets_fc_conv(net, o, "overfeat/fc7", x, 4096, 1, fc, bias);
    heads->logits = pm_nets_fc_scores(net, "overfeat", x, num_classes, fc, o->global_pool);
}

const struct pm_net_row pm_net_row_overfeat = {
    .name = "overfeat", .help = "five wide convolutions and a fully connected end, of 2013",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 231, .default_channels = 3, .preprocessing = "vgg", .weight_decay = 5e-4f,
    .build = build,
};
