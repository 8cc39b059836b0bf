/* attention_step: a step forward of the attention decoder (attention.h). attention_decoder.c has
 * the formulas. */
#include <math.h>

#include <pumice/thread.h>

#include "device/cpu/gemm.h"
#include "device/pick.h"
#include "layers/attention.h"
#include "layers/lstm_cell.h"
#include "layers/vmath.h"

void pm_attention_clear(const struct attention_params *p, void *all, size_t row, size_t per)
{
    float *own = (float *)all + row * (size_t)p->steps * per;
    const size_t at = (size_t)p->at;

    memset(own, 0, at * per * sizeof *own);
    memset(own + (at + 1) * per, 0, ((size_t)p->steps - at - 1) * per * sizeof *own);
}

/* ---- weights and context --------------------------------------------------------------------- */

enum { W_KEYS, W_MEMORY, W_QUERY, W_V, W_Y, W_PARENTS, W_Q, W_ALPHA, W_CONTEXT, W_COLUMNS };

/* Adds the query of the state h to q. */
PM_INLINE void add_query(const struct attention_params *p, const float *h, const float *query,
                         float *q)
{
    const size_t a = (size_t)p->attention;

    for (size_t i = 0; i < (size_t)p->units; i++) {
        PM_SIMD
        for (size_t k = 0; k < a; k++)
            q[k] += h[i] * query[i * a + k];
    }
}

PM_INLINE void row_scores(const struct attention_params *p, const float *keys, const float *v,
                          const float *q, float *alpha)
{
    const size_t a = (size_t)p->attention;
    float term[PM_ATTENTION_MOST];

    for (size_t j = 0; j < (size_t)p->t; j++) {
        PM_SIMD
        for (size_t k = 0; k < a; k++)
            term[k] = v[k] * pm_tanh(keys[j * a + k] + q[k]);
        alpha[j] = pm_row_sum(term, p->attention);
    }
}

PM_INLINE void row_softmax(float *alpha, int t)
{
    const float most = pm_row_max(alpha, t), sum = pm_exp_sum(alpha, t, 1, most);

    for (int j = 0; j < t; j++)
        alpha[j] = pm_expf(alpha[j] - most) / sum;
}

PM_INLINE void row_context(const struct attention_params *p, const float *memory,
                           const float *alpha, float *context)
{
    const size_t c = (size_t)p->c;

    memset(context, 0, c * sizeof *context);
    for (size_t j = 0; j < (size_t)p->t; j++) {
        PM_SIMD
        for (size_t k = 0; k < c; k++)
            context[k] += alpha[j] * memory[j * c + k];
    }
}

static int largest(const float *x, int count)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* A search reads the states of other rows; else the queries are there already, from one product. */
static void clear_weights(const struct pm_args *a, size_t row)
{
    const struct attention_params *p = a->params;

    pm_attention_clear(p, a->buf[W_Q], row, (size_t)p->attention);
    pm_attention_clear(p, a->buf[W_ALPHA], row, (size_t)p->t);
    pm_attention_clear(p, a->buf[W_CONTEXT], row, (size_t)p->c);
    if (a->buf[W_COLUMNS])
        pm_attention_clear(p, a->buf[W_COLUMNS], row, 1);
}

/* Items: rows. */
PM_CLONES static void weights_rows(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct attention_params *p = a->params;
    const size_t t = (size_t)p->t, c = (size_t)p->c, units = (size_t)p->attention;
    const int *parents = a->buf[W_PARENTS];

    for (size_t row = begin; row < end; row++) {
        const size_t example = row / (size_t)p->beams, at = pm_attention_place(p, row, p->at);
        const float *keys = (const float *)a->buf[W_KEYS] + example * t * units;
        const float *memory = (const float *)a->buf[W_MEMORY] + example * t * c;
        float *q = (float *)a->buf[W_Q] + at * units, *alpha = (float *)a->buf[W_ALPHA] + at * t;

        if (!p->accumulate)
            clear_weights(a, row);
        if (!a->buf[W_Y] || parents)
            memset(q, 0, units * sizeof *q);
        if (a->buf[W_Y] && parents) {
            const size_t from = pm_attention_parent(p, parents, row);

            add_query(p, (const float *)a->buf[W_Y] +
                             pm_attention_place(p, from, p->at - 1) * (size_t)p->units,
                      a->buf[W_QUERY], q);
        }
        row_scores(p, keys, a->buf[W_V], q, alpha);
        row_softmax(alpha, p->t);
        row_context(p, memory, alpha, (float *)a->buf[W_CONTEXT] + at * c);
        if (a->buf[W_COLUMNS])
            ((int *)a->buf[W_COLUMNS])[at] = largest(alpha, p->t);
    }
}

static void weights_cpu(const struct pm_args *a)
{
    const struct attention_params *p = a->params;
    const struct pm_gemm g = { .m = p->n, .n = p->attention, .k = p->units,
                               .lda = p->steps * p->units, .ldb = p->attention,
                               .ldc = p->steps * p->attention };

    if (a->buf[W_Y] && !a->buf[W_PARENTS])
        pm_gemm(&g, (const float *)a->buf[W_Y] + (size_t)(p->at - 1) * (size_t)p->units,
                a->buf[W_QUERY], (float *)a->buf[W_Q] + (size_t)p->at * (size_t)p->attention);
    pm_parallel((size_t)p->n, 1, weights_rows, (void *)a);
}

/* ---- cell ------------------------------------------------------------------------------------ */

enum { C_KERNEL, C_BIAS, C_SYMBOLS, C_PARENTS, C_CONTEXT, C_SCRATCH, C_GATES, C_C, C_Y };

/* The scratch: sums [n, 4 units], zeros [4 units], states before [n, units]. */
struct cell {
    const struct pm_args *a;
    const struct attention_params *p;
    size_t units;
    float *z, *zeros, *before;
    bool has_state;
};

static struct cell cell_of(const struct pm_args *a)
{
    const struct attention_params *p = a->params;
    const size_t units = (size_t)p->units, n = (size_t)p->n;
    float *z = a->buf[C_SCRATCH];

    return (struct cell){ a, p, units, z, z + 4 * n * units, z + 4 * (n + 1) * units,
                          p->accumulate && p->at > 0 };
}

/* The kernel's row of the symbol that a row reads; zeros for no valid symbol. */
static const float *symbol_row(const struct cell *s, size_t row)
{
    const int *symbols = s->a->buf[C_SYMBOLS];
    int symbol = PM_ATTENTION_START;

    if (symbols && s->p->at > 0)
        symbol = symbols[pm_attention_place(s->p, row, s->p->at - 1)];
    if (symbol < 0 || symbol >= s->p->classes)
        return s->zeros;
    return (const float *)s->a->buf[C_KERNEL] + (size_t)symbol * 4 * s->units;
}

static bool is_running(const struct cell *s, size_t at)
{
    const int *symbols = s->a->buf[C_SYMBOLS];

    return !symbols || s->p->search || symbols[at] >= 0;
}

/* Items: rows. */
PM_CLONES static void cell_rows(void *ctx, size_t begin, size_t end)
{
    const struct cell *s = ctx;
    void *const *buf = s->a->buf;
    const size_t units = s->units;

    for (size_t row = begin; row < end; row++) {
        const size_t at = pm_attention_place(s->p, row, s->p->at);
        const size_t from = pm_attention_parent(s->p, buf[C_PARENTS], row);
        float *g = (float *)buf[C_GATES] + at * 4 * units, *c = buf[C_C], *y = buf[C_Y];
        const float *old = s->has_state
                               ? c + pm_attention_place(s->p, from, s->p->at - 1) * units
                               : s->zeros;

        if (!s->p->accumulate) {
            pm_attention_clear(s->p, buf[C_GATES], row, 4 * units);
            pm_attention_clear(s->p, c, row, units);
            pm_attention_clear(s->p, y, row, units);
        }
        if (is_running(s, at)) {
            pm_lstm_gates(s->z + row * 4 * units, symbol_row(s, row), buf[C_BIAS],
                          s->p->forget_bias, old, units, g, c + at * units, y + at * units);
        } else {
            memset(g, 0, 4 * units * sizeof *g);
            memset(c + at * units, 0, units * sizeof *c);
            memset(y + at * units, 0, units * sizeof *y);
        }
    }
}

/* Gathers the states before of a search's rows. */
static void gather_states(const struct cell *s)
{
    const float *y = s->a->buf[C_Y];

    for (size_t row = 0; row < (size_t)s->p->n; row++) {
        const size_t from = pm_attention_parent(s->p, s->a->buf[C_PARENTS], row);

        memcpy(s->before + row * s->units,
               y + pm_attention_place(s->p, from, s->p->at - 1) * s->units,
               s->units * sizeof *y);
    }
}

static void cell_cpu(const struct pm_args *a)
{
    struct cell s = cell_of(a);
    const struct attention_params *p = s.p;
    const float *kernel = (const float *)a->buf[C_KERNEL] + (size_t)p->classes * 4 * s.units;
    const bool gathered = a->buf[C_PARENTS];
    struct pm_gemm g = { .m = p->n, .n = 4 * p->units, .k = p->c, .lda = p->steps * p->c,
                         .ldb = 4 * p->units, .ldc = 4 * p->units };

    memset(s.zeros, 0, 4 * s.units * sizeof *s.zeros);
    pm_gemm(&g, (const float *)a->buf[C_CONTEXT] + (size_t)p->at * (size_t)p->c, kernel, s.z);
    if (s.has_state) {
        if (gathered)
            gather_states(&s);
        g.k = p->units, g.add = true;
        g.lda = gathered ? p->units : p->steps * p->units;
        pm_gemm(&g, gathered ? s.before
                             : (const float *)a->buf[C_Y] + (size_t)(p->at - 1) * s.units,
                kernel + (size_t)p->c * 4 * s.units, s.z);
    }
    pm_parallel((size_t)p->n, 4, cell_rows, &s);
}

static size_t cell_scratch(const void *params, int buf)
{
    const struct attention_params *p = params;
    const size_t n = (size_t)p->n;

    return buf == C_SCRATCH ? (5 * n + 4) * (size_t)p->units * sizeof(float) : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool weights_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("attention_weights", 64, 64 * count, out);
}

static bool cell_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct attention_params *p = params;

    (void)caps, (void)count;
    return pick_tiles("attention_cell", p->n, p->units, level, out);
}

static double weights_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    return (double)count * (2.0 * p->units * p->attention + p->t * (20.0 * p->attention +
                                                                    2.0 * p->c));
}

static double cell_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    (void)count;
    return (8.0 * (p->units + p->c) + 100) * p->n * p->units;
}

const struct pm_kernel pm_attention_weights = {
    .name = "attention_weights",
    .bufs = "r:keys r:memory r:query r:v r?:y r?:parents u:q u:alpha u:context u?:columns",
    .params_size = sizeof(struct attention_params),
    .accumulate = offsetof(struct attention_params, accumulate) + 1, .cpu_all = weights_cpu,
    .pick = weights_pick, .flops = weights_flops,
};
const struct pm_kernel pm_attention_cell = {
    .name = "attention_cell",
    .bufs = "r:kernel r:bias r?:symbols r?:parents r:context t:t u:gates u:c u:y",
    .params_size = sizeof(struct attention_params),
    .accumulate = offsetof(struct attention_params, accumulate) + 1, .cpu_all = cell_cpu,
    .cpu_scratch = cell_scratch, .pick = cell_pick, .flops = cell_flops,
};
