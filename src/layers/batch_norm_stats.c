/* batch_norm_stats: the rows of batch norm that compute statistics.
 *
 * Accuracy of the variance: a chunk of rows has a mean and a sum of squared distances from it, so
 * that a large mean does not cancel. batch_norm_stats computes them (row_moments.c,
 * shaders/lib/moments.glsl), or the call that wrote x has handed them over. Chunks are then
 * combined in fixed order by Chan's formula, M2 = sum of (M2_k + n_k (mean_k - mean)^2). */
#include "layers/batch_norm_rows.h"

#include <pumice/thread.h>

#include "base/vector.h"
#include "layers/row_moments.h"
#include "layers/valid_rows.h"

#include <math.h>
#include <string.h>

/* Combines chunks in double, CHANNELS at a time, so that each line of part is read once. */
enum { CHANNELS = 64 };

PM_CLONES static void stats_combine(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct batch_norm_stats_params *p = a->params;
    float *mean = a->buf[3], *rstd = a->buf[4], *var = a->buf[5];
    const float *chunks = a->buf[p->moments ? 1 : 2];
    int length = p->moments ? PM_MOMENT_ROWS : p->chunk, c = p->c;
    double sum[CHANNELS], m2[CHANNELS];

    for (size_t block = begin; block < end; block += CHANNELS) {
        int width = end - block < CHANNELS ? (int)(end - block) : CHANNELS;
        const float *part = chunks + block;

        memset(sum, 0, sizeof sum);
        memset(m2, 0, sizeof m2);
        for (int chunk = 0, left = p->rows; left > 0; chunk++, left -= length) {
            double rows = left < length ? left : length;
            for (int k = 0; k < width; k++)
                sum[k] += rows * part[(size_t)chunk * 2 * c + k];
        }
        for (int k = 0; k < width; k++)
            sum[k] /= p->rows;
        for (int chunk = 0, left = p->rows; left > 0; chunk++, left -= length) {
            double rows = left < length ? left : length;
            for (int k = 0; k < width; k++) {
                double d = part[(size_t)chunk * 2 * c + k] - sum[k];
                m2[k] += part[((size_t)chunk * 2 + 1) * c + k] + rows * d * d;
            }
        }
        for (int k = 0; k < width; k++) {
            mean[block + k] = (float)sum[k];
            var[block + k] = (float)(m2[k] / p->rows);
            rstd[block + k] = 1.0f / sqrtf(var[block + k] + p->epsilon);
        }
    }
}

static void stats_cpu(const struct pm_args *a)
{
    const struct batch_norm_stats_params *p = a->params;

    if (!p->moments)
        pm_row_moments(a->buf[0], (struct pm_rows){ (size_t)p->rows, p->c }, p->chunk, a->buf[2]);
    pm_parallel((size_t)p->c, CHANNELS, stats_combine, (void *)a);
}

/* ---- statistics of valid rows ---------------------------------------------------------- */

static struct pm_valid_rows valid_rows(const struct pm_args *a)
{
    const struct batch_norm_valid_stats_params *p = a->params;

    return (struct pm_valid_rows){ a->buf[1], p->crops, p->crop_rows };
}

static size_t valid_chunks(const struct batch_norm_valid_stats_params *p)
{
    return (size_t)p->examples * (size_t)pm_valid_chunks(p->crops, p->crop_rows, p->chunk);
}

static void valid_stats_chunks(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct batch_norm_valid_stats_params *p = a->params;
    const struct pm_valid_rows v = valid_rows(a);
    const size_t c = (size_t)p->c;

    for (size_t chunk = begin; chunk < end; chunk++) {
        const struct pm_row_span rows = pm_valid_chunk(&v, chunk, p->chunk);
        float *part = (float *)a->buf[2] + chunk * 2 * c;

        if (rows.first < rows.end)
            pm_chunk_moments((const float *)a->buf[0] + rows.first * c,
                             (int)(rows.end - rows.first), p->c, part);
        else
            memset(part, 0, 2 * c * sizeof *part);
    }
}

static double rows_of(const struct pm_valid_rows *v, size_t chunk, int length)
{
    const struct pm_row_span rows = pm_valid_chunk(v, chunk, length);

    return (double)(rows.end - rows.first);
}

/* Writes the statistics of `width` channels from `block` on. */
static void valid_stats_write(const struct pm_args *a, size_t block, size_t width,
                              const double *mean, const double *m2)
{
    const struct batch_norm_valid_stats_params *p = a->params;
    const struct pm_valid_rows v = valid_rows(a);
    const size_t total = pm_valid_total(&v, p->examples);
    const double rows = total > 0 ? (double)total : 1;
    const double divisor = p->unbiased && total > 1 ? rows - 1 : rows;
    float *to = (float *)a->buf[3] + block, *rstd = (float *)a->buf[4] + block;
    float *var = (float *)a->buf[5] + block;

    for (size_t k = 0; k < width; k++) {
        to[k] = (float)mean[k];
        var[k] = total > 0 ? (float)(m2[k] / divisor) : -1;
        rstd[k] = 1.0f / sqrtf((float)(m2[k] / rows) + p->epsilon);
    }
}

PM_CLONES static void valid_stats_combine(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct batch_norm_valid_stats_params *p = a->params;
    const struct pm_valid_rows v = valid_rows(a);
    const size_t total = pm_valid_total(&v, p->examples), chunks = valid_chunks(p);
    const size_t c = (size_t)p->c;
    double mean[CHANNELS], m2[CHANNELS];

    for (size_t block = begin; block < end; block += CHANNELS) {
        const size_t width = end - block < CHANNELS ? end - block : CHANNELS;
        const float *part = (const float *)a->buf[2] + block;

        memset(mean, 0, sizeof mean);
        memset(m2, 0, sizeof m2);
        for (size_t chunk = 0; chunk < chunks; chunk++) {
            const double rows = rows_of(&v, chunk, p->chunk);
            for (size_t k = 0; k < width; k++)
                mean[k] += rows * part[chunk * 2 * c + k];
        }
        for (size_t k = 0; k < width && total > 0; k++)
            mean[k] /= (double)total;
        for (size_t chunk = 0; chunk < chunks; chunk++) {
            const double rows = rows_of(&v, chunk, p->chunk);
            for (size_t k = 0; k < width; k++) {
                const double d = part[chunk * 2 * c + k] - mean[k];
                m2[k] += part[(chunk * 2 + 1) * c + k] + rows * d * d;
            }
        }
        valid_stats_write(a, block, width, mean, m2);
    }
}

static void valid_stats_cpu(const struct pm_args *a)
{
    const struct batch_norm_valid_stats_params *p = a->params;

    pm_parallel(valid_chunks(p), 1, valid_stats_chunks, (void *)a);
    pm_parallel((size_t)p->c, CHANNELS, valid_stats_combine, (void *)a);
}

/* ---- rstd ------------------------------------------------------------------------------ */

static void rstd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct batch_norm_stats_params *p = a->params;
    const float *var = a->buf[0];
    float *rstd = a->buf[1];

    for (size_t k = begin; k < end; k++)
        rstd[k] = 1.0f / sqrtf(var[k] + p->epsilon);
}

/* ---- rows ------------------------------------------------------------------------------ */

static size_t stats_scratch(const void *params, int buf)
{
    const struct batch_norm_stats_params *p = params;
    size_t chunks = ((size_t)p->rows + p->chunk - 1) / p->chunk;
    return buf == 2 && !p->moments ? sizeof(float) * 2 * chunks * (size_t)p->c : 0;
}

static struct pm_rows moments_of(const void *params)
{
    const struct batch_norm_stats_params *p = params;
    return (struct pm_rows){ (size_t)p->rows, p->c };
}

/* If the moments are given, only the second dispatch is left. */
static bool stats_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    const struct batch_norm_stats_params *p = params;
    int chunks = (p->rows + p->chunk - 1) / p->chunk;

    (void)caps, (void)count;
    if (p->moments && level > 0)
        return false;
    if (!pm_batch_norm_pick_two("batch_norm_stats4", "batch_norm_stats",
                                "batch_norm_stats_combine", p->c, chunks, level, out))
        return false;
    out->scratch[2] = stats_scratch(params, 2);
    if (p->moments) {
        out->d[0] = out->d[1];
        out->count = 1;
        out->variant = "moments";
    }
    return true;
}

static size_t valid_stats_scratch(const void *params, int buf)
{
    const struct batch_norm_valid_stats_params *p = params;
    return buf == 2 ? sizeof(float) * 2 * valid_chunks(p) * (size_t)p->c : 0;
}

static bool valid_stats_pick(const struct pm_caps *caps, const void *params, size_t count,
                             int level, struct pm_picks *out)
{
    const struct batch_norm_valid_stats_params *p = params;

    (void)caps, (void)count;
    if (!pm_batch_norm_pick_two("batch_norm_valid_stats4", "batch_norm_valid_stats",
                                "batch_norm_valid_stats_combine", p->c, (int)valid_chunks(p), level,
                                out))
        return false;
    out->scratch[2] = valid_stats_scratch(params, 2);
    return true;
}

static double stats_flops(const void *params, size_t count)
{
    const struct batch_norm_stats_params *p = params;
    (void)count;
    return 4.0 * (p->moments ? (p->rows + PM_MOMENT_ROWS - 1) / PM_MOMENT_ROWS : p->rows) * p->c;
}

static double valid_stats_flops(const void *params, size_t count)
{
    const struct batch_norm_valid_stats_params *p = params;
    (void)count;
    return 4.0 * p->examples * p->crops * p->crop_rows * p->c;
}

const struct pm_kernel pm_row_batch_norm_stats = {
    .name = "batch_norm_stats", .bufs = "r?:x r?:moments t:part w:mean w:rstd w:var",
    .params_size = sizeof(struct batch_norm_stats_params), .cpu_all = stats_cpu,
    .moments = offsetof(struct batch_norm_stats_params, moments) + 1, .moments_of = moments_of,
    .cpu_scratch = stats_scratch, .pick = stats_pick, .flops = stats_flops,
};
const struct pm_kernel pm_row_batch_norm_valid_stats = {
    .name = "batch_norm_valid_stats", .bufs = "r:x r:count t:part w:mean w:rstd w:var",
    .params_size = sizeof(struct batch_norm_valid_stats_params), .cpu_all = valid_stats_cpu,
    .cpu_scratch = valid_stats_scratch, .pick = valid_stats_pick, .flops = valid_stats_flops,
};
const struct pm_kernel pm_row_batch_norm_rstd = {
    .name = "batch_norm_rstd", .bufs = "r:var w:rstd",
    .params_size = sizeof(struct batch_norm_stats_params), .cpu = rstd_cpu,
};
