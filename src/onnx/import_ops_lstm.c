/* import_ops_lstm: a recurrent layer in one direction, or two of them side by side. ONNX has the
 * gates' rows in the order input, output, forget, cell; the columns of the layer's kernel are those
 * of input, cell, forget, output. ONNX's two biases become one. */
#include "onnx/import_ops.h"

#include <string.h>

enum { X, W, R, B, LENGTHS, H, C, PEEPHOLES };
static const int own_gate[] = { 0, 3, 2, 1 }; /* the place of ONNX's gate in the layer */

struct lstm {
    int64_t steps, batch, inputs, units;
    int directions;
    bool first_reverse;
    const double *w, *r, *b; /* b: NULL: zeros */
};

/* Values of a variable. */
static int read_floats(const void *from, size_t first, size_t count, float *out)
{
    memcpy(out, (const float *)from + first, count * sizeof *out);
    return PM_OK;
}

/* The kernel [inputs + units, 4 units] of direction k. */
static float *kernel_of(struct import *m, const struct lstm *l, int k)
{
    const int64_t n = l->inputs, units = l->units;
    float *kernel = pm_arena_alloc(m->lasting, sizeof *kernel * (size_t)((n + units) * 4 * units));

    for (int gate = 0; gate < 4; gate++)
        for (int64_t u = 0; u < units; u++) {
            const int64_t row = (k * 4 + gate) * units + u;
            float *to = kernel + own_gate[gate] * units + u;

            for (int64_t i = 0; i < n + units; i++)
                to[i * 4 * units] = (float)(i < n ? l->w[row * n + i]
                                                  : l->r[row * units + i - n]);
        }
    return kernel;
}

static float *bias_of(struct import *m, const struct lstm *l, int k)
{
    const int64_t units = l->units;
    float *bias = pm_arena_alloc(m->lasting, sizeof *bias * (size_t)(4 * units));

    for (int gate = 0; gate < 4; gate++)
        for (int64_t u = 0; u < units; u++) {
            const int64_t at = (k * 8 + gate) * units + u;

            bias[own_gate[gate] * units + u] = l->b ? (float)(l->b[at] + l->b[at + 4 * units]) : 0;
        }
    return bias;
}

static struct pm_given given(struct import *m, const char *layer, const char *name, float *v,
                             int64_t count)
{
    return (struct pm_given){
        .name = pm_arena_printf(m->lasting, "%s/%s", layer, name), .trainable = true,
        .count = (size_t)count,
        .init = { .kind = PM_INIT_GIVEN, .read = read_floats, .from = v },
    };
}

/* Adds the layer of direction k. */
static struct pm_node *add_direction(struct import *m, const struct lstm *l, int k,
                                     struct pm_node *x)
{
    const bool reverse = k == 1 || l->first_reverse;
    const char *name = import_name(m, l->directions == 1 ? NULL : reverse ? "backward" : "forward");
    const struct pm_given variables[] = {
        given(m, name, "kernel", kernel_of(m, l, k), (l->inputs + l->units) * 4 * l->units),
        given(m, name, "bias", bias_of(m, l, k), 4 * l->units),
    };
    struct pm_node *y;

    m->net->given = variables, m->net->given_count = (int)PM_COUNT(variables);
    y = pm_net_add(m->net, name, x, "lstm units=%lld forget_bias=0 direction=%s",
                   (long long)l->units, reverse ? "backward" : "forward");
    m->net->given = NULL, m->net->given_count = 0;
    return y;
}

/* Reads constants of this shape; NULL, after a refusal, if they are others. */
static const double *constants(struct import *m, int input, const char *what, int rank,
                               const int64_t *dim)
{
    enum { MOST = 1 << 24 };
    struct value *v = import_in(m, input);
    struct pm_str shape = { 0 };
    const double *x = NULL;

    for (int i = 0; i < rank; i++)
        pm_str_add(&shape, "%s%lld", i ? ", " : "", (long long)dim[i]);
    if (!value_constant(v))
        import_refuse(m, "%s that are not constants", what);
    else if (v->view.rank != rank || memcmp(v->view.dim, dim, (size_t)rank * sizeof *dim) != 0)
        import_refuse(m, "%s of another shape than [%s], which its input, hidden_size and "
                      "direction imply", what, shape.text);
    else if (!(x = import_numbers(m, v, MOST)))
        import_refuse(m, "%s of more than %d numbers", what, MOST);
    pm_str_free(&shape);
    return x;
}

/* Whether an optional input is absent or zero. */
static bool is_zero(struct import *m, int input)
{
    struct value *v = import_in(m, input);
    const double *x;

    if (import_idle(m, v, 0))
        return true;
    x = import_numbers(m, v, 1 << 20);
    for (int64_t i = 0; x && i < view_count(&v->view); i++)
        if (x[i] != 0)
            return false;
    return x != NULL;
}

/* Reads the number of directions, and whether the first is reverse; false if ONNX has no such
 * direction. */
static bool read_direction(const struct import *m, int *directions, bool *first_reverse)
{
    const char *text = pm_onnx_attr_text(m->n, "direction", "forward");
    const bool both = strcmp(text, "bidirectional") == 0;

    *directions = both ? 2 : 1;
    *first_reverse = strcmp(text, "reverse") == 0;
    return both || *first_reverse || strcmp(text, "forward") == 0;
}

/* Whether the activations are absent, or named and the layer's: for each direction those of the
 * gates, of the new cell and of the output. */
static bool has_own_activations(const struct import *m)
{
    const struct pm_onnx_attr *a = pm_onnx_attr(m->n, "activations");
    bool first_reverse, same = true;
    int directions;

    read_direction(m, &directions, &first_reverse);
    if (!a)
        return true;
    if (a->type != PM_ONNX_STRINGS || a->count != 3 * directions)
        return false;
    for (int k = 0; k < a->count; k++)
        same &= strcmp(a->strings[k], k % 3 ? "Tanh" : "Sigmoid") == 0;
    return same;
}

/* Whether everything is as the layer computes it; else the node was refused. */
static bool is_plain(struct import *m)
{
    static const char *const names[] = { "activation_alpha", "activation_beta",
                                         "clip", "input_forget", "layout" };
    static const struct { int input; const char *what; } idle[] = {
        { H, "a first state" }, { C, "a first state" }, { PEEPHOLES, "peepholes" },
    };

    if (!has_own_activations(m)) {
        import_refuse(m, "activations other than Sigmoid, Tanh, Tanh for each direction");
        return false;
    }
    for (size_t i = 0; i < PM_COUNT(names); i++)
        if (pm_onnx_attr(m->n, names[i]) &&
            !(i >= PM_COUNT(names) - 2 && import_attr_int(m, names[i], 0) == 0)) {
            import_refuse(m, "the attribute %s", names[i]);
            return false;
        }
    if (import_in(m, LENGTHS)->kind != VALUE_ABSENT) {
        import_refuse(m, "lengths of the sequences");
        return false;
    }
    for (size_t i = 0; i < PM_COUNT(idle); i++)
        if (!is_zero(m, idle[i].input)) {
            import_refuse(m, "%s other than zeros", idle[i].what);
            return false;
        }
    for (int i = 1; i < m->n->out_count; i++)
        if (m->n->out[i][0] && import_read_by_any(m, m->n->out[i])) {
            import_refuse(m, "its output %d, the last state", i);
            return false;
        }
    return true;
}

/* Reads the sizes and constants; false if the node was refused. */
static bool read_lstm(struct import *m, struct lstm *l)
{
    const struct value *x = import_in(m, X);

    *l = (struct lstm){ 0 };
    if (!read_direction(m, &l->directions, &l->first_reverse)) {
        import_refuse(m, "the direction \"%.40s\", which is none of forward, reverse and "
                      "bidirectional", pm_onnx_attr_text(m->n, "direction", ""));
        return false;
    }
    if (x->kind != VALUE_NODE) {
        import_refuse(m, "an input that is a constant");
        return false;
    }
    if (x->view.rank != 3) {
        import_refuse(m, "an input with %d axes, not 3", x->view.rank);
        return false;
    }
    l->steps = x->view.dim[0], l->batch = x->view.dim[1], l->inputs = x->view.dim[2];
    l->units = import_attr_int(m, "hidden_size", 0);
    if (l->units < 1 || l->units > 1 << 16) {
        import_refuse(m, "hidden_size %lld, outside 1..65536", (long long)l->units);
        return false;
    }
    const int64_t w[] = { l->directions, 4 * l->units, l->inputs };
    const int64_t r[] = { l->directions, 4 * l->units, l->units };
    const int64_t b[] = { l->directions, 8 * l->units };

    l->w = constants(m, W, "weights", 3, w);
    l->r = l->w ? constants(m, R, "recurrent weights", 3, r) : NULL;
    if (l->r && import_in(m, B)->kind != VALUE_ABSENT)
        l->b = constants(m, B, "biases", 2, b);
    return !m->refused_now && l->r;
}

int import_op_lstm(struct import *m)
{
    struct pm_node *y[2], *x, *all;
    struct lstm l;

    if (!is_plain(m) || !read_lstm(m, &l))
        return PM_OK;
    x = import_lay(m, import_in(m, X), "1 0 2");
    for (int k = 0; k < l.directions; k++)
        y[k] = add_direction(m, &l, k, x);
    all = l.directions == 1 ? y[0]
                            : pm_net_add_many(m->net, import_name(m, "both"), y, 2, "concat");
    const int64_t dim[] = { l.steps, l.directions, l.batch, l.units };
    const struct view out = view_ordered(4, dim, "2 0 13");

    import_out_node(m, 0, all, &out);
    return PM_OK;
}
