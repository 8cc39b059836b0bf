/* lamb: adam's direction plus weight decay, scaled to the length of the variable, for large
 * batches:
 *
 *   m += (g - m) * (1 - beta1); v += (g^2 - v) * (1 - beta2)
 *   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * w
 *   w -= lr * ratio * u, ratio = |w| / |u| over the variable, 1 if either is 0
 *
 * optim.weight_decay and the ratio apply to the variables that the net regularises. Biases and
 * batch norm's variables use ratio 1; otherwise those that start at zero would hardly move.
 *
 * There are three calls: moments and sums of squares per chunk, the variables' ratios, and the
 * step. The step computes u again instead of reading it. Sums have fixed chunks and a fixed
 * order. */
#include "optim/adam.h"

#include "base/vector.h"
#include "update.params.h"

enum { LANES = 16 }; /* partial sums of a chunk, so that the compiler can use vectors */

static const struct pm_opt opts[] = {
    ADAM_BETA_OPTS,
    PM_FLOAT(adam_cfg, epsilon, 1e-6, 1e-20, 10, "added to the root of the mean of squares"),
    { 0 },
};

/* Factors of m and v in one step. */
struct corrections {
    float mean, square;
};

static struct corrections corrections_of(const struct pm_step *s)
{
    return (struct corrections){ 1 / (1 - s->beta1_power), 1 / (1 - s->beta2_power) };
}

static inline float direction(struct corrections c, float epsilon, float decay, float m, float v,
                              float w)
{
    return m * c.mean / (sqrtf(v * c.square) + epsilon) + decay * w;
}

/* ---- moments ---------------------------------------------------------------------------- */

PM_CLONES
static void moments_chunk(const struct pm_args *a, const uint32_t *chunk, float partial[2])
{
    const struct optimizer_lamb_params *p = a->params;
    const float *restrict g = a->buf[0], *restrict w = a->buf[7];
    float *restrict m = a->buf[8], *restrict v = a->buf[9];
    float s = ((const float *)a->buf[1])[chunk[2]] * ((const float *)a->buf[2])[PM_RESULT_CLIP];
    float decay = ((const float *)a->buf[6])[2 * chunk[2]];
    float one1 = 1 - p->beta1, one2 = 1 - p->beta2;
    struct corrections c = corrections_of(a->buf[4]);
    float ww[LANES] = { 0 }, uu[LANES] = { 0 };

    for (size_t at = chunk[0], end = at + chunk[1]; at < end; at += LANES) {
        size_t lanes = end - at < LANES ? end - at : LANES;

        for (size_t k = 0; k < lanes; k++) {
            size_t i = at + k;
            float x = g[i] * s, u;

            m[i] += (x - m[i]) * one1;
            v[i] += (x * x - v[i]) * one2;
            u = direction(c, p->epsilon, decay, m[i], v[i], w[i]);
            ww[k] += w[i] * w[i];
            uu[k] += u * u;
        }
    }
    partial[0] = partial[1] = 0;
    for (int k = 0; k < LANES; k++) {
        partial[0] += ww[k];
        partial[1] += uu[k];
    }
}

static void moments_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const uint32_t *chunks = a->buf[5];
    float *partials = a->buf[10];

    for (size_t i = begin; i < end; i++) {
        partials[2 * i] = partials[2 * i + 1] = 0;
        if (*(const uint32_t *)a->buf[3])
            moments_chunk(a, chunks + 4 * i, partials + 2 * i);
    }
}

static bool moments_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    (void)caps, (void)params;
    pm_pick_elements("optimizer_lamb_moments", 64, count * 64, out); /* a group per chunk */
    return level == 0;
}

static const struct pm_kernel moments_row = {
    .name = "optimizer_lamb_moments",
    .bufs = "r:g r:scale r:result r:flag r:step r:chunks r:decay r:w u:m u:v w:partials",
    .params_size = sizeof(struct optimizer_lamb_params), .cpu = moments_cpu, .grain = 4,
    .pick = moments_pick,
};

/* ---- ratios ----------------------------------------------------------------------------- */

static void ratios_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const float *partials = a->buf[0], *decay = a->buf[2];
    const uint32_t *vars = a->buf[1];
    float *ratio = a->buf[3];

    for (size_t i = begin; i < end; i++) {
        const uint32_t *var = vars + 4 * i;
        double ww = 0, uu = 0;

        for (uint32_t k = var[0]; k < var[0] + var[1]; k++) {
            ww += partials[2 * k];
            uu += partials[2 * k + 1];
        }
        ratio[i] = decay[2 * i + 1] > 0 && ww > 0 && uu > 0 ? (float)sqrt(ww / uu) : 1;
        if (decay[2 * i + 1] < 0)
            ratio[i] = 0; /* frozen */
    }
}

static bool ratios_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    (void)caps, (void)params;
    pm_pick_elements("optimizer_lamb_ratios", 64, count * 64, out); /* a group per variable */
    return level == 0;
}

static const struct pm_kernel ratios_row = {
    .name = "optimizer_lamb_ratios", .bufs = "r:partials r:vars r:decay w:ratio",
    .params_size = sizeof(struct optimizer_lamb_params), .cpu = ratios_cpu, .grain = 16,
    .pick = ratios_pick,
};

/* ---- the step --------------------------------------------------------------------------- */

PM_CLONES
static void apply_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct optimizer_lamb_params *p = a->params;
    const uint32_t *owner = a->buf[0];
    const struct pm_step *step = a->buf[2];
    const float *ratio = a->buf[3], *decay = a->buf[4];
    const float *restrict m = a->buf[5], *restrict v = a->buf[6];
    float *restrict w = a->buf[7];
    struct corrections c = corrections_of(step);

    if (*(const uint32_t *)a->buf[1] == 0)
        return;
    for (size_t at = begin; at < end; at += 64) {
        size_t last = at + 64 < end ? at + 64 : end;
        uint32_t of = owner[at / 64];
        float rate = step->lr * ratio[of], d = decay[2 * of];

        for (size_t i = at; i < last; i++)
            w[i] -= rate * direction(c, p->epsilon, d, m[i], v[i], w[i]);
    }
}

static const struct pm_kernel apply_row = {
    .name = "optimizer_lamb_apply",
    .bufs = "r:owner r:flag r:step r:ratio r:decay r:m r:v u:w",
    .params_size = sizeof(struct optimizer_lamb_params), .cpu = apply_cpu, .grain = 4096,
};

/* ---- calls ------------------------------------------------------------------------------ */

static void append(struct pm_calls *c, const void *cfg, const struct pm_update_parts *u)
{
    const struct adam_cfg *o = cfg;
    struct optimizer_lamb_params p = { .beta1 = o->beta1, .beta2 = o->beta2,
                                       .epsilon = o->epsilon };
    struct pm_tensor partials = pm_temp(c, PM_SHAPE2(u->chunk_count, 2), PM_F32);
    struct pm_tensor ratio = pm_temp(c, PM_SHAPE1(u->var_count), PM_F32);

    p.count = u->chunk_count;
    pm_call(c, &moments_row, (size_t)p.count, &p,
            PM_BUFS(u->g, u->scale, u->result, u->flag, u->step, u->chunks, u->decay, u->w,
                    u->slot[0], u->slot[1], partials));
    p.count = u->var_count;
    pm_call(c, &ratios_row, (size_t)p.count, &p, PM_BUFS(partials, u->vars, u->decay, ratio));
    p.count = u->floats;
    pm_call(c, &apply_row, (size_t)p.count, &p,
            PM_BUFS(u->owner, u->flag, u->step, ratio, u->decay, u->slot[0], u->slot[1], u->w));
}

const struct pm_optimizer pm_optimizer_lamb = {
    .name = "lamb", .help = "adam with steps scaled to each variable's norm, for large batches",
    .opts = opts, .cfg_size = sizeof(struct adam_cfg), .slots = { "LAMB", "LAMB_1" },
    .append = append, .decoupled = true, .whole = true, .betas = adam_betas,
};
