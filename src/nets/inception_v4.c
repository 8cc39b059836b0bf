/* inception_v4: a stem of three forks, then four blocks A, seven B and three C. A reduction
 * separates two kinds. Every convolution has batch norm (no gamma) and relu. An auxiliary head uses
 * Mixed_6h. Both heads end in fully connected layers. */
#include "nets/nets.h"

#include <string.h>

static const struct pm_opt opts[] = {
    PM_NETS_KEEP_PROB(0.8), PM_NETS_BATCH_NORM(0.9997, 0.001), PM_NETS_AUX_HEAD,
    PM_NETS_INIT, { 0 },
};

#define A(name)                                                                                    \
    { name,                                                                                        \
      { "Conv2d_0a_1x1 96", "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96",                                  \
        "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96", "avg, Conv2d_0b_1x1 96" } }
#define B(name)                                                                                    \
    { name,                                                                                        \
      { "Conv2d_0a_1x1 384", "Conv2d_0a_1x1 192, Conv2d_0b_1x7 224, Conv2d_0c_7x1 256",            \
        "Conv2d_0a_1x1 192, Conv2d_0b_7x1 192, Conv2d_0c_1x7 224, Conv2d_0d_7x1 224, "             \
        "Conv2d_0e_1x7 256", "avg, Conv2d_0b_1x1 128" } }
#define C(name)                                                                                    \
    { name,                                                                                        \
      { "Conv2d_0a_1x1 256", "Conv2d_0a_1x1 384, Conv2d_0b_1x3 256 & Conv2d_0c_3x1 256",           \
        "Conv2d_0a_1x1 384, Conv2d_0b_3x1 448, Conv2d_0c_1x3 512, "                                \
        "Conv2d_0d_1x3 256 & Conv2d_0e_3x1 256", "avg, Conv2d_0b_1x1 256" } }

static const struct { const char *name, *branches[5]; } blocks[] = {
    { "Mixed_3a", { "max/2v", "Conv2d_0a_3x3/2v 96" } },
    { "Mixed_4a",
      { "Conv2d_0a_1x1 64, Conv2d_1a_3x3/1v 96",
        "Conv2d_0a_1x1 64, Conv2d_0b_1x7 64, Conv2d_0c_7x1 64, Conv2d_1a_3x3/1v 96" } },
    { "Mixed_5a", { "Conv2d_1a_3x3/2v 192", "max/2v" } },
    A("Mixed_5b"), A("Mixed_5c"), A("Mixed_5d"), A("Mixed_5e"),
    { "Mixed_6a",
      { "Conv2d_1a_3x3/2v 384", "Conv2d_0a_1x1 192, Conv2d_0b_3x3 224, Conv2d_1a_3x3/2v 256",
        "max/2v" } },
    B("Mixed_6b"), B("Mixed_6c"), B("Mixed_6d"), B("Mixed_6e"), B("Mixed_6f"), B("Mixed_6g"),
    B("Mixed_6h"),
    { "Mixed_7a",
      { "Conv2d_0a_1x1 192, Conv2d_1a_3x3/2v 192",
        "Conv2d_0a_1x1 256, Conv2d_0b_1x7 256, Conv2d_0c_7x1 320, Conv2d_1a_3x3/2v 320",
        "max/2v" } },
    C("Mixed_7b"), C("Mixed_7c"), C("Mixed_7d"),
};

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    const struct pm_branches b = { net, o, "InceptionV4", "variance_scaling(2)", false };
    struct pm_node *x;

    if (!pm_nets_fits(net, "inception_v4", images, 107))
        return;
    x = pm_branches_chain(&b, "", images,
                          "Conv2d_1a_3x3/2v 32, Conv2d_2a_3x3/1v 32, Conv2d_2b_3x3 64");
    for (int i = 0; i < (int)PM_COUNT(blocks); i++) {
        x = pm_branches_block(&b, blocks[i].name, x, blocks[i].branches);
        if (o->aux_head && strcmp(blocks[i].name, "Mixed_6h") == 0)
            pm_nets_add_auxiliary(net, heads,
                                  pm_branches_auxiliary(&b, "AuxLogits/Conv2d_2a",
                                                        "AuxLogits/Aux_logits", x, num_classes));
    }
    x = pm_net_add(net, "InceptionV4/Logits/AvgPool_1a", x, "global_pool");
    x = pm_net_add(net, "InceptionV4/Logits/Dropout_1b", x, "dropout keep=%.9g",
                   (double)o->keep_prob);
    x = pm_net_add(net, "InceptionV4/Logits/PreLogitsFlatten", x, "flatten");
    pm_heads_add(net, heads, "logits",
                 pm_net_add(net, "InceptionV4/Logits/Logits", x,
                            "fully_connected units=%d weights_init=%s", num_classes,
                            pm_nets_logits_init(net, o, "xavier")));
}

const struct pm_net_row pm_net_row_inception_v4 = {
    .name = "inception_v4", .help = "seventeen blocks of branches, for 299x299, auxiliary head",
    .task = "classification",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 299, .default_channels = 3, .preprocessing = "inception",
    .weight_decay = 4e-5f, .build = build,
};
