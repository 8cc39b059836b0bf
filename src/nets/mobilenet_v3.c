/* mobilenet_v3 and mobilenet_edgetpu: inverted residuals with windows of 3x3 and 5x5, hard swish in
 * the deeper part, and squeeze-and-excitation: the depthwise output is multiplied by gates computed
 * from its own average. The minimalistic forms have 3x3 windows, relu and no gates. EdgeTPU's first
 * blocks are fused: one full convolution in place of expansion and depthwise. Widths are base x
 * multiplier, rounded to multiples of 8 but never below nine tenths; the last layer's follow only a
 * multiplier above 1. Depthwise weights have no weight decay. */
#include "nets/nets.h"

struct mobilenet_v3_cfg {
    double multiplier;
    float keep_prob;
    double batch_norm_decay; /* double: 1 - decay is what counts */
};

/* A block: expansion = rounded(factor x its input), out, window, stride. */
enum { GATE = 1, SWISH = 2, FUSED = 4, APART = 8 /* never adds its input */ };
struct row {
    double factor;
    int out, kernel, stride, flags, times;
};
struct form {
    const char *name, *scope, *first; /* activation of the first and the last convolutions */
    int first_width, last, features;  /* features 0: no layer between average and logits */
    const struct row *rows;
    int count;
    bool minimalistic;
};

static const struct row large[] = {
    { 1, 16, 3, 1, 0, 1 },
    { 4, 24, 3, 2, 0, 1 },
    { 3, 24, 3, 1, 0, 1 },
    { 3, 40, 5, 2, GATE, 1 },
    { 3, 40, 5, 1, GATE, 2 },
    { 6, 80, 3, 2, SWISH, 1 },
    { 2.5, 80, 3, 1, SWISH, 1 },
    { 184.0 / 80, 80, 3, 1, SWISH, 2 },
    { 6, 112, 3, 1, GATE | SWISH, 2 },
    { 6, 160, 5, 2, GATE | SWISH, 1 },
    { 6, 160, 5, 1, GATE | SWISH, 2 },
};
static const struct row small[] = {
    { 1, 16, 3, 2, GATE, 1 },
    { 72.0 / 16, 24, 3, 2, 0, 1 },
    { 88.0 / 24, 24, 3, 1, 0, 1 },
    { 4, 40, 5, 2, GATE | SWISH, 1 },
    { 6, 40, 5, 1, GATE | SWISH, 2 },
    { 3, 48, 5, 1, GATE | SWISH, 2 },
    { 6, 96, 5, 2, GATE | SWISH, 1 },
    { 6, 96, 5, 1, GATE | SWISH, 2 },
};
static const struct row edgetpu[] = {
    { 1, 16, 3, 1, FUSED, 1 },
    { 8, 32, 3, 2, FUSED, 1 },
    { 4, 32, 3, 1, FUSED, 3 },
    { 8, 48, 3, 2, FUSED, 1 },
    { 4, 48, 3, 1, FUSED, 3 },
    { 8, 96, 3, 2, 0, 1 },
    { 4, 96, 3, 1, 0, 3 },
    { 8, 96, 3, 1, APART, 1 },
    { 4, 96, 3, 1, 0, 3 },
    { 8, 160, 5, 2, 0, 1 },
    { 4, 160, 5, 1, 0, 3 },
    { 8, 192, 3, 1, 0, 1 },
};

struct maker {
    struct pm_net *net;
    const struct form *form;
    const struct mobilenet_v3_cfg *cfg;
};

static const char *name_of(const struct maker *m, const char *scope, const char *end)
{
    return pm_arena_printf(m->net->arena, "%s/%s", scope, end);
}

static struct pm_node *batch_norm(const struct maker *m, const char *conv, struct pm_node *x,
                                  const char *activation)
{
    return pm_net_add(m->net, name_of(m, conv, "BatchNorm"), x,
                      "batch_norm decay=%.17g epsilon=0.001 activation=%s",
                      m->cfg->batch_norm_decay, activation);
}

static struct pm_node *conv_bn(const struct maker *m, const char *name, struct pm_node *x,
                               int filters, int kernel, int stride, const char *activation)
{
    x = pm_net_add(m->net, name, x, "conv2d filters=%d kernel=%d stride=%d bias=false "
                   "weights_init=truncated(0.09)", filters, kernel, stride);
    return batch_norm(m, name, x, activation);
}

/* y = x times a gate per channel: relu6(w2 relu(w1 average(x)) + 3) / 6. */
static struct pm_node *gate(const struct maker *m, const char *scope, struct pm_node *x)
{
    const int c = x->out_shape.dim[3];
    struct pm_node *g = pm_net_add(m->net, name_of(m, scope, "squeeze_excite/average"), x,
                                   "global_pool");

    g = pm_net_add(m->net, name_of(m, scope, "squeeze_excite/Conv"), g, "conv2d filters=%d "
                   "kernel=1 activation=relu weights_init=truncated(0.09)",
                   pm_nets_divisible(c / 4.0, 8));
    g = pm_net_add(m->net, name_of(m, scope, "squeeze_excite/Conv_1"), g, "conv2d filters=%d "
                   "kernel=1 weights_init=truncated(0.09)", c);
    g = pm_net_add(m->net, name_of(m, scope, "squeeze_excite/gate"), g, "hard_sigmoid");
    return pm_net_add_many(m->net, name_of(m, scope, "squeeze_excite/product"),
                           (struct pm_node *[]){ x, g }, 2, "multiply");
}

static struct pm_node *block(const struct maker *m, const struct row *r, int index,
                             struct pm_node *x)
{
    const char *scope = index ? pm_arena_printf(m->net->arena, "%s/expanded_conv_%d",
                                                m->form->scope, index)
                              : name_of(m, m->form->scope, "expanded_conv");
    const bool plain = m->form->minimalistic;
    const char *activation = r->flags & SWISH && !plain ? "hard_swish" : "relu";
    const int in = x->out_shape.dim[3], kernel = plain ? 3 : r->kernel;
    const int out = pm_nets_divisible(r->out * m->cfg->multiplier, 8);
    const int wide = pm_nets_divisible(r->factor * in, 8);
    struct pm_node *from = x;

    if (r->flags & FUSED) {
        if (wide > in) /* the first block, which does not widen, is its projection alone */
            x = conv_bn(m, name_of(m, scope, "expand"), x, wide, kernel, r->stride, activation);
    } else {
        const char *depthwise = name_of(m, scope, "depthwise");

        if (wide > in)
            x = conv_bn(m, name_of(m, scope, "expand"), x, wide, 1, 1, activation);
        x = pm_net_add(m->net, depthwise, x, "depthwise_conv2d kernel=%d stride=%d bias=false "
                       "regularize=false weights_init=truncated(0.09)", kernel, r->stride);
        x = batch_norm(m, depthwise, x, activation);
    }
    if (r->flags & GATE && !plain)
        x = gate(m, scope, x);
    x = conv_bn(m, name_of(m, scope, "project"), x, out, 1, 1, "none");
    if (r->stride > 1 || in != out || r->flags & APART)
        return x;
    return pm_net_add_many(m->net, name_of(m, scope, "output"), (struct pm_node *[]){ x, from }, 2,
                           "add");
}

static void build(const struct form *form, struct pm_net *net, struct pm_node *images,
                  int num_classes, const void *config, struct pm_heads *heads)
{
    const struct mobilenet_v3_cfg *cfg = config;
    const struct maker m = { net, form, cfg };
    struct pm_node *x = conv_bn(&m, name_of(&m, form->scope, "Conv"), images,
                                pm_nets_divisible(form->first_width * cfg->multiplier, 8), 3, 2,
                                form->first);
    int index = 0;

    for (int i = 0; i < form->count; i++)
        for (int k = 0; k < form->rows[i].times; k++)
            x = block(&m, &form->rows[i], index++, x);
    x = conv_bn(&m, name_of(&m, form->scope, "Conv_1"), x,
                pm_nets_divisible(form->last * (form->features || cfg->multiplier > 1
                                                    ? cfg->multiplier : 1), 8),
                1, 1, form->first);
    x = pm_net_add(net, name_of(&m, form->scope, "AvgPool2D"), x, "global_pool");
    if (form->features) {
        x = pm_net_add(net, name_of(&m, form->scope, "Conv_2"), x, "conv2d filters=%d kernel=1 "
                       "weights_init=truncated(0.09)",
                       pm_nets_divisible(form->features * (cfg->multiplier > 1 ? cfg->multiplier
                                                                               : 1), 8));
        x = pm_net_add(net, name_of(&m, form->scope, "Conv_2/activation"), x, form->first);
    }
    x = pm_net_add(net, name_of(&m, form->scope, "Logits/Dropout"), x, "dropout keep=%.9g",
                   (double)cfg->keep_prob);
    heads->logits = pm_nets_logits(net, name_of(&m, form->scope, "Logits/Conv2d_1c_1x1"), x,
                                   num_classes, "truncated(0.09)");
}

#define OPTS(factor)                                                                               \
    {                                                                                              \
        PM_DOUBLE(mobilenet_v3_cfg, multiplier, factor, 0.01, 4, "factor of every layer's width"), \
        PM_FLOAT(mobilenet_v3_cfg, keep_prob, 0.8, 0.01, 1,                                        \
                 "share of the features that dropout keeps"),                                      \
        PM_DOUBLE(mobilenet_v3_cfg, batch_norm_decay, 0.997, 0, 1,                                 \
                  "decay of batch norm's moving averages; lower for runs of few steps"),           \
        { 0 },                                                                                     \
    }
#define MOBILENET(id, factor, text, ...)                                                           \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *cfg, struct pm_heads *heads)                                \
    {                                                                                              \
        static const struct form form = { #id, __VA_ARGS__ };                                      \
        build(&form, net, images, num_classes, cfg, heads);                                        \
    }                                                                                              \
    static const struct pm_opt opts_##id[] = OPTS(factor);                                         \
    const struct pm_net_row pm_net_row_##id = {                                                    \
        .name = #id, .help = text,                                                                 \
        .opts = opts_##id, .cfg_size = sizeof(struct mobilenet_v3_cfg),                            \
        .default_size = 224, .default_channels = 3, .preprocessing = "inception",                  \
        .weight_decay = 4e-5f, .build = build_##id,                                                \
    }

MOBILENET(mobilenet_v3_large, 1, "inverted residuals with gates and hard swish, the larger",
          "MobilenetV3", "hard_swish", 16, 960, 1280, large, PM_COUNT(large), false);
MOBILENET(mobilenet_v3_small, 1, "inverted residuals with gates and hard swish, the smaller",
          "MobilenetV3", "hard_swish", 16, 576, 1024, small, PM_COUNT(small), false);
MOBILENET(mobilenet_v3_large_minimalistic, 1, "mobilenet_v3_large of 3x3 windows and relu",
          "MobilenetV3", "relu", 16, 960, 1280, large, PM_COUNT(large), true);
MOBILENET(mobilenet_v3_small_minimalistic, 1, "mobilenet_v3_small of 3x3 windows and relu",
          "MobilenetV3", "relu", 16, 576, 1024, small, PM_COUNT(small), true);
MOBILENET(mobilenet_edgetpu, 1, "inverted residuals, the first ones fused",
          "MobilenetEdgeTPU", "relu", 32, 1280, 0, edgetpu, PM_COUNT(edgetpu), false);
MOBILENET(mobilenet_edgetpu_075, 0.75, "mobilenet_edgetpu, width x 0.75",
          "MobilenetEdgeTPU", "relu", 32, 1280, 0, edgetpu, PM_COUNT(edgetpu), false);
