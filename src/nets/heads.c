/* heads: builds the final layers of named nets. */
#include "nets/nets.h"

#include <string.h>

static void fail_map(struct pm_net *net, const char *row, const struct pm_node *x, const char *what)
{
    if (!net->error)
        net->error = pm_fail(PM_ECONFIG,
                             "model %s: the last map is %dx%d, which is too large for %s: set "
                             "model.global_pool to true, or a smaller input size",
                             row, x->out_shape.dim[1], x->out_shape.dim[2], what);
}

/* Turns "a/fc6" into "a/dropout6". */
static const char *dropout_name(struct pm_arena *a, const char *fc)
{
    const char *last = strrchr(fc, '/');

    return pm_arena_printf(a, "%.*s/dropout%s", (int)(last - fc), fc, last + strlen("/fc"));
}

struct pm_node *pm_nets_fc_conv(struct pm_net *net, const struct pm_nets_options *o,
                                const char *name, struct pm_node *x, int units, int kernel,
                                const char *init, const char *bias_init)
{
    x = pm_net_add(net, name, x, "conv2d filters=%d kernel=%d padding=%s activation=relu "
                   "weights_init=%s bias_init=%s", units, kernel,
                   o->fc_conv_padding ? "same" : "valid", init, bias_init);
    return pm_net_add(net, dropout_name(net->arena, name), x, "dropout keep=%.9g",
                      (double)o->keep_prob);
}

struct pm_node *pm_nets_logits(struct pm_net *net, const char *name, struct pm_node *x,
                               int num_classes, const char *init)
{
    const char *last = strrchr(name, '/');

    x = pm_net_add(net, name, x, "conv2d filters=%d kernel=1 bias=true weights_init=%s",
                   num_classes, init);
    return pm_net_add(net, pm_arena_printf(net->arena, "%.*s/SpatialSqueeze", (int)(last - name),
                                           name), x, "flatten");
}

struct pm_node *pm_nets_fc_scores(struct pm_net *net, const char *scope, struct pm_node *x,
                                  int num_classes, const char *init, bool global_pool)
{
    const int *dim = x->out_shape.dim;

    if (!global_pool && (dim[1] > 1 || dim[2] > 1))
        fail_map(net, scope, x, "one prediction per picture");
    x = pm_net_add(net, pm_arena_printf(net->arena, "%s/fc8", scope), x,
                   "conv2d filters=%d kernel=1 weights_init=%s", num_classes, init);
    if (global_pool)
        x = pm_net_add(net, pm_arena_printf(net->arena, "%s/global_pool", scope), x,
                       "global_pool");
    return pm_net_add(net, pm_arena_printf(net->arena, "%s/fc8/squeezed", scope), x, "flatten");
}

struct pm_node *pm_nets_average_end(struct pm_net *net, const struct pm_nets_options *o,
                                    const char *row, const struct pm_nets_end *end,
                                    struct pm_node *x, int num_classes)
{
    const int *dim = x->out_shape.dim, k = end->kernel;
    const int h = dim[1] < k ? dim[1] : k, w = dim[2] < k ? dim[2] : k;
    struct pm_node *y;

    if (o->global_pool)
        y = pm_net_add(net, end->average, x, "global_pool");
    else
        y = pm_net_add(net, end->average, x, "avg_pool kernel=[%d,%d] stride=%d padding=valid", h,
                       w, end->stride);
    if (y->out_shape.dim[1] > 1 || y->out_shape.dim[2] > 1)
        fail_map(net, row, x, "the average before the logits");
    y = pm_net_add(net, end->dropout, y, "dropout keep=%.9g", (double)o->keep_prob);
    return pm_nets_logits(net, end->logits, y, num_classes,
                          pm_nets_logits_init(net, o, pm_nets_init(net, o, end->init)));
}

void pm_nets_add_auxiliary(struct pm_net *net, struct pm_heads *heads, struct pm_node *x)
{
    pm_heads_add_loss_only(net, heads, "aux_logits", x, PM_HEAD_AUXILIARY, 0.4f);
}

void pm_nets_text_end(struct pm_net *net, const struct pm_nets_options *o, const char *name,
                      struct pm_node *x, int num_classes, struct pm_heads *heads)
{
    if (net->ends.sequence) {
        pm_heads_add(net, heads, "sequence", x);
        return;
    }
    pm_heads_add(net, heads, "logits",
                 pm_net_add(net, name, x, "conv2d filters=%d kernel=1 bias=true weights_init=%s",
                            num_classes, pm_nets_logits_init(net, o, "xavier")));
}
