/* squared_error, absolute_error: the distance of a prediction from a target, per value.
 *
 *     e = (x - t)^2 or |x - t|
 *     loss = weight * share * sum of w e / divisor
 *
 * w is 1 without weights. If the last axis of weights is 1 or missing, weights repeat along the
 * prediction's last axis. The divisor is the sum of these repeated w (normalize = weights) or the
 * number of terms w e that are not 0 (nonzero). share is the share of the whole batch that this
 * plan's examples represent. If the divisor is 0, loss and gradients are 0. With normalize = none,
 * divisor and share are 1: the weights hold a divisor of the whole batch. A term that is not
 * finite makes them NaN. Target and weights are data and get no gradient. |x - t| has the gradient
 * 0 where it is 0.
 *
 * The sum is computed in blocks of a fixed size; then the blocks are added in order. */
#include <string.h>

#include "error.params.h"
#include "layers/infer.h"
#include "layers/vmath.h"
#include <pumice/thread.h>

struct error_cfg {
    float weight;
    int normalize;
};

enum { WEIGHTS, NONZERO, NONE };

static const struct pm_opt opts[] = {
    PM_FLOAT(error_cfg, weight, 1, 0, 1e6, "weight of the loss"),
    PM_ENUM(error_cfg, normalize, WEIGHTS, "weights|nonzero|none",
            "divide the sum by the sum of the weights, or by the number of terms that are not 0; "
            "none = no division, and no factor for the device's share of the batch"),
    { 0 },
};

/* ---- rows ------------------------------------------------------------------------------ */

enum { BLOCK = 1024, GROUPS = 256 };

/* Fills the weights of elements begin..begin+n-1. */
PM_INLINE void weights_of(const struct error_params *p, const float *weights, size_t begin, int n,
                          float *w)
{
    const size_t per = (size_t)p->per;

    if (!weights) {
        for (int i = 0; i < n; i++)
            w[i] = 1;
    } else if (per == 1) {
        memcpy(w, weights + begin, (size_t)n * sizeof *w);
    } else {
        for (int i = 0, left; i < n; i += left) {
            const float value = weights[(begin + (size_t)i) / per];

            left = (int)(per - (begin + (size_t)i) % per);
            left = left < n - i ? left : n - i;
            for (int k = 0; k < left; k++)
                w[i + k] = value;
        }
    }
}

/* Sums blocks: part holds a sum and a divisor per block. */
PM_CLONES static void part_range(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct error_params *p = a->params;
    float *part = a->buf[3], w[BLOCK], term[BLOCK];

    for (size_t block = begin; block < end; block++) {
        const size_t first = block * BLOCK, left = (size_t)p->count - first;
        const int n = left < BLOCK ? (int)left : BLOCK;
        const float *x = (const float *)a->buf[0] + first, *t = (const float *)a->buf[1] + first;

        weights_of(p, a->buf[2], first, n, w);
        for (int i = 0; i < n; i++) {
            const float d = x[i] - t[i];
            term[i] = w[i] * (p->absolute ? fabsf(d) : d * d);
        }
        for (int i = 0; i < n && p->nonzero; i++)
            w[i] = term[i] != 0 ? 1 : 0;
        part[2 * block] = pm_row_sum(term, n);
        part[2 * block + 1] = pm_row_sum(w, n);
    }
}

static void sum_cpu(const struct pm_args *a)
{
    const struct error_params *p = a->params;
    const size_t blocks = ((size_t)p->count + BLOCK - 1) / BLOCK;
    const float *part = a->buf[3];
    float *loss = a->buf[4], *factor = a->buf[5], sum = 0, divisor = 0;

    pm_parallel(blocks, 16, part_range, (void *)(uintptr_t)a);
    for (size_t i = 0; i < blocks; i++)
        sum += part[2 * i], divisor += part[2 * i + 1];
    *factor = p->undivided ? p->scale : divisor > 0 ? p->scale / divisor : 0;
    *loss = sum * *factor;
    if (!(sum - sum == 0))
        *loss = *factor = NAN;
}

static size_t sum_scratch(const void *params, int buf)
{
    const struct error_params *p = params;
    return buf == 3 ? 2 * sizeof(float) * (((size_t)p->count + BLOCK - 1) / BLOCK) : 0;
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct error_params *p = a->params;
    const float *factor = a->buf[3];
    const struct pm_step *step = a->buf[4];
    const float scale = *factor * step->loss_scale;
    float w[BLOCK];

    for (int n; begin < end; begin += (size_t)n) {
        const float *x = (const float *)a->buf[0] + begin, *t = (const float *)a->buf[1] + begin;
        float *dx = (float *)a->buf[5] + begin;

        n = end - begin < BLOCK ? (int)(end - begin) : BLOCK;
        weights_of(p, a->buf[2], begin, n, w);
        PM_SIMD
        for (int i = 0; i < n; i++) {
            const float d = x[i] - t[i];
            dx[i] = w[i] * scale * (p->absolute ? (float)(d > 0) - (float)(d < 0) : 2 * d);
        }
    }
}

static bool sum_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const size_t groups = (count + 255) / 256;

    (void)caps, (void)params;
    if (level > 0)
        return false;
    pm_pick_elements("error_part", 64, 64 * (groups < GROUPS ? groups : GROUPS), out);
    out->d[1] = out->d[0];
    out->d[1].shader = "error_sum";
    out->d[1].groups[0] = 1;
    out->d[1].spec[3] = out->d[0].groups[0];
    out->d[1].specs = 4;
    out->count = 2;
    out->scratch[3] = 2 * GROUPS * sizeof(float);
    return true;
}

static double flops(const void *params, size_t count)
{
    (void)params;
    return 5.0 * (double)count;
}

static const struct pm_kernel sum = {
    .name = "error_sum", .bufs = "r:x r:target r?:weights t:part w:loss w:factor",
    .params_size = sizeof(struct error_params), .cpu_all = sum_cpu, .cpu_scratch = sum_scratch,
    .pick = sum_pick, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "error_bwd", .bufs = "r:x r:target r?:weights r:factor r:step w:dx", .inplace = "dx=x",
    .params_size = sizeof(struct error_params), .cpu = bwd_cpu, .flops = flops,
};

/* ---- layers ---------------------------------------------------------------------------- */

static int infer(struct pm_node *n)
{
    const struct pm_shape x = n->in[0]->out_shape;
    const size_t count = pm_shape_count(x);
    const size_t pixels = x.rank ? count / (size_t)x.dim[x.rank - 1] : 1;
    char a[64], b[64];

    if (!pm_shape_equal(n->in[1]->out_shape, x))
        return pm_fail(PM_ECONFIG, "%s: the target has shape %s, the prediction %s", n->name,
                       pm_shape_text(n->in[1]->out_shape, a), pm_shape_text(x, b));
    if (n->inputs > 2 && pm_shape_count(n->in[2]->out_shape) != count &&
        pm_shape_count(n->in[2]->out_shape) != pixels)
        return pm_fail(PM_ECONFIG,
                       "%s: weights have shape %s, but the prediction %s needs %zu weights, one "
                       "per value, or %zu, one per pixel",
                       n->name, pm_shape_text(n->in[2]->out_shape, a), pm_shape_text(x, b), count,
                       pixels);
    n->out_shape = (struct pm_shape){ 0 };
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, n->inputs - 1);
}

static struct pm_tensor given_weights(const struct pm_node *n)
{
    return n->inputs > 2 ? n->xs[2] : PM_NO_TENSOR;
}

static struct error_params params_of(const struct pm_node *n, struct pm_calls *c)
{
    const struct error_cfg *cfg = n->cfg;
    const size_t count = pm_count(n->x);

    return (struct error_params){
        .count = (int)count, .absolute = strcmp(n->layer->name, "absolute_error") == 0,
        .per = n->inputs > 2 ? (int)(count / pm_count(n->xs[2])) : 1,
        .nonzero = cfg->normalize == NONZERO, .undivided = cfg->normalize == NONE,
        .scale = cfg->weight * (cfg->normalize == NONE ? 1 : pm_loss_share(c)),
    };
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct error_params p = params_of(n, c);
    struct pm_tensor factor = pm_save(c, n, 0, (struct pm_shape){ 0 }, PM_F32);

    pm_call(c, &sum, (size_t)p.count, &p, PM_BUFS(n->x, n->xs[1], given_weights(n), PM_NO_TENSOR,
                                                  pm_loss_scalar(c, n->name), factor));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct error_params p = params_of(n, c);

    if (pm_has(n->dx))
        pm_call(c, &bwd, (size_t)p.count, &p, PM_BUFS(n->x, n->xs[1], given_weights(n), n->saved[0],
                                                      pm_step_tensor(c), n->dx));
}

#define ERROR(id, text)                                                                            \
    const struct pm_layer pm_layer_##id = {                                                        \
        .name = #id, .help = text ": inputs prediction, target and, optionally, weights",          \
        .opts = opts, .cfg_size = sizeof(struct error_cfg), .min_inputs = 2, .max_inputs = 3,      \
        .loss = true, .infer = infer, .forward = forward, .backward = backward,                    \
    }

ERROR(squared_error, "loss by squared differences");
ERROR(absolute_error, "loss by absolute differences");
