/* hyperparams: reads the settings of convolutions that a detector adds to a classifier, and builds
 * such convolutions. They correspond to conv_hyperparams of TensorFlow's Object Detection API. */
#include "nets/ssd.h"

#include <math.h>

static const char *const activations[] = { "none", "relu", "relu6", "swish" };
enum { SWISH = 3 };

static const struct pm_opt opts[] = {
    PM_ENUM(pm_hyperparams, activation, 2, "none|relu|relu6|swish", "applied after batch norm"),
    PM_STRING(pm_hyperparams, initializer, "truncated(0.03)", "initial weights"),
    PM_BOOL(pm_hyperparams, regularize, true, "weight decay applies to the weights"),
    PM_BOOL(pm_hyperparams, batch_norm, true, "batch norm instead of biases"),
    PM_BOOL(pm_hyperparams, batch_norm_scale, true, "multiply by gamma"),
    PM_BOOL(pm_hyperparams, batch_norm_center, true, "add beta"),
    PM_DOUBLE(pm_hyperparams, batch_norm_decay, NAN, 0, 1,
              "decay of the moving averages; null: model.batch_norm_decay"),
    PM_FLOAT(pm_hyperparams, batch_norm_epsilon, NAN, 0, 1,
             "added to the variance; null: model.batch_norm_epsilon"),
    { 0 },
};

void pm_hyperparams_read(struct pm_net *net, const struct cJSON *object, const char *where,
                         struct pm_hyperparams *out)
{
    struct pm_init init;

    pm_opts_defaults(opts, out, net->arena);
    if (!net->error)
        net->error = pm_opts_parse(opts, object, NULL, out, net->arena, where);
    if (!net->error)
        net->error = pm_init_parse(out->initializer, &init,
                                   pm_arena_printf(net->arena, "%s.initializer", where));
}

const char *pm_hyperparams_activation(const struct pm_hyperparams *h)
{
    return activations[h->activation];
}

/* ---- convolutions -------------------------------------------------------------------------- */

/* Returns the name of a layer's node: NAME, and NAME/feature_(k - 1) for levels k above 1. */
static const char *of_level(const struct pm_ssd *s, const struct pm_unit *u, const char *name)
{
    return u->level > 1 ? pm_arena_printf(s->net->arena, "%s/feature_%d", name, u->level - 1)
                        : name;
}

/* Returns the node of level 1 whose weights a node of a further level uses, else NULL. */
static const struct pm_node *shared(const struct pm_ssd *s, const struct pm_unit *u,
                                    const char *first)
{
    return u->level > 1 ? pm_net_find(s->net, first) : NULL;
}

static const char *yes_or_no(bool yes)
{
    return yes ? "true" : "false";
}

/* Builds the depthwise window of a depthwise or a separable convolution. */
static struct pm_node *depthwise(const struct pm_ssd *s, const struct pm_hyperparams *h,
                                 const struct pm_unit *u, const char *tail, struct pm_node *x)
{
    return pm_net_add_shared(s->net, of_level(s, u, u->name), x, shared(s, u, u->name),
                             "depthwise_conv2d %s weights_init=%s regularize=%s %s",
                             pm_nets_window(s->net->arena, &s->nets, u->kernel,
                                            u->stride ? u->stride : 1, 1),
                             h->initializer, yes_or_no(h->regularize), tail);
}

static struct pm_node *full(const struct pm_ssd *s, const struct pm_hyperparams *h,
                            const struct pm_unit *u, const char *tail, struct pm_node *x)
{
    struct pm_arena *a = s->net->arena;
    const char *own = u->separable ? pm_arena_printf(a, "%s/pointwise", u->name) : u->name;
    const char *name = u->node ? u->node : of_level(s, u, own);
    const char *window = pm_nets_window(a, &s->nets, u->separable ? 1 : u->kernel,
                                        u->stride && !u->separable ? u->stride : 1,
                                        u->rate && !u->separable ? u->rate : 1);

    return pm_net_add_shared(s->net, name, x, shared(s, u, u->node ? u->first : own),
                             "conv2d filters=%d %s weights_init=%s regularize=%s scope=%s "
                             "weights_name=%s %s",
                             u->filters, window, h->initializer, yes_or_no(h->regularize),
                             pm_net_scope(s->net, u->name),
                             u->separable ? "pointwise_weights" : "weights", tail);
}

/* Builds batch norm with the hyperparams' own options. */
static struct pm_node *normalized(const struct pm_ssd *s, const struct pm_hyperparams *h,
                                  const struct pm_unit *u, const char *activation,
                                  struct pm_node *x)
{
    const struct pm_nets_override norm = { NULL, NULL, h->batch_norm_scale, h->batch_norm_center };
    struct pm_arena *a = s->net->arena;
    struct pm_nets_options o = s->nets;
    const char *name = pm_arena_printf(a, "%s/BatchNorm", u->name);

    o.override = &norm;
    if (!isnan(h->batch_norm_decay))
        o.batch_norm_decay = h->batch_norm_decay;
    if (!isnan(h->batch_norm_epsilon))
        o.batch_norm_epsilon = h->batch_norm_epsilon;
    if (u->level)
        name = pm_arena_printf(a, "%s/feature_%d", name, u->level - 1);
    return pm_nets_batch_norm(s->net, &o, name, x, NULL,
                              pm_arena_printf(a, "activation=%s", activation));
}

struct pm_node *pm_unit_build(const struct pm_ssd *s, const struct pm_hyperparams *h,
                              const struct pm_unit *u, struct pm_node *x)
{
    struct pm_arena *a = s->net->arena;
    const bool norm = h->batch_norm && !u->plain;
    const char *activation = u->plain || u->linear ? "none"
                             : u->activation       ? u->activation
                                                   : pm_hyperparams_activation(h);
    const bool apart = activation == activations[SWISH]; /* a layer of its own */
    const char *fused = apart ? "none" : activation;
    const char *tail = norm ? "bias=false"
                            : pm_arena_printf(a, "bias=true activation=%s bias_init=%s", fused,
                                              u->bias_init ? u->bias_init : "constant(0)");

    if (u->separable)
        x = depthwise(s, h, u, "bias=false", x);
    x = u->filters ? full(s, h, u, tail, x) : depthwise(s, h, u, tail, x);
    if (norm)
        x = normalized(s, h, u, fused, x);
    return apart ? pm_net_add(s->net, of_level(s, u, pm_arena_printf(a, "%s/activation", u->name)),
                              x, "swish")
                 : x;
}
