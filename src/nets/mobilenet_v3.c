/* mobilenet_v3 and mobilenet_edgetpu: inverted residuals with windows of 3x3 and 5x5, hard swish in
 * the deeper part, and squeeze-and-excitation. Squeeze-and-excitation multiplies the depthwise
 * output by gates computed from its own average. The minimalistic forms have 3x3 windows, relu and
 * no gates. EdgeTPU's first blocks are fused: one full convolution replaces expansion and
 * depthwise. Widths are base x depth_multiplier, rounded to multiples of 8 but never below nine
 * tenths. Depthwise weights have no weight decay. Works at any size. With PyTorch's conventions
 * strided windows are padded symmetrically. Backbones of DeepLab end with the 1x1 convolution
 * before the average. The two "_seg" backbones have half the width in their last blocks. Detectors
 * end there too; their last blocks' outputs have half the width, but the first of these blocks
 * expands as in the classifier. */
#include "nets/deeplab.h"
#include "nets/extractors.h"

/* A block: expansion = rounded(factor x its input's width), output width, window, stride. */
enum { GATE = 1, SWISH = 2, FUSED = 4, APART = 8 /* never adds its input */ };
struct row {
    double factor;
    int out, kernel, stride, flags, times;
};
struct form {
    const char *name, *scope, *first; /* activation of the first and last convolutions */
    int first_width, last, features;  /* features 0: no layer between average and logits */
    const struct row *rows;
    int count;
    bool minimalistic;
};

/* The last three blocks. The first of them expands by factor. */
#define LAST(factor, out)                                                                          \
    { factor, out, 5, 2, GATE | SWISH, 1 }, { 6, out, 5, 1, GATE | SWISH, 2 }
#define LARGE                                                                                      \
    { 1, 16, 3, 1, 0, 1 },                                                                         \
    { 4, 24, 3, 2, 0, 1 },                                                                         \
    { 3, 24, 3, 1, 0, 1 },                                                                         \
    { 3, 40, 5, 2, GATE, 1 },                                                                      \
    { 3, 40, 5, 1, GATE, 2 },                                                                      \
    { 6, 80, 3, 2, SWISH, 1 },                                                                     \
    { 2.5, 80, 3, 1, SWISH, 1 },                                                                   \
    { 184.0 / 80, 80, 3, 1, SWISH, 2 },                                                            \
    { 6, 112, 3, 1, GATE | SWISH, 2 }
#define SMALL                                                                                      \
    { 1, 16, 3, 2, GATE, 1 },                                                                      \
    { 72.0 / 16, 24, 3, 2, 0, 1 },                                                                 \
    { 88.0 / 24, 24, 3, 1, 0, 1 },                                                                 \
    { 4, 40, 5, 2, GATE | SWISH, 1 },                                                              \
    { 6, 40, 5, 1, GATE | SWISH, 2 },                                                              \
    { 3, 48, 5, 1, GATE | SWISH, 2 }

static const struct row large[] = { LARGE, LAST(6, 160) };
static const struct row small[] = { SMALL, LAST(6, 96) };
static const struct row large_seg[] = { LARGE, LAST(3, 80) };
static const struct row small_seg[] = { SMALL, LAST(3, 48) };
static const struct row large_detection[] = { LARGE, LAST(6, 80) };
static const struct row small_detection[] = { SMALL, LAST(6, 48) };
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
    const struct pm_nets_options *o;
    struct pm_nets_atrous atrous;
};

static const char *name_of(const struct maker *m, const char *scope, const char *end)
{
    return pm_arena_printf(m->net->arena, "%s/%s", scope, end);
}

static struct pm_node *conv_bn(const struct maker *m, const char *name, struct pm_node *x,
                               int filters, int kernel, int stride, int rate,
                               const char *activation)
{
    return pm_nets_conv_bn(m->net, m->o, name, x,
                           pm_arena_printf(m->net->arena, "activation=%s", activation),
                           "conv2d filters=%d %s weights_init=%s", filters,
                           pm_nets_window(m->net->arena, m->o, kernel, stride, rate),
                           pm_nets_init(m->net, m->o, "truncated(0.09)"));
}

/* y = x times a gate per channel: relu6(w2 relu(w1 average(x)) + 3) / 6. */
static struct pm_node *gate(const struct maker *m, const char *scope, struct pm_node *x)
{
    const int c = x->out_shape.dim[3];
    const char *init = pm_nets_init(m->net, m->o, "truncated(0.09)");
    struct pm_node *g = pm_net_add(m->net, name_of(m, scope, "squeeze_excite/average"), x,
                                   "global_pool");

    g = pm_net_add(m->net, name_of(m, scope, "squeeze_excite/Conv"), g, "conv2d filters=%d "
                   "kernel=1 activation=relu weights_init=%s", pm_nets_divisible(c / 4.0, 8, 8),
                   init);
    g = pm_net_add(m->net, name_of(m, scope, "squeeze_excite/Conv_1"), g, "conv2d filters=%d "
                   "kernel=1 weights_init=%s", c, init);
    g = pm_net_add(m->net, name_of(m, scope, "squeeze_excite/gate"), g, "hard_sigmoid");
    return pm_net_add_many(m->net, name_of(m, scope, "squeeze_excite/product"),
                           (struct pm_node *[]){ x, g }, 2, "multiply");
}

static struct pm_node *block(struct maker *m, const struct row *r, int index, struct pm_node *x)
{
    const char *scope = index ? pm_arena_printf(m->net->arena, "%s/expanded_conv_%d",
                                                m->form->scope, index)
                              : name_of(m, m->form->scope, "expanded_conv");
    const bool plain = m->form->minimalistic;
    const char *activation = r->flags & SWISH && !plain ? "hard_swish" : "relu";
    const int in = x->out_shape.dim[3], kernel = plain ? 3 : r->kernel;
    const int out = pm_nets_depth(m->o, r->out), wide = pm_nets_divisible(r->factor * in, 8, 8);
    struct pm_node *from = x;
    int stride = r->stride, rate;

    pm_nets_atrous_step(&m->atrous, &stride, &rate);
    if (r->flags & FUSED) {
        if (wide > in) /* the first block does not expand: it is only a projection */
            x = conv_bn(m, name_of(m, scope, "expand"), x, wide, kernel, stride, rate, activation);
    } else {
        if (wide > in)
            x = conv_bn(m, name_of(m, scope, "expand"), x, wide, 1, 1, 1, activation);
        x = pm_nets_depthwise_bn(m->net, m->o, name_of(m, scope, "depthwise"), x, kernel, stride,
                                 rate, activation);
    }
    if (r->flags & GATE && !plain)
        x = gate(m, scope, x);
    x = conv_bn(m, name_of(m, scope, "project"), x, out, 1, 1, 1, "none");
    if (stride > 1 || in != out || r->flags & APART)
        return x;
    return pm_net_add_many(m->net, name_of(m, scope, "output"), (struct pm_node *[]){ x, from }, 2,
                           "add");
}

/* Builds the layers after the blocks: 1x1, average, 1x1 without batch norm (not in EdgeTPU),
 * logits. */
static struct pm_node *head(const struct maker *m, struct pm_node *x, int num_classes)
{
    const struct form *form = m->form;
    struct pm_net *net = m->net;
    const char *init = pm_nets_init(net, m->o, "truncated(0.09)");

    x = conv_bn(m, name_of(m, form->scope, "Conv_1"), x,
                form->features ? pm_nets_depth(m->o, form->last)
                               : pm_nets_last_depth(m->o, form->last), 1, 1, 1, form->first);
    x = pm_net_add(net, name_of(m, form->scope, "AvgPool2D"), x, "global_pool");
    if (form->features) {
        x = pm_net_add(net, name_of(m, form->scope, "Conv_2"), x, "conv2d filters=%d kernel=1 "
                       "weights_init=%s", pm_nets_last_depth(m->o, form->features), init);
        x = pm_net_add(net, name_of(m, form->scope, "Conv_2/activation"), x, form->first);
    }
    x = pm_net_add(net, name_of(m, form->scope, "Logits/Dropout"), x, "dropout keep=%.9g",
                   (double)m->o->keep_prob);
    return pm_nets_logits(net, name_of(m, form->scope, "Logits/Conv2d_1c_1x1"), x, num_classes,
                          pm_nets_logits_init(net, m->o, init));
}

static struct pm_node *blocks(struct maker *m, struct pm_node *x)
{
    const struct form *form = m->form;
    int index = 0;

    pm_nets_begin(m->net, m->o);
    x = pm_nets_mobile_begin(m->net, form->name, m->o, name_of(m, form->scope, "Conv"), x,
                             pm_nets_depth(m->o, form->first_width), form->first, &m->atrous);
    for (int i = 0; i < form->count; i++)
        for (int k = 0; k < form->rows[i].times; k++)
            x = block(m, &form->rows[i], index++, x);
    return x;
}

static void build(const struct form *form, struct pm_net *net, struct pm_node *x, int num_classes,
                  const struct pm_nets_options *o, struct pm_heads *heads)
{
    struct maker m = { net, form, o, { 0 } };

    pm_heads_add(net, heads, "logits", head(&m, blocks(&m, x), num_classes));
}

static struct pm_node *backbone(const struct form *form, struct pm_net *net, struct pm_node *x,
                                const struct pm_deeplab_options *o)
{
    struct pm_nets_options nets = o->nets;
    struct maker m = { net, form, &nets, { 0 } };

    nets.min_depth = nets.divisible_by = 8;
    x = blocks(&m, x);
    return conv_bn(&m, name_of(&m, form->scope, "Conv_1"), x, pm_nets_depth(&nets, form->last), 1,
                   1, 1, form->first);
}

#define OPTS(factor, last, decay, ...)                                                             \
    {                                                                                              \
        PM_NETS_DEPTH(factor, 8), PM_NETS_DIVISIBLE, PM_NETS_SCALE_LAST(last),                     \
        PM_NETS_KEEP_PROB(0.8), PM_NETS_BATCH_NORM(decay, 0.001), PM_NETS_OUTPUT_STRIDE,           \
        PM_NETS_INIT,                                                                              \
        __VA_ARGS__                                                                                \
    }
#define ROW(id, text, table, source, other)                                                        \
    {                                                                                              \
        .name = #id, .help = text,                                                                 \
        .task = "classification",                                                                  \
        .opts = table, .cfg_size = sizeof(struct pm_nets_options),                                 \
        .default_size = 224, .default_channels = 3, .preprocessing = source,                       \
        .weight_decay = 4e-5f, .build = build_##id, .torch = other,                                \
    }
#define BUILD(id, ...)                                                                             \
    static void build_##id(struct pm_net *net, struct pm_node *images, int num_classes,            \
                           const void *cfg, struct pm_heads *heads)                                \
    {                                                                                              \
        static const struct form form = { #id, __VA_ARGS__ };                                      \
        build(&form, net, images, num_classes, cfg, heads);                                        \
    }
#define MOBILENET(id, factor, text, ...)                                                           \
    BUILD(id, __VA_ARGS__)                                                                         \
    static const struct pm_opt opts_##id[] = OPTS(factor, (factor) == 1, 0.997, { 0 });            \
    const struct pm_net_row pm_net_row_##id = ROW(id, text, opts_##id, "inception", NULL)
/* Defines a net with TensorFlow's and with PyTorch's conventions. */
#define MOBILENET_OF_BOTH(id, text, ...)                                                           \
    BUILD(id, __VA_ARGS__)                                                                         \
    static const struct pm_opt opts_##id[] = OPTS(1, true, 0.997, PM_NETS_CONVENTIONS(0), { 0 });  \
    static const struct pm_opt torch_opts_##id[] =                                                 \
        OPTS(1, true, 0.99, PM_NETS_CONVENTIONS(1), { 0 });                                        \
    static const struct pm_net_row torch_##id = ROW(id, text, torch_opts_##id, "torch", NULL);     \
    const struct pm_net_row pm_net_row_##id = ROW(id, text, opts_##id, "inception", &torch_##id)

MOBILENET_OF_BOTH(mobilenet_v3_large, "inverted residuals with gates and hard swish, the larger",
                  "MobilenetV3", "hard_swish", 16, 960, 1280, large, PM_COUNT(large), false);
MOBILENET_OF_BOTH(mobilenet_v3_small, "inverted residuals with gates and hard swish, the smaller",
                  "MobilenetV3", "hard_swish", 16, 576, 1024, small, PM_COUNT(small), false);
MOBILENET(mobilenet_v3_large_minimalistic, 1, "mobilenet_v3_large of 3x3 windows and relu",
          "MobilenetV3", "relu", 16, 960, 1280, large, PM_COUNT(large), true);
MOBILENET(mobilenet_v3_small_minimalistic, 1, "mobilenet_v3_small of 3x3 windows and relu",
          "MobilenetV3", "relu", 16, 576, 1024, small, PM_COUNT(small), true);
MOBILENET(mobilenet_edgetpu, 1, "inverted residuals, the first ones fused",
          "MobilenetEdgeTPU", "relu", 32, 1280, 0, edgetpu, PM_COUNT(edgetpu), false);
MOBILENET(mobilenet_edgetpu_075, 0.75, "mobilenet_edgetpu, width x 0.75",
          "MobilenetEdgeTPU", "relu", 32, 1280, 0, edgetpu, PM_COUNT(edgetpu), false);

#define LOW(scope) "Mobilenet" scope "/depthwise/BatchNorm"
/* from: least output stride. The convolutions of fused blocks are not dilated. */
#define BACKBONE(id, from, four, eight, sixteen, ...)                                              \
    static struct pm_node *backbone_##id(struct pm_net *net, struct pm_node *images,               \
                                         const struct pm_deeplab_options *o)                       \
    {                                                                                              \
        static const struct form form = { #id, __VA_ARGS__ };                                      \
        return backbone(&form, net, images, o);                                                    \
    }                                                                                              \
    const struct pm_backbone pm_backbone_##id = {                                                  \
        .name = #id, .min_stride = from, .max_stride = 32, .build = backbone_##id,                 \
        .low = { four, eight, sixteen },                                                           \
    }

BACKBONE(mobilenet_v3_large_seg, 4, LOW("V3/expanded_conv_2"), LOW("V3/expanded_conv_5"),
         LOW("V3/expanded_conv_11"), "MobilenetV3", "hard_swish", 16, 480, 0, large_seg,
         PM_COUNT(large_seg), false);
BACKBONE(mobilenet_v3_small_seg, 4, LOW("V3/expanded_conv"), LOW("V3/expanded_conv_2"),
         LOW("V3/expanded_conv_7"), "MobilenetV3", "hard_swish", 16, 288, 0, small_seg,
         PM_COUNT(small_seg), false);
BACKBONE(mobilenet_edgetpu, 8, NULL, NULL, NULL, "MobilenetEdgeTPU", "relu", 32, 1280, 0, edgetpu,
         PM_COUNT(edgetpu), false);

#define EXTRACTOR(id, layer, block, end, ...)                                                      \
    static struct pm_node *features_##id(struct pm_net *net, struct pm_node *images,               \
                                         const struct pm_nets_options *o)                          \
    {                                                                                              \
        static const struct form form = { #id, __VA_ARGS__ };                                      \
        struct maker m = { net, &form, o, { 0 } };                                                 \
        struct pm_node *x = blocks(&m, images);                                                    \
                                                                                                   \
        return conv_bn(&m, name_of(&m, form.scope, "Conv_1"), x, pm_nets_depth(o, form.last), 1,   \
                       1, 1, form.first);                                                          \
    }                                                                                              \
    static const struct pm_extractor_map maps_##id[] = {                                           \
        { "layer_" #layer "/expansion_output",                                                     \
          "MobilenetV3/expanded_conv_" #block "/expand/BatchNorm" },                               \
        { "layer_" #end, "MobilenetV3/Conv_1/BatchNorm" },                                         \
    };                                                                                             \
    const struct pm_extractor pm_extractor_##id = {                                                \
        .scope = "MobilenetV3", .least = 33, .build = features_##id, .own_scale = true,            \
        .maps = maps_##id, .count = PM_COUNT(maps_##id),                                           \
    }

EXTRACTOR(mobilenet_v3_large, 14, 12, 17, "MobilenetV3", "hard_swish", 16, 480, 0, large_detection,
          PM_COUNT(large_detection), false);
EXTRACTOR(mobilenet_v3_small, 10, 8, 13, "MobilenetV3", "hard_swish", 16, 288, 0, small_detection,
          PM_COUNT(small_detection), false);
