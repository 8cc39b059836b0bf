/* lenet: two 5x5 convolutions, each followed by a 2x2 max pool, and two fully connected layers. It
 * was designed for 28x28 grey digits. Any size from 4x4 works: the first fully connected layer
 * reads the remaining map. */
#include "nets/nets.h"

static const struct pm_opt opts[] = { PM_NETS_KEEP_PROB(0.5), PM_NETS_INIT, { 0 } };

static struct pm_node *conv(struct pm_net *net, const struct pm_nets_options *o, const char *name,
                            struct pm_node *x, int filters)
{
    return pm_net_add(net, name, x, "conv2d filters=%d kernel=5 activation=relu weights_init=%s",
                      filters, pm_nets_init(net, o, "truncated(0.1)"));
}

static struct pm_node *pool(struct pm_net *net, const char *name, struct pm_node *x)
{
    return pm_net_add(net, name, x, "max_pool kernel=2 stride=2 padding=valid");
}

static struct pm_node *fc(struct pm_net *net, const char *name, struct pm_node *x, int units,
                          const char *activation, const char *init)
{
    return pm_net_add(net, name, x, "fully_connected units=%d activation=%s weights_init=%s",
                      units, activation, init);
}

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    struct pm_node *x = images;

    if (!pm_nets_fits(net, "lenet", images, 4))
        return;
    x = conv(net, o, "LeNet/conv1", x, 32);
    x = pool(net, "LeNet/pool1", x);
    x = conv(net, o, "LeNet/conv2", x, 64);
    x = pool(net, "LeNet/pool2", x);
    x = pm_net_add(net, "LeNet/Flatten", x, "flatten");
    x = fc(net, "LeNet/fc3", x, 1024, "relu", "truncated(0.1)");
    x = pm_net_add(net, "LeNet/dropout3", x, "dropout keep=%.9g", (double)o->keep_prob);
    pm_heads_add(net, heads, "logits",
                 fc(net, "LeNet/fc4", x, num_classes, "none",
                    pm_nets_logits_init(net, o, "truncated(0.1)")));
}

const struct pm_net_row pm_net_row_lenet = {
    .name = "lenet", .help = "two convolutions and two fully connected layers, for digits",
    .task = "classification",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 28, .default_channels = 1, .preprocessing = "lenet", .weight_decay = 0,
    .build = build,
};
