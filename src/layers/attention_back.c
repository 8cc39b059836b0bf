/* attention_back: the gradients of the attention decoder (attention.h). */
#include <math.h>

#include <pumice/thread.h>

#include "device/cpu/gemm.h"
#include "device/pick.h"
#include "layers/attention.h"
#include "layers/lstm_cell.h"
#include "layers/vmath.h"

/* ---- cell ------------------------------------------------------------------------------------ */

enum { B_DY, B_DQ, B_QUERY, B_GATES, B_C, B_KERNEL, B_LABELS, B_SCRATCH, B_DZ, B_DC };

/* Items: rows. The scratch holds dh [n, units], one old state of zeros, and the part of dh from the
 * step after, [units, n]. */
PM_CLONES static void back_rows(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct attention_params *p = a->params;
    const size_t units = (size_t)p->units, n = (size_t)p->n;
    const float *zeros = (const float *)a->buf[B_SCRATCH] + n * units, *later = zeros + units;

    for (size_t row = begin; row < end; row++) {
        const size_t at = pm_attention_place(p, row, p->at);
        const float *c = a->buf[B_C], *dy = (const float *)a->buf[B_DY] + at * units;
        float *dh = (float *)a->buf[B_SCRATCH] + row * units;
        float *dc = (float *)a->buf[B_DC] + row * units;
        float *dz = (float *)a->buf[B_DZ] + at * 4 * units;

        if (!p->accumulate) {
            pm_attention_clear(p, a->buf[B_DZ], row, 4 * units);
            memset(dc, 0, units * sizeof *dc);
        }
        if (((const int *)a->buf[B_LABELS])[at] >= 0) {
            for (size_t k = 0; k < units; k++)
                dh[k] = later[k * n + row] + dy[k];
            pm_lstm_back((const float *)a->buf[B_GATES] + at * 4 * units, c + at * units,
                         p->at > 0 ? c + (at - 1) * units : zeros, dh, units, dz, dc);
        } else {
            memset(dz, 0, 4 * units * sizeof *dz);
            memset(dc, 0, units * sizeof *dc);
        }
    }
}

static void back_cpu(const struct pm_args *a)
{
    const struct attention_params *p = a->params;
    const int four = 4 * p->units;
    const size_t units = (size_t)p->units, after = (size_t)p->at + 1;
    float *zeros = (float *)a->buf[B_SCRATCH] + (size_t)p->n * units, *later = zeros + units;
    struct pm_gemm g = { .m = p->units, .n = p->n, .k = four, .b_across = true, .lda = four,
                         .ldb = p->steps * four, .ldc = p->n }; /* see back_cpu in lstm.c */

    memset(zeros, 0, units * sizeof *zeros);
    if (p->accumulate && p->at + 1 < p->steps) {
        pm_gemm(&g, (const float *)a->buf[B_KERNEL] +
                        (size_t)(p->classes + p->c) * (size_t)four,
                (const float *)a->buf[B_DZ] + after * (size_t)four, later);
        g.k = g.lda = p->attention, g.ldb = p->steps * p->attention, g.add = true;
        if (a->buf[B_DQ])
            pm_gemm(&g, a->buf[B_QUERY],
                    (const float *)a->buf[B_DQ] + after * (size_t)p->attention, later);
    } else {
        memset(later, 0, (size_t)p->n * units * sizeof *later);
    }
    pm_parallel((size_t)p->n, 4, back_rows, (void *)a);
}

static size_t back_scratch(const void *params, int buf)
{
    const struct attention_params *p = params;

    return buf == B_SCRATCH ? (2 * (size_t)p->n + 1) * (size_t)p->units * sizeof(float) : 0;
}

/* ---- context and weights --------------------------------------------------------------------- */

static void context_cpu(const struct pm_args *a)
{
    const struct attention_params *p = a->params;
    const int four = 4 * p->units;
    const struct pm_gemm g = { .m = p->n, .n = p->c, .k = four, .b_across = true,
                               .lda = p->steps * four, .ldb = four, .ldc = p->steps * p->c };

    for (size_t row = 0; row < (size_t)p->n && !p->accumulate; row++)
        pm_attention_clear(p, a->buf[2], row, (size_t)p->c);
    pm_gemm(&g, (const float *)a->buf[0] + (size_t)p->at * (size_t)four,
            (const float *)a->buf[1] + (size_t)p->classes * (size_t)four,
            (float *)a->buf[2] + (size_t)p->at * (size_t)p->c);
}

PM_INLINE float dot(const float *a, const float *b, size_t count)
{
    float part[16] = { 0 };

    for (size_t i = 0; i + 16 <= count; i += 16)
        for (size_t k = 0; k < 16; k++)
            part[k] += a[i + k] * b[i + k];
    for (size_t i = count / 16 * 16; i < count; i++)
        part[i % 16] += a[i] * b[i];
    return pm_row_sum(part, 16);
}

enum { G_DCONTEXT, G_MEMORY, G_KEYS, G_V, G_Q, G_ALPHA, G_DSCORE, G_DQ };

PM_INLINE void row_weights(const struct pm_args *a, size_t row)
{
    const struct attention_params *p = a->params;
    const size_t t = (size_t)p->t, c = (size_t)p->c, units = (size_t)p->attention;
    const size_t at = pm_attention_place(p, row, p->at), example = row / (size_t)p->beams;
    const float *memory = (const float *)a->buf[G_MEMORY] + example * t * c;
    const float *keys = (const float *)a->buf[G_KEYS] + example * t * units;
    const float *q = (const float *)a->buf[G_Q] + at * units, *v = a->buf[G_V];
    const float *alpha = (const float *)a->buf[G_ALPHA] + at * t;
    float *slope = (float *)a->buf[G_DSCORE] + at * t, *dq = (float *)a->buf[G_DQ] + at * units;
    float mean;

    for (size_t j = 0; j < t; j++)
        slope[j] = dot((const float *)a->buf[G_DCONTEXT] + at * c, memory + j * c, c);
    mean = dot(alpha, slope, t);
    memset(dq, 0, units * sizeof *dq);
    for (size_t j = 0; j < t; j++) {
        const float d = alpha[j] * (slope[j] - mean);

        slope[j] = d;
        PM_SIMD
        for (size_t k = 0; k < units; k++) {
            const float th = pm_tanh(keys[j * units + k] + q[k]);

            dq[k] += d * (1 - th * th);
        }
    }
    for (size_t k = 0; k < units; k++)
        dq[k] *= v[k];
}

/* Items: rows. */
PM_CLONES static void weights_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct attention_params *p = a->params;

    for (size_t row = begin; row < end; row++) {
        if (!p->accumulate) {
            pm_attention_clear(p, a->buf[G_DSCORE], row, (size_t)p->t);
            pm_attention_clear(p, a->buf[G_DQ], row, (size_t)p->attention);
        }
        row_weights(a, row);
    }
}

/* ---- after the steps ------------------------------------------------------------------------- */

/* Items: steps of the sequences. */
PM_CLONES static void keys_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct attention_params *p = a->params;
    const size_t t = (size_t)p->t, units = (size_t)p->attention;
    const float *v = a->buf[1], *q = a->buf[2], *dscore = a->buf[3];

    for (size_t i = begin; i < end; i++) {
        const size_t row = i / t, j = i % t;
        const float *key = (const float *)a->buf[0] + i * units;
        float *dkey = (float *)a->buf[4] + i * units, *dv = (float *)a->buf[5] + i * units;

        memset(dkey, 0, units * sizeof *dkey);
        memset(dv, 0, units * sizeof *dv);
        for (int step = 0; step < p->steps; step++) {
            const size_t at = pm_attention_place(p, row, step);
            const float d = dscore[at * t + j], *own = q + at * units;

            PM_SIMD
            for (size_t k = 0; k < units; k++) {
                const float th = pm_tanh(key[k] + own[k]);

                dkey[k] += d * (1 - th * th);
                dv[k] += d * th;
            }
        }
        for (size_t k = 0; k < units; k++)
            dkey[k] *= v[k];
    }
}

/* Items: steps of the sequences. */
PM_CLONES static void memory_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct attention_params *p = a->params;
    const size_t t = (size_t)p->t, c = (size_t)p->c;
    const float *alpha = a->buf[0], *dcontext = a->buf[1];

    for (size_t i = begin; i < end; i++) {
        const size_t row = i / t, j = i % t;
        float *d = (float *)a->buf[2] + i * c;

        if (!p->accumulate)
            memset(d, 0, c * sizeof *d);
        for (int step = 0; step < p->steps; step++) {
            const size_t at = pm_attention_place(p, row, step);
            const float w = alpha[at * t + j], *from = dcontext + at * c;

            PM_SIMD
            for (size_t k = 0; k < c; k++)
                d[k] += w * from[k];
        }
    }
}

/* Items: rows of all steps. */
static void inputs_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct attention_params *p = a->params;
    const size_t classes = (size_t)p->classes, c = (size_t)p->c, units = (size_t)p->units;
    const int *labels = a->buf[0];

    for (size_t i = begin; i < end; i++) {
        const bool first = i % (size_t)p->steps == 0;
        const int symbol = first ? PM_ATTENTION_START : labels[i - 1];
        float *x = (float *)a->buf[3] + i * (classes + c + units);
        float *state = (float *)a->buf[4] + i * units;

        memset(x, 0, classes * sizeof *x);
        if (symbol >= 0 && symbol < p->classes)
            x[symbol] = 1;
        memcpy(x + classes, (const float *)a->buf[1] + i * c, c * sizeof *x);
        if (first)
            memset(state, 0, units * sizeof *state);
        else
            memcpy(state, (const float *)a->buf[2] + (i - 1) * units, units * sizeof *state);
        memcpy(x + classes + c, state, units * sizeof *x);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool back_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct attention_params *p = params;

    (void)caps, (void)count;
    return pick_tiles("attention_back", p->n, p->units, level, out);
}

static bool context_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    const struct attention_params *p = params;

    (void)caps, (void)count;
    return pick_tiles("attention_back_context", p->n, p->c, level, out);
}

static bool weights_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("attention_back_weights", 64, 64 * count, out);
}

static bool keys_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct attention_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("attention_back_keys", 64, count * (size_t)p->attention, out);
}

static bool memory_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const struct attention_params *p = params;

    (void)caps;
    return level == 0 && pm_pick_elements("attention_back_memory", 64, count * (size_t)p->c, out);
}

static bool inputs_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const struct attention_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("attention_inputs", 64,
                            count * (size_t)(p->classes + p->c + p->units), out);
}

static double back_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    (void)count;
    return (8.0 * p->units + 2.0 * p->attention + 100) * p->n * p->units;
}

static double context_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    (void)count;
    return 8.0 * p->units * p->n * p->c;
}

static double weights_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    return (double)count * p->t * (20.0 * p->attention + 2.0 * p->c);
}

static double keys_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    return 20.0 * (double)count * p->attention * p->steps;
}

static double memory_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    return 2.0 * (double)count * p->c * p->steps;
}

#define PARAMS .params_size = sizeof(struct attention_params)
#define ACCUMULATES .accumulate = offsetof(struct attention_params, accumulate) + 1
const struct pm_kernel pm_attention_back = {
    .name = "attention_back",
    .bufs = "r:dy r?:dq r:query r:gates r:c r:kernel r:labels t:t u:dz u:dc",
    PARAMS, ACCUMULATES, .cpu_all = back_cpu, .cpu_scratch = back_scratch, .pick = back_pick,
    .flops = back_flops,
};
const struct pm_kernel pm_attention_back_context = {
    .name = "attention_back_context", .bufs = "r:dz r:kernel u:dcontext",
    PARAMS, ACCUMULATES, .cpu_all = context_cpu, .pick = context_pick, .flops = context_flops,
};
const struct pm_kernel pm_attention_back_weights = {
    .name = "attention_back_weights",
    .bufs = "r:dcontext r:memory r:keys r:v r:q r:alpha u:dscore u:dq",
    PARAMS, ACCUMULATES, .cpu = weights_cpu, .grain = 1, .pick = weights_pick,
    .flops = weights_flops,
};
const struct pm_kernel pm_attention_back_keys = {
    .name = "attention_back_keys", .bufs = "r:keys r:v r:q r:dscore w:dkeys w:dv",
    PARAMS, .cpu = keys_cpu, .grain = 1, .pick = keys_pick, .flops = keys_flops,
};
const struct pm_kernel pm_attention_back_memory = {
    .name = "attention_back_memory", .bufs = "r:alpha r:dcontext u:dmemory",
    PARAMS, ACCUMULATES, .cpu = memory_cpu, .grain = 1, .pick = memory_pick,
    .flops = memory_flops,
};
const struct pm_kernel pm_attention_inputs = {
    .name = "attention_inputs", .bufs = "r:labels r:context r:y w:x w:state",
    PARAMS, .cpu = inputs_cpu, .grain = 16, .pick = inputs_pick,
};
