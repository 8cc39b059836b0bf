/* cifarnet: two 5x5 convolutions with max pooling and local response normalisation, then three
 * fully connected layers. It was designed for 32x32 colour images. Weight decay covers fc3 and fc4
 * only. Any size from 4x4 works. */
#include "nets/nets.h"

static const struct pm_opt opts[] = { PM_NETS_KEEP_PROB(0.5), PM_NETS_INIT, { 0 } };

static struct pm_node *conv(struct pm_net *net, const struct pm_nets_options *o, const char *name,
                            struct pm_node *x)
{
    return pm_net_add(net, name, x, "conv2d filters=64 kernel=5 activation=relu weights_init=%s "
                      "regularize=false", pm_nets_init(net, o, "truncated(0.05)"));
}

static struct pm_node *pool(struct pm_net *net, const char *name, struct pm_node *x)
{
    return pm_net_add(net, name, x, "max_pool kernel=2 stride=2 padding=valid");
}

static struct pm_node *norm(struct pm_net *net, const char *name, struct pm_node *x)
{
    return pm_net_add(net, name, x, "local_response_norm radius=4 bias=1 alpha=%.9g beta=0.75",
                      0.001 / 9);
}

static struct pm_node *fc(struct pm_net *net, const char *name, struct pm_node *x, int units)
{
    return pm_net_add(net, name, x, "fully_connected units=%d activation=relu "
                      "weights_init=truncated(0.04) bias_init=constant(0.1)", units);
}

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    const char *own = pm_arena_printf(net->arena, "truncated(%.9g)", 1.0 / 192);
    struct pm_node *x = images;

    if (!pm_nets_fits(net, "cifarnet", images, 4))
        return;
    x = conv(net, o, "CifarNet/conv1", x);
    x = pool(net, "CifarNet/pool1", x);
    x = norm(net, "CifarNet/norm1", x);
    x = conv(net, o, "CifarNet/conv2", x);
    x = norm(net, "CifarNet/norm2", x);
    x = pool(net, "CifarNet/pool2", x);
    x = pm_net_add(net, "CifarNet/Flatten", x, "flatten");
    x = fc(net, "CifarNet/fc3", x, 384);
    x = pm_net_add(net, "CifarNet/dropout3", x, "dropout keep=%.9g", (double)o->keep_prob);
    x = fc(net, "CifarNet/fc4", x, 192);
    pm_heads_add(net, heads, "logits",
                 pm_net_add(net, "CifarNet/logits", x,
                            "fully_connected units=%d activation=none "
                            "weights_init=%s regularize=false",
                            num_classes, pm_nets_logits_init(net, o, own)));
}

const struct pm_net_row pm_net_row_cifarnet = {
    .name = "cifarnet", .help = "two convolutions and three fully connected layers, for CIFAR-10",
    .task = "classification",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 32, .default_channels = 3, .preprocessing = "cifarnet", .weight_decay = 0.004f,
    .build = build,
};
