/* alexnet_v2 ("one weird trick" without its split over two GPUs) and overfeat. Both have five
 * convolutions with three max pools, then three fully connected layers implemented as convolutions.
 * Their input sizes are 224x224 and 231x231. Larger images give a map of scores, which global_pool
 * averages. */
#include "nets/nets.h"

static const struct pm_opt opts[] = {
    PM_NETS_KEEP_PROB(0.5), PM_NETS_GLOBAL_POOL, PM_NETS_INIT, { 0 },
};

enum { CONVS = 5 };
struct form {
    const char *name, *bias_init; /* initial biases of the five convolutions */
    int least;                    /* least image size in pixels */
    int pool;                     /* window of the pools after layers 1, 2 and 5; stride 2 */
    int fc6_kernel, fc6_units;
    struct { int filters, kernel, stride; bool valid; } convs[CONVS];
};

static struct pm_node *conv(const struct form *f, int i, struct pm_net *net, struct pm_node *x,
                            const struct pm_nets_options *o)
{
    x = pm_net_add(net, pm_arena_printf(net->arena, "%s/conv%d", f->name, i + 1), x,
                   "conv2d filters=%d kernel=%d stride=%d padding=%s activation=relu bias_init=%s "
                   "weights_init=%s", f->convs[i].filters, f->convs[i].kernel, f->convs[i].stride,
                   f->convs[i].valid ? "valid" : "same", f->bias_init,
                   pm_nets_init(net, o, "xavier"));
    if (i == 2 || i == 3)
        return x;
    return pm_net_add(net, pm_arena_printf(net->arena, "%s/pool%d", f->name, i + 1), x,
                      "max_pool kernel=%d stride=2 padding=valid", f->pool);
}

static void build(const struct form *f, struct pm_net *net, struct pm_node *x, int num_classes,
                  const struct pm_nets_options *o, struct pm_heads *heads)
{
    static const char fc[] = "truncated(0.005)", bias[] = "constant(0.1)";
    struct pm_arena *a = net->arena;

    if (!pm_nets_fits(net, f->name, x, f->least))
        return;
    for (int i = 0; i < CONVS; i++)
        x = conv(f, i, net, x, o);
    x = pm_nets_fc_conv(net, o, pm_arena_printf(a, "%s/fc6", f->name), x, f->fc6_units,
                        f->fc6_kernel, fc, bias);
    x = pm_nets_fc_conv(net, o, pm_arena_printf(a, "%s/fc7", f->name), x, 4096, 1, fc, bias);
    pm_heads_add(net, heads, "logits",
                 pm_nets_fc_scores(net, f->name, x, num_classes,
                                   pm_nets_logits_init(net, o, fc), o->global_pool));
}

#define ROW(id, text, size, ...)                                                                   \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *options, struct pm_heads *heads)                            \
    {                                                                                              \
        static const struct form form = { #id, __VA_ARGS__ };                                      \
        build(&form, net, images, num_classes, options, heads);                                    \
    }                                                                                              \
    const struct pm_net_row pm_net_row_##id = {                                                    \
        .name = #id, .help = text, .opts = opts, .cfg_size = sizeof(struct pm_nets_options),       \
        .task = "classification",                                                                  \
        .default_size = size, .default_channels = 3, .preprocessing = "vgg",                       \
        .weight_decay = 5e-4f, .build = build_##id,                                                \
    }

ROW(alexnet_v2, "five convolutions and three fully connected layers "
                "(2014)", 224, "constant(0.1)", 195,
    3, 5, 4096,
    { { 64, 11, 4, true }, { 192, 5, 1, false }, { 384, 3, 1, false }, { 384, 3, 1, false },
      { 256, 3, 1, false } });
ROW(overfeat, "five wide convolutions and three fully connected layers "
              "(2013)", 231, "constant(0)", 231,
    2, 6, 3072,
    { { 64, 11, 4, true }, { 256, 5, 1, true }, { 512, 3, 1, false }, { 1024, 3, 1, false },
      { 1024, 3, 1, false } });
