/* import_ops_norm: normalisation of a batch's channels, or over the values of each example: over
 * trailing axes, groups of channels, or single channels. */
#include "onnx/import_ops.h"

#include <string.h>

bool import_idle(struct import *m, struct value *v, double idle)
{
    const double *x;

    if (v->kind == VALUE_ABSENT || (v->kind == VALUE_FILL && v->fill == idle))
        return true;
    x = v->kind != VALUE_FILL && !v->learned ? import_numbers(m, v, 1 << 20) : NULL;
    for (int64_t i = 0; x && i < view_count(&v->view); i++)
        if (x[i] != idle)
            return false;
    return x != NULL;
}

/* beta and gamma if present, in the order of a layer's variables, and the layer's options. */
struct affine {
    struct pm_given given[2];
    int count;
    char options[32];
};

static bool take(struct import *m, struct value *v, double idle, const struct view *as,
                 const char *order, struct affine *out)
{
    struct view w = v->view;

    if (import_idle(m, v, idle))
        return false;
    if (!value_constant(v) || view_count(&w) != view_count(as) ||
        !view_reshape(&w, as->rank, as->dim)) {
        import_refuse(m, "a scale or bias that is not a constant of %lld numbers",
                      (long long)view_count(as));
        return false;
    }
    out->given[out->count++] = import_given_view(m, v, &w, order, 1, true);
    return true;
}

static struct affine affine_of(struct import *m, struct value *scale, struct value *bias,
                               const struct view *as, const char *order)
{
    struct affine a = { .count = 0 };
    const bool beta = take(m, bias, 0, as, order, &a), gamma = take(m, scale, 1, as, order, &a);

    snprintf(a.options, sizeof a.options, "gamma=%s beta=%s", gamma ? "true" : "false",
             beta ? "true" : "false");
    return a;
}

static struct pm_node *normalised(struct import *m, struct pm_node *x, const struct affine *a,
                                  const char *layer, int64_t number)
{
    struct pm_node *y;

    m->net->given = a->given, m->net->given_count = a->count;
    y = pm_net_add(m->net, import_name(m, NULL), x, "%s=%lld epsilon=%.9g %s", layer,
                   (long long)number, (double)pm_onnx_attr_float(m->n, "epsilon", 1e-5f),
                   a->options);
    m->net->given_count = 0;
    return y;
}

/* LayerNorm: a row is the axes from `axis` on, in memory order. */
int import_op_layer_norm(struct import *m)
{
    struct value *x = import_in(m, 0);
    const int rank = x->view.rank;
    char order[PM_FILE_MAX_RANK + 1], groups[PM_FILE_MAX_RANK + 2], *own;
    int64_t axis = import_attr_int(m, "axis", -1), dim[PM_FILE_MAX_RANK];
    int n = 0;

    axis += axis < 0 ? rank : 0;
    if (x->kind != VALUE_NODE || axis < 1 || axis >= rank)
        return import_refuse(m, "axis %lld of a value with %d axes", (long long)axis, rank);
    for (int i = 1; i < m->n->out_count; i++)
        if (m->n->out[i][0] && import_read_by_any(m, m->n->out[i]))
            return import_refuse(m, "its output %d, the statistics", i);
    view_order(&x->view, order);
    for (const char *p = order; *p; p++)
        if (*p - '0' < axis)
            groups[n++] = *p;
    groups[n++] = ' ';
    own = &groups[n];
    for (const char *p = order; *p; p++)
        if (*p - '0' >= axis)
            groups[n++] = *p;
    groups[n] = 0;
    for (int i = 0; i < rank; i++)
        dim[i] = i < axis ? 1 : x->view.dim[i];
    const struct view as = view_plain(rank, dim);
    const struct affine a = affine_of(m, import_in(m, 1), import_in(m, 2), &as, own);
    if (m->refused_now)
        return PM_OK;
    const struct view out = view_ordered(rank, x->view.dim, groups);
    import_out_node(m, 0, normalised(m, import_lay(m, x, groups), &a, "layer_norm axes", 1), &out);
    return PM_OK;
}

/* Repeats one number per group (opsets 18 to 20) for each channel of the group. */
static struct value *each_channel(struct import *m, struct value *v, int64_t groups,
                                  int64_t channels)
{
    const double *x = import_numbers(m, v, 1 << 20);
    struct value *out;
    double *all;

    if (view_count(&v->view) != groups || groups == channels || !x)
        return v;
    all = pm_arena_alloc(m->lasting, sizeof *all * (size_t)channels);
    out = pm_arena_alloc(m->arena, sizeof *out);
    for (int64_t i = 0; i < channels; i++)
        all[i] = x[i / (channels / groups)];
    *out = (struct value){ .name = v->name, .kind = VALUE_NUMBERS, .numbers = all,
                           .learned = v->learned, .view = view_plain(1, &channels) };
    return out;
}

/* groups 0: each channel is normalised separately. */
static int by_channels(struct import *m, int64_t groups)
{
    struct value *x = import_in(m, 0), *scale = import_in(m, 1), *bias = import_in(m, 2);
    const int rank = x->view.rank;
    const char *order = import_channels_last(rank);

    if (x->kind != VALUE_NODE || rank < 3 || rank > 6)
        return import_refuse(m, "a value of %d axes", rank);
    const int64_t channels = x->view.dim[1];
    if (groups < 0 || groups > channels || (groups && channels % groups))
        return import_refuse(m, "%lld groups of %lld channels", (long long)groups,
                             (long long)channels);
    if (groups) {
        scale = each_channel(m, scale, groups, channels);
        bias = each_channel(m, bias, groups, channels);
    }
    const struct view as = view_plain(1, &channels);
    const struct affine a = affine_of(m, scale, bias, &as, "0");
    if (m->refused_now)
        return PM_OK;
    const struct view out = view_ordered(rank, x->view.dim, order);
    import_out_node(m, 0, normalised(m, import_lay(m, x, order), &a, "group_norm groups", groups),
                    &out);
    return PM_OK;
}

int import_op_instance_norm(struct import *m)
{
    return by_channels(m, 0);
}

int import_op_group_norm(struct import *m)
{
    const int64_t groups = import_attr_int(m, "num_groups", 0);

    return groups > 0 ? by_channels(m, groups) : import_refuse(m, "num_groups is missing");
}

int import_op_batch_norm(struct import *m)
{
    struct value *x = import_in(m, 0);
    const int rank = x->view.rank;
    struct pm_given given[4];
    static const int input[] = { 2, 1, 3, 4 }; /* beta, gamma, mean, variance */
    const char *groups = import_channels_last(rank);
    int64_t dim[PM_FILE_MAX_RANK];
    bool has[2] = { true, true };
    char act[64];
    int count = 0;

    if (rank < 2 || rank > 6)
        return import_refuse(m, "a value of %d axes", rank);
    if (pm_onnx_attr_int(m->n, "spatial", 1) == 0)
        return import_refuse(m, "spatial=0: a mean for each pixel");
    for (int i = 0; i < 4; i++) {
        struct value *v = import_in(m, input[i]);

        if (!value_constant(v) || view_count(&v->view) != x->view.dim[1])
            return import_refuse(m, "input %d is not a constant of %lld numbers", input[i],
                                 (long long)x->view.dim[1]);
        if (i < 2)
            has[i] = !import_idle(m, v, i == 0 ? 0 : 1);
        if (i >= 2 || has[i])
            given[count++] = import_given(m, v, "0", i < 2);
    }
    import_activation(m, m->n->out[0], act);
    struct pm_node *in = import_lay(m, x, groups);
    m->net->given = given, m->net->given_count = count;
    struct pm_node *y = pm_net_add(m->net, import_name(m, NULL), in,
                                   "batch_norm center=%s scale=%s decay=%.9g epsilon=%.9g%s",
                                   has[0] ? "true" : "false", has[1] ? "true" : "false",
                                   (double)pm_onnx_attr_float(m->n, "momentum", 0.9f),
                                   (double)pm_onnx_attr_float(m->n, "epsilon", 1e-5f), act);
    m->net->given_count = 0;
    memcpy(dim, x->view.dim, sizeof dim);
    const struct view out = view_ordered(rank, dim, groups);
    import_out_node(m, 0, y, &out);
    return PM_OK;
}
