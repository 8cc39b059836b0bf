/* attention_onnx: the search of one beam in ONNX: its steps one after the other, each in about 30
 * operators. Outputs that nothing reads are left out. */
#include "layers/attention_layer.h"
#include "onnx/export_nodes.h"

/* Values that all steps share. */
struct shared {
    const char *memory, *keys; /* [n, t, c], [n, t, attention] */
    const char *query, *v;     /* v as [attention, 1] */
    const char *symbols, *context, *state, *bias; /* parts of the cell's kernel; its bias, with the
                                                   * forget bias in it */
    const char *dense, *dense_bias;
};

/* Exports rows first..first + count - 1 of the cell's kernel, which has `four` columns. */
static const char *kernel_rows(struct pm_export *g, const char *suffix, const float *kernel,
                               int first, int count, int four)
{
    const int64_t dim[] = { count, four };

    return pm_export_tensor(g, suffix, PM_DTYPE_F32, 2, dim,
                            kernel + (size_t)first * (size_t)four);
}

static bool export_shared(const struct pm_node *n, struct pm_export *g, struct shared *s)
{
    const struct attention_params p = pm_attention_params_of(n);
    const struct pm_shape x = n->in[PM_ATTENTION_MEMORY]->out_shape;
    const int four = 4 * p.units;
    float *kernel = pm_calloc((size_t)(p.classes + p.c + p.units) * (size_t)four, sizeof *kernel);
    float *bias = pm_calloc((size_t)four, sizeof *bias);
    const bool ok = pm_export_read(g, n, PM_ATTENTION_CELL_KERNEL, kernel) &&
                    pm_export_read(g, n, PM_ATTENTION_CELL_BIAS, bias);
    const int64_t column[] = { p.attention, 1 };

    for (int k = 0; k < p.units; k++)
        bias[2 * p.units + k] += p.forget_bias;
    s->memory = pm_export_nhwc(g, pm_export_x(g, n, PM_ATTENTION_MEMORY), x);
    if (x.rank == 4)
        s->memory = pm_export_view(g, s->memory, 3, (const int64_t[]){ 0, p.t, p.c });
    s->keys = pm_export_op2(g, "MatMul", s->memory,
                            pm_export_variable(g, n, PM_ATTENTION_KEY_KERNEL));
    s->query = pm_export_variable(g, n, PM_ATTENTION_QUERY_KERNEL);
    s->v = pm_export_view(g, pm_export_variable(g, n, PM_ATTENTION_V), 2, column);
    s->symbols = kernel_rows(g, "symbol_kernel", kernel, 0, p.classes, four);
    s->context = kernel_rows(g, "context_kernel", kernel, p.classes, p.c, four);
    s->state = kernel_rows(g, "recurrent_kernel", kernel, p.classes + p.c, p.units, four);
    s->bias = pm_export_numbers(g, four, bias);
    s->dense = pm_export_variable(g, n, PM_ATTENTION_DENSE_KERNEL);
    s->dense_bias = pm_export_variable(g, n, PM_ATTENTION_DENSE_BIAS);
    pm_free(kernel);
    pm_free(bias);
    return ok;
}

/* The context [n, c] of the state h [n, units]; NULL: the state is 0. *weights: [n, t, 1]. */
static const char *context_of(struct pm_export *g, const struct shared *s,
                              const struct attention_params *p, const char *h,
                              const char **weights)
{
    const char *e = s->keys;

    if (h) {
        const char *q = pm_export_op2(g, "MatMul", h, s->query);

        e = pm_export_op2(g, "Add", e, pm_export_unsqueeze(g, q, 1));
    }
    e = pm_export_op(g, "Tanh", PM_VALUES(e));
    e = pm_export_op2(g, "MatMul", e, s->v); /* [n, t, 1] */
    e = pm_export_op(g, "Softmax", PM_VALUES(e));
    pm_export_int(g, "axis", 1);
    *weights = e;
    e = pm_export_op(g, "Transpose", PM_VALUES(e));
    pm_export_ints(g, "perm", PM_INT64S(0, 2, 1));
    e = pm_export_op2(g, "MatMul", e, s->memory); /* [n, 1, c] */
    return pm_export_view(g, e, 2, (const int64_t[]){ 0, p->c });
}

/* Replaces the state by that of the next step. *c, *h: NULL at the first. symbol: I64 [n], or NULL:
 * the start. */
static void cell_of(struct pm_export *g, const struct shared *s, const struct attention_params *p,
                    const char *symbol, const char **c, const char **h, const char **weights)
{
    const int64_t zero = PM_ATTENTION_START;
    const char *z = pm_export_op2(g, "MatMul", context_of(g, s, p, *h, weights), s->context);
    const char *gate[4];
    const char *row = symbol ? symbol : pm_export_integers(g, 1, &zero);

    if (*h)
        z = pm_export_op2(g, "Add", z, pm_export_op2(g, "MatMul", *h, s->state));
    z = pm_export_op2(g, "Add", z, pm_export_op2(g, "Gather", s->symbols, row));
    z = pm_export_op2(g, "Add", z, s->bias);
    pm_export_op_outputs(g, "Split", PM_VALUES(z), 4, gate);
    pm_export_int(g, "axis", 1);
    z = pm_export_op2(g, "Mul", pm_export_op(g, "Sigmoid", PM_VALUES(gate[0])),
                      pm_export_op(g, "Tanh", PM_VALUES(gate[1])));
    if (*c)
        z = pm_export_op2(g, "Add", z,
                          pm_export_op2(g, "Mul", *c,
                                        pm_export_op(g, "Sigmoid", PM_VALUES(gate[2]))));
    *c = z;
    *h = pm_export_op2(g, "Mul", pm_export_op(g, "Tanh", PM_VALUES(z)),
                       pm_export_op(g, "Sigmoid", PM_VALUES(gate[3])));
}

/* The class with the largest logit among all but the start, I64 [n]; after an end, the end. */
static const char *choice_of(struct pm_export *g, const struct attention_params *p, const char *z,
                             const char *before)
{
    const int64_t first = 1, last = p->classes, end = PM_ATTENTION_END, axis = 1;
    const char *y, *one = pm_export_integers(g, 1, &end);

    y = pm_export_op(g, "Slice", PM_VALUES(z, pm_export_integers(g, 1, &first),
                                           pm_export_integers(g, 1, &last),
                                           pm_export_integers(g, 1, &axis)));
    y = pm_export_op(g, "ArgMax", PM_VALUES(y));
    pm_export_int(g, "axis", 1);
    pm_export_int(g, "keepdims", 0);
    y = pm_export_op2(g, "Add", y, one);
    if (before)
        y = pm_export_op(g, "Where",
                         PM_VALUES(pm_export_op2(g, "Equal", before, one), one, y));
    return y;
}

/* The total [n] of the step before, or NULL, and the logarithm of the symbol's probability; after
 * an end, nothing is added. */
static const char *total_of(struct pm_export *g, const char *z, const char *symbol,
                            const char *before, const char *total)
{
    const int64_t end = PM_ATTENTION_END, axis = 1;
    const char *y = pm_export_op(g, "LogSoftmax", PM_VALUES(z)), *sum;

    pm_export_int(g, "axis", 1);
    y = pm_export_op2(g, "GatherElements", y, pm_export_unsqueeze(g, symbol, 1));
    pm_export_int(g, "axis", 1);
    y = pm_export_op(g, "Squeeze", PM_VALUES(y, pm_export_integers(g, 1, &axis)));
    if (!total)
        return y;
    sum = pm_export_op2(g, "Add", total, y);
    return pm_export_op(g, "Where",
                        PM_VALUES(pm_export_op2(g, "Equal", before,
                                                pm_export_integers(g, 1, &end)), total, sum));
}

/* The values of all steps so far, [n, steps, ...]: all is NULL at the first. one: [n, ...]. */
static const char *joined(struct pm_export *g, const char *all, const char *one)
{
    const char *y = pm_export_unsqueeze(g, one, 1);

    if (all) {
        y = pm_export_op2(g, "Concat", all, y);
        pm_export_int(g, "axis", 1);
    }
    return y;
}

static const char *column_of(struct pm_export *g, const char *weights)
{
    const char *y = pm_export_op(g, "ArgMax", PM_VALUES(weights)); /* of [n, t, 1] */

    pm_export_int(g, "axis", 1);
    pm_export_int(g, "keepdims", 0);
    return pm_export_view(g, y, 1, (const int64_t[]){ -1 });
}

/* Sets output k to the values of all steps as [n, 1, S]. */
static void set_output(struct pm_export *g, const struct pm_node *n, int k, const char *all)
{
    const char *y = pm_export_unsqueeze(g, all, 1);

    pm_export_output(g, n, k, k == PM_ATTENTION_TOTALS ? y
                                                       : pm_export_cast(g, y, PM_EXPORT_INT32));
}

/* There is one beam, so its parent is 0. */
static void set_parents(struct pm_export *g, const struct pm_node *n, const char *symbols)
{
    const int64_t zero = 0;

    set_output(g, n, PM_ATTENTION_PARENTS,
               pm_export_op2(g, "Mul", symbols, pm_export_integers(g, 1, &zero)));
}

/* all: per output, the values of all steps. */
static void set_outputs(struct pm_export *g, const struct pm_node *n, const char *const *all)
{
    for (int k = PM_ATTENTION_SYMBOLS; k <= PM_ATTENTION_TOTALS; k++) {
        if (!pm_export_is_read(g, n, k))
            continue;
        if (k == PM_ATTENTION_PARENTS)
            set_parents(g, n, all[PM_ATTENTION_SYMBOLS]);
        else
            set_output(g, n, k, all[k]);
    }
}

static const char *export_steps(const struct pm_node *n, struct pm_export *g,
                                const struct shared *s)
{
    const struct attention_params p = pm_attention_params_of(n);
    const char *c = NULL, *h = NULL, *symbol = NULL, *total = NULL;
    const char *all[PM_ATTENTION_TOTALS + 1] = { NULL };

    for (int step = 0; step < p.steps; step++) {
        const char *z, *weights, *before = symbol;

        cell_of(g, s, &p, symbol, &c, &h, &weights);
        z = pm_export_op2(g, "Add", pm_export_op2(g, "MatMul", h, s->dense), s->dense_bias);
        symbol = choice_of(g, &p, z, before);
        all[PM_ATTENTION_LOGITS] = joined(g, all[PM_ATTENTION_LOGITS], z);
        if (pm_export_is_read(g, n, PM_ATTENTION_SYMBOLS) ||
            pm_export_is_read(g, n, PM_ATTENTION_PARENTS))
            all[PM_ATTENTION_SYMBOLS] = joined(g, all[PM_ATTENTION_SYMBOLS], symbol);
        if (pm_export_is_read(g, n, PM_ATTENTION_COLUMNS))
            all[PM_ATTENTION_COLUMNS] =
                joined(g, all[PM_ATTENTION_COLUMNS], column_of(g, weights));
        if (pm_export_is_read(g, n, PM_ATTENTION_TOTALS)) {
            total = total_of(g, z, symbol, before, total);
            all[PM_ATTENTION_TOTALS] = joined(g, all[PM_ATTENTION_TOTALS], total);
        }
    }
    set_outputs(g, n, all);
    return pm_export_nchw(g, pm_export_unsqueeze(g, all[PM_ATTENTION_LOGITS], 1), n->out_shape);
}

const char *pm_attention_onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct attention_params p = pm_attention_params_of(n);
    struct shared s;

    if (!p.search)
        pm_export_refuse(g, "it reads the letters of the text that it is to write: export an "
                            "attention_search instead");
    else if (p.beams > 1)
        pm_export_refuse(g, "beam_width is %d, but the exported search has 1: set beam_width=1",
                         p.beams);
    if (!p.search || p.beams > 1 || !export_shared(n, g, &s))
        return pm_export_x(g, n, PM_ATTENTION_MEMORY);
    return export_steps(n, g, &s);
}
