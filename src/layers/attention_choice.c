/* attention_choice: logits and beams of a search with the attention decoder (attention.h).
 *
 * A beam is a beginning of a text; its total is the logarithm of its probability. At each step the
 * candidates are the beams, continued by each class except the start. A beam that has ended
 * continues only with the end, and keeps its total. The candidates with the largest totals are the
 * beams of the next step. Among equal totals the lower beam comes first, then the lower class, so
 * all devices decide ties alike. At the first step there is one beam. */
#include <math.h>

#include "layers/attention.h"
#include "layers/vmath.h"

/* Items: rows. */
PM_CLONES static void logits_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct attention_params *p = a->params;
    const size_t classes = (size_t)p->classes, units = (size_t)p->units;
    const float *dense = a->buf[1];

    for (size_t row = begin; row < end; row++) {
        const size_t at = pm_attention_place(p, row, p->at);
        const float *y = (const float *)a->buf[0] + at * units;
        float *z = (float *)a->buf[3] + at * classes;

        if (!p->accumulate)
            pm_attention_clear(p, a->buf[3], row, classes);
        memcpy(z, a->buf[2], classes * sizeof *z);
        for (size_t j = 0; j < units; j++) {
            PM_SIMD
            for (size_t k = 0; k < classes; k++)
                z[k] += y[j] * dense[j * classes + k];
        }
    }
}

/* The beams of an example before a step. Twins: the shared arrays of attention_select.comp. */
struct beams {
    const struct attention_params *p;
    const float *logits[PM_ATTENTION_BEAMS];
    float total[PM_ATTENTION_BEAMS];
    float base[PM_ATTENTION_BEAMS]; /* the total minus the logarithm of the sum of exponentials */
    bool ended[PM_ATTENTION_BEAMS];
};
struct candidate {
    float total;
    int at; /* beam * classes + class */
};

PM_INLINE void open_beam(struct beams *b, const struct pm_args *a, size_t row, int beam)
{
    const struct attention_params *p = b->p;
    const bool begun = p->at > 0 && p->accumulate;
    const size_t before = pm_attention_place(p, row, p->at > 0 ? p->at - 1 : 0);
    const float *z =
        (const float *)a->buf[0] + pm_attention_place(p, row, p->at) * (size_t)p->classes;
    const float most = pm_row_max(z, p->classes);

    b->logits[beam] = z;
    b->total[beam] = begun ? ((const float *)a->buf[3])[before]
                           : beam == 0 ? 0 : PM_ATTENTION_NEVER;
    b->ended[beam] = begun && ((const int *)a->buf[1])[before] == PM_ATTENTION_END;
    b->base[beam] = b->total[beam] - (most + logf(pm_exp_sum(z, p->classes, 1, most)));
}

static float total_with(const struct beams *b, int i)
{
    const int beam = i / b->p->classes, k = i % b->p->classes;
    float value = b->base[beam] + b->logits[beam][k];

    if (b->ended[beam])
        value = k == PM_ATTENTION_END ? b->total[beam] : PM_ATTENTION_NEVER;
    return k != PM_ATTENTION_START && value > 0.5f * PM_ATTENTION_NEVER ? value
                                                                        : PM_ATTENTION_NEVER;
}

static bool is_before(struct candidate a, struct candidate b)
{
    return a.total > b.total || (a.total == b.total && a.at < b.at);
}

/* Returns the best candidate of those after `last`; any: of all candidates. If there is none, `at`
 * is the number of all candidates. */
static struct candidate find_next(const struct beams *b, struct candidate last, bool any)
{
    const int count = b->p->beams * b->p->classes;
    struct candidate best = { PM_ATTENTION_NEVER, count };

    for (int i = 0; i < count; i++) {
        const struct candidate c = { total_with(b, i), i };

        if (c.total > PM_ATTENTION_NEVER && (any || is_before(last, c)) && is_before(c, best))
            best = c;
    }
    return best;
}

static void write_beam(const struct pm_args *a, size_t row, struct candidate best)
{
    const struct attention_params *p = a->params;
    const size_t to = pm_attention_place(p, row, p->at);
    const bool none = best.at >= p->beams * p->classes;

    for (int i = 1; i <= 3 && !p->accumulate; i++)
        pm_attention_clear(p, a->buf[i], row, 1);
    ((int *)a->buf[1])[to] = none ? PM_ATTENTION_END : best.at % p->classes;
    ((int *)a->buf[2])[to] = none ? 0 : best.at / p->classes;
    ((float *)a->buf[3])[to] = none ? PM_ATTENTION_NEVER : best.total;
}

/* Items: examples. */
PM_CLONES static void select_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct attention_params *p = a->params;

    for (size_t example = begin; example < end; example++) {
        const size_t first = example * (size_t)p->beams;
        struct beams b = { .p = p };
        struct candidate last = { 0, 0 };

        for (int beam = 0; beam < p->beams; beam++)
            open_beam(&b, a, first + (size_t)beam, beam);
        for (int beam = 0; beam < p->beams; beam++) {
            last = find_next(&b, last, beam == 0);
            write_beam(a, first + (size_t)beam, last);
        }
    }
}

static bool logits_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const struct attention_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("attention_logits", 64, count * (size_t)p->classes, out);
}

static bool select_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    (void)caps, (void)params;
    return level == 0 && pm_pick_elements("attention_select", 64, 64 * count, out);
}

static double logits_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    return 2.0 * (double)count * p->units * p->classes;
}

static double select_flops(const void *params, size_t count)
{
    const struct attention_params *p = params;

    return (10.0 + 4.0 * p->beams) * (double)count * p->beams * p->classes;
}

const struct pm_kernel pm_attention_logits = {
    .name = "attention_logits", .bufs = "r:y r:dense r:bias u:logits",
    .params_size = sizeof(struct attention_params),
    .accumulate = offsetof(struct attention_params, accumulate) + 1, .cpu = logits_cpu, .grain = 4,
    .pick = logits_pick, .flops = logits_flops,
};
const struct pm_kernel pm_attention_select = {
    .name = "attention_select", .bufs = "r:logits u:symbols u:parents u:totals",
    .params_size = sizeof(struct attention_params),
    .accumulate = offsetof(struct attention_params, accumulate) + 1, .cpu = select_cpu, .grain = 4,
    .pick = select_pick, .flops = select_flops,
};
