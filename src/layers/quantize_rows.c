/* The rows of fake quantisation; quantize_rows.h describes what each computes. This file is
 * compiled without fused products. A fused product could round a number between two steps the other
 * way, and devices would disagree. */
#include "layers/quantize_rows.h"

#include <pumice/thread.h>

#include "layers/dispatches.h"
#include "device/pick.h"
#include "layers/vmath.h"

/* ---- ranges ------------------------------------------------------------------------------ */

static size_t range_scratch(const void *params, int buf)
{
    const struct quant_range_params *p = params;

    return buf == 1 ? 2 * sizeof(float) * (size_t)p->chunks : 0;
}

PM_CLONES static void range_chunks(void *ctx, size_t begin, size_t end)
{
    enum { LANES = 64 }; /* GCC unrolls a loop over fewer, and then does not vectorise it */
    const struct pm_args *a = ctx;
    const struct quant_range_params *p = a->params;
    const size_t count = (size_t)p->count;
    const size_t length = (count + (size_t)p->chunks - 1) / (size_t)p->chunks;

    for (size_t chunk = begin; chunk < end; chunk++) {
        const size_t first = chunk * length < count ? chunk * length : count;
        const size_t last = first + length < count ? first + length : count;
        const float *x = a->buf[0];
        float low[LANES] = { 0 }, high[LANES] = { 0 }, *part = (float *)a->buf[1] + 2 * chunk;
        size_t i = first;

        for (; i + LANES <= last; i += LANES)
            for (int k = 0; k < LANES; k++) {
                low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
                high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
            }
        for (; i < last; i++) {
            low[0] = x[i] < low[0] ? x[i] : low[0];
            high[0] = x[i] > high[0] ? x[i] : high[0];
        }
        for (int k = 1; k < LANES; k++) {
            low[0] = low[k] < low[0] ? low[k] : low[0];
            high[0] = high[k] > high[0] ? high[k] : high[0];
        }
        part[0] = low[0];
        part[1] = high[0];
    }
}

static void range_cpu(const struct pm_args *a)
{
    const struct quant_range_params *p = a->params;
    const float *part = a->buf[1];
    float *range = a->buf[2];

    pm_parallel((size_t)p->chunks, 1, range_chunks, (void *)a);
    range[0] = range[1] = 0;
    for (int i = 0; i < p->chunks; i++) {
        range[0] = part[2 * i] < range[0] ? part[2 * i] : range[0];
        range[1] = part[2 * i + 1] > range[1] ? part[2 * i + 1] : range[1];
    }
    if (p->below > 0) {
        const float low = -(range[1] * p->below), high = -(range[0] * p->above);

        range[0] = low < range[0] ? low : range[0];
        range[1] = high > range[1] ? high : range[1];
    }
}

static bool range_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    const struct quant_range_params *p = params;

    (void)caps, (void)count;
    if (level > 0)
        return false;
    *out = (struct pm_picks){ .variant = "quant_range" };
    pm_pick_add(out, "quant_range", 64, 1)->groups[0] = (uint32_t)p->chunks;
    pm_pick_add(out, "quant_range_combine", 64, 1);
    out->scratch[1] = range_scratch(params, 1);
    return true;
}

/* Returns 1 - decay^steps. Near 0 it uses the series, which does not cancel. */
static float weight(float decline, float steps)
{
    const float t = steps * decline;

    if (t < 0.5f)
        return t *
               (1 - t * (1.0f / 2 -
                         t * (1.0f / 6 - t * (1.0f / 24 - t * (1.0f / 120 - t * (1.0f / 720))))));
    return 1 - pm_expf(-t);
}

static void track_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct quant_track_params *p = a->params;
    const float *range = a->buf[0];
    float *state = a->buf[5];

    for (size_t i = begin; i < end; i++) { /* min, max */
        const float biased = *(const float *)a->buf[1 + i];
        const float steps = *(const float *)a->buf[3 + i] + 1,
                    to = biased - p->rate * (biased - range[i]);

        state[STATE_MIN + i] = to / weight(p->decline, steps);
        state[STATE_BIASED_MIN + i] = to;
        state[STATE_STEPS_MIN + i] = steps;
    }
}

void pm_quant_make_grid(float low, float high, bool narrow, float grid[GRID_SIZE])
{
    const float least = narrow ? 1 : 0;
    const float width = high - low < (float)LEAST_WIDTH ? 0 : (high - low) / (255 - least);
    const float first = width > 0 ? least - low / width : least;
    float zero = floorf(first + 0.5f);

    zero = zero < least ? least : zero > 255 ? 255 : zero;
    grid[GRID_LOW] = (least - zero) * width;
    grid[GRID_HIGH] = (255 - zero) * width;
    grid[GRID_STEP] = width;
    grid[GRID_INVERSE] = width > 0 ? 1 / width : 0;
    grid[GRID_ZERO] = zero - least;
    grid[GRID_ON] = 1;
}

static void grid_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct quant_grid_params *p = a->params;
    const float *low = a->buf[0], *high = a->buf[1];
    const struct pm_step *step = a->buf[2];
    float *grid = a->buf[3];

    if (begin == end)
        return;
    pm_quant_make_grid(low[0], high ? high[0] : low[1], p->narrow, grid);
    grid[GRID_ON] = p->delay <= 0 || (int)step->step + 1 >= p->delay ? 1 : 0;
}

static void keep_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const float *state = a->buf[0];

    if (begin == end || *(const uint32_t *)a->buf[1] == 0)
        return;
    for (int i = 0; i < STATE_SIZE; i++)
        if (a->buf[2 + i])
            *(float *)a->buf[2 + i] = state[i];
}

/* ---- values ------------------------------------------------------------------------------ */

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const float *x = a->buf[0], *grid = a->buf[1];
    const float low = grid[GRID_LOW], high = grid[GRID_HIGH], width = grid[GRID_STEP];
    const struct quant_params *p = a->params;
    const float inverse = grid[GRID_INVERSE], zero = grid[GRID_ZERO];
    const float unit = p->steps ? 1 : width;
    float *y = a->buf[2];

    if (grid[GRID_ON] == 0) {
        if (x != y)
            memcpy(y + begin, x + begin, (end - begin) * sizeof *y);
        return;
    }
    if (p->even) {
        PM_SIMD
        for (size_t i = begin; i < end; i++) {
            const float above = x[i] < low ? low : x[i], inside = above > high ? high : above;

            y[i] = rintf(inside * inverse) * unit;
        }
        return;
    }
    PM_SIMD
    for (size_t i = begin; i < end; i++) {
        const float above = x[i] < low ? low : x[i], inside = above > high ? high : above;

        y[i] = floorf((inside - low) * inverse - zero + 0.5f) * unit;
    }
}

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const float *x = a->buf[0], *grid = a->buf[1], *dy = a->buf[2];
    const float low = grid[GRID_LOW], high = grid[GRID_HIGH];
    const int all = grid[GRID_ON] == 0 || grid[GRID_STEP] == 0;
    float *dx = a->buf[3];

    PM_SIMD
    for (size_t i = begin; i < end; i++)
        dx[i] = all | ((x[i] >= low) & (x[i] <= high)) ? dy[i] : 0;
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct quant_params *p = params;

    (void)caps;
    return pick_four("quant_fwd4", "quant_fwd", p->count % 4 == 0, count, 0, level, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct quant_params *p = params;

    (void)caps;
    return pick_four("quant_bwd4", "quant_bwd", p->count % 4 == 0, count, 0, level, out);
}

/* ---- folded batch norm --------------------------------------------------------------------- */

/* Returns how many weights from number i on, before `end`, are of one row: of channels i % k .. */
static size_t rest_of_row(size_t i, size_t end, size_t k)
{
    const size_t rest = k - i % k;

    return rest < end - i ? rest : end - i;
}

PM_CLONES static void fold_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct quant_fold_params *p = a->params;
    const size_t channels = (size_t)p->k;

    for (size_t i = begin, n; i < end; i += n) {
        const float *w = (const float *)a->buf[0] + i, *gamma = a->buf[1];
        const float *rstd = (const float *)a->buf[2] + i % channels;
        float *folded = (float *)a->buf[3] + i;

        n = rest_of_row(i, end, channels);
        gamma = gamma ? gamma + i % channels : NULL;
        PM_SIMD
        for (size_t k = 0; k < n; k++)
            folded[k] = w[k] * (gamma ? rstd[k] * gamma[k] : rstd[k]);
    }
}

PM_CLONES static void fold_bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct quant_fold_bwd_params *p = a->params;
    const size_t channels = (size_t)p->k;

    for (size_t i = begin, n; i < end; i += n) {
        const float *d = (const float *)a->buf[0] + i, *w = (const float *)a->buf[1] + i;
        const float *gamma = a->buf[2], *rstd = a->buf[3];
        float *dw = a->buf[4], *terms = a->buf[5];

        n = rest_of_row(i, end, channels);
        gamma = gamma ? gamma + i % channels : NULL;
        rstd = rstd ? rstd + i % channels : NULL;
        dw = dw ? dw + i : NULL;
        terms = terms ? terms + i : NULL;
        PM_SIMD
        for (size_t k = 0; k < n; k++) {
            const float r = rstd ? rstd[k] : 1, gradient = d[k] * (gamma ? r * gamma[k] : r);

            if (dw)
                dw[k] = p->accumulate ? dw[k] + gradient : gradient;
            if (terms)
                terms[k] = d[k] * w[k] * r;
        }
    }
}

/* Whether the moving averages replace the batch's statistics in this step; without a step: no. */
static bool is_frozen(const void *step, int freeze)
{
    return step && (int)((const struct pm_step *)step)->step + 1 > freeze;
}

static void center_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct quant_center_params *p = a->params;
    const float *mean = a->buf[0], *gamma = a->buf[1], *moving_rstd = a->buf[2], *rstd = a->buf[3];
    const float *moving_mean = a->buf[4], *variance = a->buf[5];
    const bool frozen = is_frozen(a->buf[6], p->freeze);
    float *center = a->buf[7], *scale = a->buf[8], *kept = a->buf[9];

    for (size_t k = begin; k < end; k++) {
        const float m = frozen ? moving_mean[k] : mean[k];

        center[k] = m * (gamma ? gamma[k] : 1) * moving_rstd[k];
        scale[k] = rstd && !frozen ? rstd[k] / moving_rstd[k] : 1;
        if (kept)
            kept[k] = frozen ? -1 : variance[k];
    }
}

float pm_quant_unit(float product)
{
    return product >= (float)LEAST_WIDTH ? product : (float)LEAST_WIDTH;
}

float pm_quant_bias_steps(float bias, float product)
{
    const float most = (float)MOST_STEPS, steps = bias / pm_quant_unit(product);

    return product >= (float)LEAST_WIDTH ? fminf(fmaxf(rintf(steps), -most), most) : steps;
}

float pm_quant_folded_bias(float add, float mean, float factor)
{
    return add - mean * factor;
}

static void bias_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const float *add = a->buf[2], *mean = a->buf[3], *gamma = a->buf[4], *rstd = a->buf[5];
    const float product =
        ((const float *)a->buf[0])[GRID_STEP] * ((const float *)a->buf[1])[GRID_STEP];
    float *center = a->buf[6], *scale = a->buf[7];

    for (size_t k = begin; k < end; k++) {
        float bias = add ? add[k] : 0;

        if (mean)
            bias = pm_quant_folded_bias(bias, mean[k], gamma ? rstd[k] * gamma[k] : rstd[k]);
        center[k] = -pm_quant_bias_steps(bias, product);
        scale[k] = pm_quant_unit(product);
    }
}

static void sums_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct quant_sums_params *p = args->params;
    const float *sums = args->buf[0], *mean = args->buf[1], *rstd = args->buf[2];
    const float *gamma = args->buf[3], *moving_mean = args->buf[4], *moving_rstd = args->buf[5];
    const bool frozen = is_frozen(args->buf[6], p->freeze);
    float *p0 = args->buf[7], *q = args->buf[8], *dgamma = args->buf[9];

    for (size_t k = begin; k < end; k++) {
        const float a = sums[k], b = sums[(size_t)p->k + k], r = rstd[k],
                    factor = gamma ? gamma[k] : 1;
        const float gradient = -(frozen ? a * moving_mean[k] * moving_rstd[k] : a * mean[k] * r);

        if (p0) {
            p0[k] = frozen ? 0 : -(a * factor * r * p->inv_count);
            q[k] = frozen ? 0 : -(b * r * r * p->inv_count);
        }
        if (dgamma)
            dgamma[k] = p->accumulate ? dgamma[k] + gradient : gradient;
    }
}

/* ---- rows -------------------------------------------------------------------------------- */

const struct pm_kernel pm_row_quant_range = {
    .name = "quant_range",
    .bufs = "r:x t:part w:range",
    .cpu_all = range_cpu,
    .params_size = sizeof(struct quant_range_params),
    .cpu_scratch = range_scratch,
    .pick = range_pick,
};
const struct pm_kernel pm_row_quant_track = {
    .name = "quant_track",
    .bufs = "r:range r:min_biased r:max_biased r:min_steps r:max_steps w:state",
    .params_size = sizeof(struct quant_track_params),
    .cpu = track_cpu,
};
const struct pm_kernel pm_row_quant_grid = {
    .name = "quant_grid",
    .bufs = "r:low r?:high r:step w:grid",
    .params_size = sizeof(struct quant_grid_params),
    .cpu = grid_cpu,
};
const struct pm_kernel pm_row_quant_keep = {
    .name = "quant_keep",
    .bufs = "r:state r:flag u:low u:high u?:min_biased u?:max_biased u?:min_steps u?:max_steps",
    .params_size = sizeof(struct quant_params),
    .cpu = keep_cpu,
};
const struct pm_kernel pm_row_quant_fwd = {
    .name = "quant_fwd",
    .bufs = "r:x r:grid w:y",
    .inplace = "y=x",
    .params_size = sizeof(struct quant_params),
    .cpu = fwd_cpu,
    .pick = fwd_pick,
};
const struct pm_kernel pm_row_quant_bwd = {
    .name = "quant_bwd",
    .bufs = "r:x r:grid r:dy w:dx",
    .inplace = "dx=dy",
    .params_size = sizeof(struct quant_params),
    .cpu = bwd_cpu,
    .pick = bwd_pick,
};
const struct pm_kernel pm_row_quant_fold = {
    .name = "quant_fold",
    .bufs = "r:w r?:gamma r:rstd w:folded",
    .params_size = sizeof(struct quant_fold_params),
    .cpu = fold_cpu,
};
const struct pm_kernel pm_row_quant_fold_bwd = {
    .name = "quant_fold_bwd",
    .bufs = "r:d r:w r?:gamma r?:rstd u?:dw w?:terms",
    .params_size = sizeof(struct quant_fold_bwd_params),
    .cpu = fold_bwd_cpu,
    .accumulate = offsetof(struct quant_fold_bwd_params, accumulate) + 1,
};
const struct pm_kernel pm_row_quant_center = {
    .name = "quant_center",
    .bufs = "r:mean r?:gamma r:moving_rstd r?:rstd r?:moving_mean r?:variance r?:step w:center "
            "w:scale w?:kept",
    .params_size = sizeof(struct quant_center_params),
    .cpu = center_cpu,
};
const struct pm_kernel pm_row_quant_bias = {
    .name = "quant_bias",
    .bufs = "r:input_grid r:weights_grid r?:add r?:mean r?:gamma r?:rstd w:center w:scale",
    .params_size = sizeof(struct quant_bias_params),
    .cpu = bias_cpu,
};
const struct pm_kernel pm_row_quant_sums = {
    .name = "quant_sums",
    .bufs = "r:sums r:mean r:rstd r?:gamma r?:moving_mean r?:moving_rstd r?:step w?:p w?:q "
            "u?:dgamma",
    .params_size = sizeof(struct quant_sums_params),
    .cpu = sums_cpu,
    .accumulate = offsetof(struct quant_sums_params, accumulate) + 1,
};

/* ---- calls ------------------------------------------------------------------------------- */

struct pm_tensor pm_quant_range(struct pm_calls *c, struct pm_tensor x, bool symmetric, bool narrow)
{
    const size_t count = pm_count(x), chunks = pm_ceil_div(count, 8192);
    /* A range of 256 steps has 128 below 0 and 127 above it. */
    const struct quant_range_params p = {
        .count = (int)count,
        .chunks = chunks > 1024 ? 1024 : (int)chunks,
        .below = !symmetric ? 0 : narrow ? 1 : 128.0f / 127,
        .above = !symmetric ? 0 : narrow ? 1 : 127.0f / 128,
    };
    const struct pm_tensor range = pm_temp(c, PM_SHAPE1(2), PM_F32);

    pm_call(c, &pm_row_quant_range, count, &p, PM_BUFS(x, PM_NO_TENSOR, range));
    return range;
}

struct pm_tensor pm_quant_grid(struct pm_calls *c, struct pm_tensor low, struct pm_tensor high,
                               bool narrow, int delay)
{
    const struct quant_grid_params p = { narrow, delay };
    const struct pm_tensor grid = pm_temp(c, PM_SHAPE1(GRID_SIZE), PM_F32);

    pm_call(c, &pm_row_quant_grid, 1, &p, PM_BUFS(low, high, pm_step_tensor(c), grid));
    return grid;
}

static void round_values(struct pm_calls *c, struct pm_tensor x, struct pm_tensor grid,
                         enum pm_quant_rounding how, bool steps, struct pm_tensor y)
{
    const struct quant_params p = { (int)pm_count(x), how == PM_QUANT_RUNTIME, steps };

    pm_call(c, &pm_row_quant_fwd, pm_count(x), &p, PM_BUFS(x, grid, y));
}

void pm_quant_forward(struct pm_calls *c, struct pm_tensor x, struct pm_tensor grid,
                      enum pm_quant_rounding how, struct pm_tensor y)
{
    round_values(c, x, grid, how, false, y);
}

struct pm_tensor pm_quant_integers(struct pm_calls *c, struct pm_tensor x, struct pm_tensor grid,
                                   enum pm_quant_rounding how)
{
    const struct pm_tensor y = pm_temp(c, x.shape, PM_F32);

    round_values(c, x, grid, how, true, y);
    return y;
}

void pm_quant_backward(struct pm_calls *c, struct pm_tensor x, struct pm_tensor grid,
                       struct pm_tensor dy, struct pm_tensor dx)
{
    const struct quant_params p = { .count = (int)pm_count(x) };

    pm_call(c, &pm_row_quant_bwd, pm_count(x), &p, PM_BUFS(x, grid, dy, dx));
}

/* ---- on the host --------------------------------------------------------------------------- */

struct pm_quant_steps pm_quant_steps(float low, float high, bool narrow)
{
    struct pm_quant_steps s = { .narrow = narrow };

    pm_quant_make_grid(low, high, narrow, s.grid);
    s.step = s.grid[GRID_STEP];
    s.zero = (int)s.grid[GRID_ZERO] + (narrow ? 1 : 0);
    return s;
}

int pm_quant_integer(const struct pm_quant_steps *s, float x)
{
    const struct quant_params p = { .count = 1, .steps = 1 };
    float y;

    fwd_cpu(&(struct pm_args){ .params = &p, .buf = { &x, (void *)s->grid, &y } }, 0, 1);
    return (int)y + s->zero;
}
