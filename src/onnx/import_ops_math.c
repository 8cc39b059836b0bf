/* import_ops_math: elementwise functions of one value, of two values with broadcasting, and
 * softmax. Functions of one value keep its memory order. */
#include "onnx/import_ops.h"

#include <string.h>

/* ---- one value --------------------------------------------------------------------------- */

/* Adds an elementwise layer; the view is unchanged. */
static int over(struct import *m, const char *more, struct value *v, struct value *out,
                const char *spec)
{
    *out = (struct value){ .kind = VALUE_NODE, .view = v->view };
    out->node = pm_net_add(m->net, import_name(m, more), v->node, "%s", spec);
    return PM_OK;
}

static int map(struct import *m, const char *spec)
{
    struct value *v = import_in(m, 0), y;

    if (v->kind != VALUE_NODE)
        return import_refuse(m, "a constant input");
    over(m, NULL, v, &y, spec);
    import_out_node(m, 0, y.node, &y.view);
    return PM_OK;
}

/* Whether the node is x * Sigmoid(x) and the only reader of the Sigmoid: then it is one layer. */
static bool is_swish(struct import *m)
{
    const struct pm_onnx_node *n = import_only_reader(m, m->n->out[0]);

    if (!n || strcmp(n->op, "Mul") != 0 || n->in_count != 2)
        return false;
    const char *other = n->in[strcmp(n->in[0], m->n->out[0]) == 0];
    if (strcmp(other, m->n->in[0]) != 0)
        return false;
    m->absorbed[n - m->model->nodes] = import_value(m, m->n->out[0])->name;
    return true;
}

int import_op_unary(struct import *m)
{
    static const struct { const char *op, *layer, *attr, *option; float otherwise; } table[] = {
        { "Abs", "abs" }, { "Ceil", "ceil" }, { "Celu", "celu", "alpha", "alpha", 1 },
        { "Elu", "elu", "alpha", "alpha", 1 }, { "Erf", "erf" }, { "Exp", "exp" },
        { "Floor", "floor" }, { "HardSwish", "hard_swish" }, { "Log", "log" }, { "Mish", "mish" },
        { "Neg", "neg" }, { "Reciprocal", "reciprocal" }, { "Relu", "relu" }, { "Round", "round" },
        { "Sigmoid", "sigmoid" }, { "Sign", "sign" }, { "Softplus", "softplus" },
        { "Softsign", "softsign" }, { "Sqrt", "sqrt" }, { "Tanh", "tanh" },
        { "ThresholdedRelu", "thresholded_relu", "alpha", "alpha", 1 },
    };
    char spec[128];

    if (strcmp(m->n->op, "Gelu") == 0)
        return map(m, strcmp(pm_onnx_attr_text(m->n, "approximate", "none"), "tanh") == 0
                          ? "gelu approximate=tanh" : "gelu");
    if (strcmp(m->n->op, "Selu") == 0) {
        snprintf(spec, sizeof spec, "selu alpha=%.9g gamma=%.9g",
                 (double)pm_onnx_attr_float(m->n, "alpha", 1.67326319217681884765625f),
                 (double)pm_onnx_attr_float(m->n, "gamma", 1.05070102214813232421875f));
        return map(m, spec);
    }
    if (strcmp(m->n->op, "Sigmoid") == 0 && is_swish(m))
        return map(m, "swish");
    for (size_t i = 0; i < PM_COUNT(table); i++) {
        if (strcmp(table[i].op, m->n->op) != 0)
            continue;
        if (!table[i].attr)
            return map(m, table[i].layer);
        snprintf(spec, sizeof spec, "%s %s=%.9g", table[i].layer, table[i].option,
                 (double)pm_onnx_attr_float(m->n, table[i].attr, table[i].otherwise));
        return map(m, spec);
    }
    return import_refuse(m, "Pumice does not have this function");
}

int import_op_leaky_relu(struct import *m)
{
    const float slope = pm_onnx_attr_float(m->n, "alpha", 0.01f);
    char spec[64];

    if (slope == 0)
        return map(m, "relu");
    if (slope < 1e-6f || slope > 1)
        return import_refuse(m, "alpha %g is outside 0..1", (double)slope);
    snprintf(spec, sizeof spec, "leaky_relu slope=%.9g", (double)slope);
    return map(m, spec);
}

/* Clip: min and max may be attributes, inputs, or missing. */
bool import_clip_limits(struct import *m, double *low, double *high)
{
    const struct value *vl = import_in(m, 1), *vh = import_in(m, 2);
    const double *a = import_numbers(m, import_in(m, 1), 1);
    const double *b = import_numbers(m, import_in(m, 2), 1);

    if ((vl->kind != VALUE_ABSENT && !a) || (vh->kind != VALUE_ABSENT && !b)) {
        import_refuse(m, "limits that are not constants");
        return false;
    }
    *low = a ? *a : (double)pm_onnx_attr_float(m->n, "min", -3e38f);
    *high = b ? *b : (double)pm_onnx_attr_float(m->n, "max", 3e38f);
    *low = *low < -3e38 ? -3e38 : *low, *high = *high > 3e38 ? 3e38 : *high;
    return true;
}

int import_op_clip(struct import *m)
{
    double a, b;
    char spec[96];

    if (!import_clip_limits(m, &a, &b))
        return PM_OK;
    if (a == 0 && b == 6)
        return map(m, "relu6");
    if (a == 0 && b > 1e38)
        return map(m, "relu");
    snprintf(spec, sizeof spec, "clip min=%.9g max=%.9g", a, b);
    return map(m, spec);
}

int import_op_hard_sigmoid(struct import *m)
{
    const float a = pm_onnx_attr_float(m->n, "alpha", 0.2f),
                b = pm_onnx_attr_float(m->n, "beta", 0.5f);
    struct value *v = import_in(m, 0), line, y;
    char spec[96];

    if (v->kind != VALUE_NODE)
        return import_refuse(m, "a constant input");
    if (a > 0.16666f && a < 0.16667f && b == 0.5f)
        return map(m, "hard_sigmoid");
    snprintf(spec, sizeof spec, "affine scale=%.9g shift=%.9g", (double)a, (double)b);
    over(m, "line", v, &line, spec);
    over(m, NULL, &line, &y, "clip min=0 max=1");
    import_out_node(m, 0, y.node, &y.view);
    return PM_OK;
}

/* ---- two values --------------------------------------------------------------------------- */

static int affine(struct import *m, struct value *x, double scale, double shift)
{
    struct value y;
    char spec[96];

    snprintf(spec, sizeof spec, "affine scale=%.9g shift=%.9g", scale, shift);
    over(m, NULL, x, &y, spec);
    import_out_node(m, 0, y.node, &y.view);
    return PM_OK;
}

/* Combines x and a number. first: the number is the first input. */
static int with_number(struct import *m, struct value *x, double s, bool first)
{
    const char *op = m->n->op;
    struct value y;
    char spec[96];

    if (strcmp(op, "Add") == 0 || strcmp(op, "Sum") == 0)
        return affine(m, x, 1, s);
    if (strcmp(op, "Sub") == 0)
        return first ? affine(m, x, -1, s) : affine(m, x, 1, -s);
    if (strcmp(op, "Mul") == 0)
        return affine(m, x, s, 0);
    if (strcmp(op, "Div") == 0 && !first)
        return s != 0 ? affine(m, x, 1 / s, 0) : import_refuse(m, "a division by 0");
    if (strcmp(op, "Div") == 0) {
        over(m, "reciprocal", x, &y, "reciprocal");
        return affine(m, &y, s, 0);
    }
    if (strcmp(op, "Pow") == 0 && first)
        return import_refuse(m, "a constant base");
    if (strcmp(op, "Pow") == 0)
        snprintf(spec, sizeof spec, s == 0.5 ? "sqrt" : "power exponent=%.9g", s);
    else
        snprintf(spec, sizeof spec, "clip min=%.9g max=%.9g", op[1] == 'a' ? s : -3e38,
                 op[1] == 'a' ? 3e38 : s);
    over(m, NULL, x, &y, spec);
    import_out_node(m, 0, y.node, &y.view);
    return PM_OK;
}

/* Adds axes of size 1 at the front. In old opsets, the axes may begin at `axis`, with ones after
 * them. */
static struct view raised(const struct import *m, const struct view *v, int rank)
{
    const int64_t axis = import_attr_int(m, "axis", -1);
    int64_t dim[PM_FILE_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    struct view w = *v;
    int first = rank - v->rank;

    if (m->model->opset < 7 && pm_onnx_attr_int(m->n, "broadcast", 0) && axis >= 0 &&
        axis + v->rank <= rank)
        first = (int)axis;
    for (int i = 0; i < v->rank; i++)
        dim[first + i] = v->dim[i];
    view_reshape(&w, rank, dim); /* axes of size 1 have no atoms */
    return w;
}

/* Whether a constant is trained. Added and multiplied constants are. Subtracted constants and
 * divisors are not: they belong to image preprocessing. */
static bool trains(const struct import *m)
{
    return strcmp(m->n->op, "Add") == 0 || strcmp(m->n->op, "Mul") == 0;
}

static const char *layer_of(const char *op)
{
    static const char *const names[][2] = {
        { "Add", "add" }, { "Sum", "add" }, { "Sub", "subtract" }, { "Mul", "multiply" },
        { "Div", "divide" }, { "Min", "minimum" }, { "Max", "maximum" },
    };

    for (size_t i = 0; i < PM_COUNT(names); i++)
        if (strcmp(names[i][0], op) == 0)
            return names[i][1];
    return NULL;
}

static void spaced(const char *order, char groups[2 * PM_FILE_MAX_RANK + 1])
{
    int n = 0;

    for (const char *p = order; *p; p++) {
        if (n)
            groups[n++] = ' ';
        groups[n++] = *p;
    }
    groups[n] = 0;
}

/* Adds or multiplies a constant that varies only along the last axes in memory, as a layer with a
 * variable. *done: whether this was possible. */
static void with_variable(struct import *m, struct value *x, const struct value *c,
                          const struct view *w, const struct view *cw, bool *done)
{
    const bool product = strcmp(m->n->op, "Mul") == 0;
    char order[PM_FILE_MAX_RANK + 1], groups[2 * PM_FILE_MAX_RANK + 1];
    int first = 0;

    *done = false;
    if (!product && strcmp(m->n->op, "Add") != 0)
        return;
    view_order(w, order);
    while (order[first] && cw->dim[order[first] - '0'] == 1)
        first++;
    for (const char *p = order + first; *p; p++)
        if (cw->dim[*p - '0'] != w->dim[*p - '0'])
            return;
    spaced(order, groups);
    const struct pm_given given = import_given_view(m, c, cw, order + first, 1, true);
    struct value lead = *x;
    lead.view = *w;
    struct pm_node *in = import_lay(m, &lead, groups);
    m->net->given = &given, m->net->given_count = 1;
    struct pm_node *y = pm_net_add(m->net, import_name(m, NULL), in, "scale axes=%d gamma=%s "
                                                       "beta=%s",
                                   w->rank - first, product ? "true" : "false",
                                   product ? "false" : "true");
    m->net->given_count = 0;
    const struct view out = view_ordered(w->rank, w->dim, order);
    import_out_node(m, 0, y, &out);
    *done = true;
}

static bool one_shape(struct import *m)
{
    const struct view *a = &import_in(m, 0)->view;
    bool same = true;

    for (int i = 1; i < m->n->in_count; i++) {
        const struct view *b = &import_in(m, i)->view;

        same &= a->rank == b->rank && memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->rank) == 0;
    }
    return same;
}

static int several(struct import *m, int rank, const int64_t *dim)
{
    const char *layer = layer_of(m->n->op);
    const int count = m->n->in_count;
    char order[PM_FILE_MAX_RANK + 1], groups[2 * PM_FILE_MAX_RANK + 1], act[64] = "";
    const struct value *lead = NULL;
    struct pm_node *y = NULL;
    bool done = false;

    if (!layer)
        return import_refuse(m, "two computed inputs");
    for (int i = 0; i < count; i++) {
        const struct value *v = import_in(m, i);

        if (v->kind == VALUE_NODE && (!lead || view_count(&v->view) > view_count(&lead->view)))
            lead = v;
    }
    const struct view w = raised(m, &lead->view, rank);
    for (int i = 0; i < count && count == 2; i++) {
        struct value *c = import_in(m, i), *x = import_in(m, 1 - i);
        const struct view cw = raised(m, &c->view, rank);

        if (value_constant(c) && !c->integer && memcmp(w.dim, dim, sizeof *dim * (size_t)rank) == 0)
            with_variable(m, x, c, &w, &cw, &done);
        if (done)
            return PM_OK;
    }
    view_order(&w, order);
    spaced(order, groups);
    if (strcmp(layer, "add") == 0 && one_shape(m))
        import_activation(m, m->n->out[0], act);
    /* A broadcast factor goes second: there are kernels for a gate per channel. */
    const bool swap = count == 2 && lead == import_in(m, 1) && trains(m);
    for (int i = 0; i < count; i++) {
        struct value v = *import_in(m, swap ? 1 - i : i);

        v.view = raised(m, &v.view, rank);
        v.laid = NULL;
        v.integer |= !trains(m);
        struct pm_node *x = import_lay(m, &v, groups);
        const bool last = i + 1 == count;
        y = y ? pm_net_add_many(m->net, import_name(m, last ? NULL : "part"),
                                (struct pm_node *[]){ y, x }, 2, "%s%s", layer, last ? act : "")
              : x;
    }
    const struct view out = view_ordered(rank, dim, order);
    import_out_node(m, 0, y, &out);
    return PM_OK;
}

int import_op_binary(struct import *m)
{
    struct value *a = import_in(m, 0), *b = import_in(m, 1);
    int64_t dim[PM_FILE_MAX_RANK];
    const int count = m->n->in_count;
    const double *s;
    int rank;

    if (count == 1)
        return import_op_identity(m);
    if (count == 2 && (s = import_numbers(m, b, 1)))
        return with_number(m, a, *s, false);
    if (count == 2 && (s = import_numbers(m, a, 1)))
        return with_number(m, b, *s, true);
    if (!import_broadcast(m, count, &rank, dim) || rank > PM_MAX_RANK)
        return import_refuse(m, "inputs whose shapes do not fit, or of more than %d axes",
                             PM_MAX_RANK);
    return several(m, rank, dim);
}

/* ---- along an axis ------------------------------------------------------------------------- */

int import_op_softmax(struct import *m)
{
    struct value *v = import_in(m, 0);
    const bool old = m->model->opset < 13;
    const int rank = v->view.rank;
    int64_t axis = pm_onnx_attr_int(m->n, "axis", old ? 1 : -1);
    char order[PM_FILE_MAX_RANK + 1], groups[2 * PM_FILE_MAX_RANK + 1];
    int n = 0;

    if (m->n == m->left_out)
        return import_op_identity(m);
    axis += axis < 0 ? rank : 0;
    if (v->kind != VALUE_NODE || axis < 0 || axis >= rank)
        return import_refuse(m, "axis %lld of a value with %d axes", (long long)axis, rank);
    view_order(&v->view, order);
    for (const char *p = order; *p; p++)
        if (old ? *p - '0' < axis : *p - '0' != axis)
            groups[n++] = *p;
    groups[n++] = ' ';
    for (const char *p = order; *p; p++)
        if (old ? *p - '0' >= axis : *p - '0' == axis)
            groups[n++] = *p;
    groups[n] = 0;
    struct pm_node *y = pm_net_add(m->net, import_name(m, NULL), import_lay(m, v, groups),
                                   m->n->op[0] == 'L' ? "log_softmax" : "softmax");
    const struct view w = view_ordered(rank, v->view.dim, groups);
    import_out_node(m, 0, y, &w);
    return PM_OK;
}

int import_op_lrn(struct import *m)
{
    struct value *v = import_in(m, 0);
    const int64_t size = import_attr_int(m, "size", 1);

    if (v->view.rank != 4 || size % 2 == 0)
        return import_refuse(m,
                             "a size of %lld over %d axes (the size must be odd, the input images)",
                             (long long)size, v->view.rank);
    import_out_images(m, 0, pm_net_add(
        m->net, import_name(m, NULL), import_lay(m, v, "0 2 3 1"),
        "local_response_norm radius=%lld bias=%.9g alpha=%.9g beta=%.9g", (long long)(size - 1) / 2,
        (double)pm_onnx_attr_float(m->n, "bias", 1),
        (double)pm_onnx_attr_float(m->n, "alpha", 1e-4f) / (double)size,
        (double)pm_onnx_attr_float(m->n, "beta", 0.75f)));
    return PM_OK;
}
