/* batch_norm_rows: the CPU kernels of batch norm that read or write an image's values, and the
 * choice of their shaders. batch_norm_stats.c has the statistics. */
#include "layers/batch_norm_rows.h"

#include <pumice/thread.h>

#include "layers/activation.h"
#include "layers/valid_rows.h"
#include "device/pick.h"

enum { LAST_LANES = 256, LAST_GROUPS = 1024 }; /* workgroups of batch_norm_sums_last, at most */
enum { STREAMED = 16 << 20 }; /* least bytes of an image that does not stay in the cache */
enum { BLOCK = 512 }; /* channels whose per-channel values are held at a time */
enum { CHANNELS = 64 }; /* channels whose sums are added in double at a time */

bool pm_batch_norm_reads_y(int act, bool residual)
{
    return act != PM_ACT_NONE && !pm_act_takes_z(act) && (residual || !pm_act_keeps_z(act));
}

int pm_batch_norm_chunks(int rows, int c)
{
    int most = 65536 * 4 / c, chunks = rows / 32;

    most = most > 4096 ? 4096 : most < 16 ? 16 : most;
    return chunks < 1 ? 1 : chunks > most ? most : chunks;
}

static int chunk_rows(int rows, int chunks)
{
    return (rows + chunks - 1) / chunks;
}

int pm_batch_norm_length(int rows, int c)
{
    return chunk_rows(rows, pm_batch_norm_chunks(rows, c));
}

/* ---- apply ----------------------------------------------------------------------------- */

/* Per-channel values for a block of channels. A missing gamma is 1, a missing beta 0. */
struct affine {
    float mean[BLOCK], rstd[BLOCK], scale[BLOCK], beta[BLOCK]; /* scale = rstd * gamma */
};

PM_INLINE void affine_of(struct affine *f, int block, int width, const float *mean,
                         const float *rstd, const float *gamma, const float *beta)
{
    for (int k = 0; k < width; k++) {
        f->mean[k] = mean[block + k];
        f->rstd[k] = rstd[block + k];
        f->scale[k] = rstd[block + k] * (gamma ? gamma[block + k] : 1);
        f->beta[k] = beta ? beta[block + k] : 0;
    }
}

/* streams: y is large and elsewhere than x and residual. A row is then computed in the cache and
 * copied past it. */
PM_INLINE void apply_rows(const struct affine *f, int act, float slope, bool streams,
                          const float *x, const float *residual, float *y, size_t rows, size_t c,
                          int width)
{
    const size_t ahead = pm_row_ahead(c);
    float line[BLOCK];

    for (size_t r = 0; r < rows; r++) {
        const float *from = x + r * c, *add = residual ? residual + r * c : NULL;
        float *to = streams ? line : y + r * c;

        pm_prefetch(from + ahead, width, 0);
        if (add)
            pm_prefetch(add + ahead, width, 0);
        if (!streams)
            pm_prefetch(to + ahead, width, 1);
        if (add) {
            PM_SIMD
            for (int k = 0; k < width; k++)
                to[k] = pm_act(act, slope,
                               (from[k] - f->mean[k]) * f->scale[k] + f->beta[k] + add[k]);
        } else {
            PM_SIMD
            for (int k = 0; k < width; k++)
                to[k] = pm_act(act, slope, (from[k] - f->mean[k]) * f->scale[k] + f->beta[k]);
        }
        if (streams)
            pm_copy_past_cache(y + r * c, line, width);
    }
    if (streams)
        pm_copied_past_cache();
}

PM_CLONES static void apply_run(const struct pm_args *a, size_t begin, size_t end)
{
    const struct batch_norm_params *p = a->params;
    size_t c = (size_t)p->c, first = begin * c;
    const bool streams = (size_t)p->rows * c * sizeof(float) >= STREAMED &&
                         a->buf[6] != a->buf[0] && a->buf[6] != a->buf[5];
    struct affine f;

    for (int block = 0; block < p->c; block += BLOCK) {
        int width = p->c - block < BLOCK ? p->c - block : BLOCK;
        const float *x = (const float *)a->buf[0] + first + block;
        const float *residual = a->buf[5] ? (const float *)a->buf[5] + first + block : NULL;
        float *y = (float *)a->buf[6] + first + block;

        affine_of(&f, block, width, a->buf[1], a->buf[2], a->buf[3], a->buf[4]);
#define CALL(kind)                                                                   \
    if (streams)                                                                     \
        apply_rows(&f, kind, p->slope, true, x, residual, y, end - begin, c, width); \
    else                                                                             \
        apply_rows(&f, kind, p->slope, false, x, residual, y, end - begin, c, width)
        PM_ACT_SWITCH(p->act, CALL)
#undef CALL
    }
}

static struct pm_valid_rows valid_rows(const struct batch_norm_params *p, const int32_t *count)
{
    return (struct pm_valid_rows){ count, p->crops, p->crop_rows };
}

/* Sets rows of a buffer, which may be NULL, to 0. */
static void clear(void *buf, size_t begin, size_t end, size_t c)
{
    if (buf)
        memset((float *)buf + begin * c, 0, (end - begin) * c * sizeof(float));
}

static void apply_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct batch_norm_params *p = a->params;
    const struct pm_valid_rows v = valid_rows(p, a->buf[7]);
    bool valid = true;

    for (size_t next; begin < end; begin = next) {
        next = v.count ? pm_valid_run(&v, begin, end, &valid) : end;
        if (valid)
            apply_run(a, begin, next);
        else
            clear(a->buf[6], begin, next, (size_t)p->c);
    }
}

/* ---- backward -------------------------------------------------------------------------- */

/* The first buffers of both backward rows. */
enum { X, Y, DY, RESIDUAL, MEAN, RSTD, GAMMA, BETA };

/* Pointers to one row; y and residual may be NULL. */
struct row {
    const float *x, *y, *dy, *residual;
};

static inline struct row row_at(const struct pm_args *a, size_t offset)
{
    const float *y = a->buf[Y], *residual = a->buf[RESIDUAL];

    return (struct row){ (const float *)a->buf[X] + offset, y ? y + offset : NULL,
                         (const float *)a->buf[DY] + offset, residual ? residual + offset : NULL };
}

/* The argument of act'. Without y, z is computed again, bit-identical to the forward call. */
enum { OF_Y, OF_Z, OF_Z_AND_RESIDUAL };

/* Returns g of one value. act and of are constants at each use. */
PM_INLINE float gradient(const struct affine *f, const struct row *r, int act, float slope, int of,
                         int k)
{
    if (act == PM_ACT_NONE)
        return r->dy[k];
    if (of != OF_Y) {
        float z = (r->x[k] - f->mean[k]) * f->scale[k] + f->beta[k];
        return r->dy[k] * pm_act_slope(act, slope, of == OF_Z ? z : z + r->residual[k]);
    }
    return r->dy[k] * pm_act_slope(act, slope, r->y[k]);
}

PM_INLINE void sum_row(const struct affine *f, const struct row *r, int act, float slope,
                       int of, int width, float *sum, float *product)
{
    PM_SIMD
    for (int k = 0; k < width; k++) {
        float g = gradient(f, r, act, slope, of, k);
        sum[k] += g;
        product[k] += g * (r->x[k] - f->mean[k]);
    }
}

/* Sums g and g (x - mean) r of rows first to end - 1 into part[2][c] of the block's channels. */
PM_INLINE void sum_chunk(const struct pm_args *a, const struct affine *f, int act, float slope,
                         size_t first, size_t end, size_t c, int block, int width, float *part)
{
    float sum[BLOCK], product[BLOCK];

    memset(sum, 0, sizeof sum);
    memset(product, 0, sizeof product);
    for (size_t i = first; i < end; i++) {
        struct row r = row_at(a, i * c + (size_t)block);

        pm_prefetch(r.x + pm_row_ahead(c), width, 0);
        pm_prefetch(r.dy + pm_row_ahead(c), width, 0);
#define CALL(kind)                                                            \
    if (r.y)                                                                  \
        sum_row(f, &r, kind, slope, OF_Y, width, sum, product);               \
    else if (r.residual)                                                      \
        sum_row(f, &r, kind, slope, OF_Z_AND_RESIDUAL, width, sum, product);  \
    else                                                                      \
        sum_row(f, &r, kind, slope, OF_Z, width, sum, product)
        PM_ACT_SWITCH(act, CALL)
#undef CALL
    }
    for (int k = 0; k < width; k++) {
        part[k] = sum[k];
        part[c + (size_t)k] = product[k] * f->rstd[k];
    }
}

/* part[chunk][2][c]: sums of g and of g (x - mean) r. */
PM_CLONES static void sums_chunks(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct batch_norm_sums_params *p = a->params;
    int length = chunk_rows(p->rows, p->chunks), c = p->c;
    struct affine f;

    for (int block = 0; block < c; block += BLOCK) {
        int width = c - block < BLOCK ? c - block : BLOCK;

        affine_of(&f, block, width, a->buf[MEAN], a->buf[RSTD], a->buf[GAMMA], a->buf[BETA]);
        for (size_t chunk = begin; chunk < end; chunk++) {
            int first = (int)chunk * length, left = p->rows - first;
            int rows = left < length ? left : length;
            float *part = (float *)a->buf[8] + chunk * 2 * c + block;

            sum_chunk(a, &f, p->act, p->slope, (size_t)first, (size_t)(first + rows), (size_t)c,
                      block, width, part);
        }
    }
}

/* Buffers of the combining step: part, sums [2][c], dbeta and dgamma (NULL: not wanted). */
struct totals {
    const float *part;
    float *sums, *d[2];
    size_t chunks, c;
    float factor; /* of sums */
    bool accumulate;
};

PM_INLINE void combine(const struct totals *t, size_t begin, size_t end)
{
    double sum[CHANNELS];

    for (size_t block = begin; block < end; block += CHANNELS) {
        int width = end - block < CHANNELS ? (int)(end - block) : CHANNELS;

        for (size_t half = 0; half < 2; half++) {
            const float *part = t->part + half * t->c + block;
            float *to = t->sums + half * t->c + block;
            float *d = t->d[half] ? t->d[half] + block : NULL;

            memset(sum, 0, sizeof sum);
            for (size_t chunk = 0; chunk < t->chunks; chunk++)
                for (int k = 0; k < width; k++)
                    sum[k] += part[chunk * 2 * t->c + (size_t)k];
            for (int k = 0; k < width; k++)
                to[k] = (float)sum[k] * t->factor;
            for (int k = 0; d && k < width; k++)
                d[k] = t->accumulate ? d[k] + (float)sum[k] : (float)sum[k];
        }
    }
}

PM_CLONES static void sums_combine(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct batch_norm_sums_params *p = a->params;
    const struct totals t = {
        .part = a->buf[8], .sums = a->buf[9], .d = { a->buf[10], a->buf[11] },
        .chunks = (size_t)p->chunks, .c = (size_t)p->c, .factor = 1,
        .accumulate = p->accumulate,
    };

    combine(&t, begin, end);
}

static void sums_cpu(const struct pm_args *a)
{
    const struct batch_norm_sums_params *p = a->params;

    pm_parallel((size_t)p->chunks, 1, sums_chunks, (void *)a);
    pm_parallel((size_t)p->c, CHANNELS, sums_combine, (void *)a);
}

/* ---- sums of valid rows ---------------------------------------------------------------- */

enum { COUNT = 8, PART = 9 }; /* after the first buffers: then sums, dbeta, dgamma */

static size_t valid_chunks(const struct batch_norm_valid_sums_params *p)
{
    return (size_t)p->examples * (size_t)pm_valid_chunks(p->crops, p->crop_rows, p->chunk);
}

PM_CLONES static void valid_sums_chunks(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct batch_norm_valid_sums_params *p = a->params;
    const struct pm_valid_rows v = { a->buf[COUNT], p->crops, p->crop_rows };
    const size_t c = (size_t)p->c;
    struct affine f;

    for (int block = 0; block < p->c; block += BLOCK) {
        int width = p->c - block < BLOCK ? p->c - block : BLOCK;

        affine_of(&f, block, width, a->buf[MEAN], a->buf[RSTD], a->buf[GAMMA], a->buf[BETA]);
        for (size_t chunk = begin; chunk < end; chunk++) {
            const struct pm_row_span rows = pm_valid_chunk(&v, chunk, p->chunk);

            sum_chunk(a, &f, p->act, p->slope, rows.first, rows.end, c, block, width,
                      (float *)a->buf[PART] + chunk * 2 * c + block);
        }
    }
}

PM_CLONES static void valid_sums_combine(void *ctx, size_t begin, size_t end)
{
    const struct pm_args *a = ctx;
    const struct batch_norm_valid_sums_params *p = a->params;
    const struct pm_valid_rows v = { a->buf[COUNT], p->crops, p->crop_rows };
    const size_t total = pm_valid_total(&v, p->examples);
    const struct totals t = {
        .part = a->buf[PART], .sums = a->buf[10], .d = { a->buf[11], a->buf[12] },
        .chunks = valid_chunks(p), .c = (size_t)p->c,
        .factor = 1.0f / (float)(total > 0 ? total : 1), .accumulate = p->accumulate,
    };

    combine(&t, begin, end);
}

static void valid_sums_cpu(const struct pm_args *a)
{
    const struct batch_norm_valid_sums_params *p = a->params;

    pm_parallel(valid_chunks(p), 1, valid_sums_chunks, (void *)a);
    pm_parallel((size_t)p->c, CHANNELS, valid_sums_combine, (void *)a);
}

/* ---- dx -------------------------------------------------------------------------------- */

PM_INLINE void dx_row(const struct affine *f, const struct row *r, int act, float slope,
                      int of, int width, const float *a, const float *b, float *dx,
                      float *dresidual)
{
    if (dx && !dresidual) {
        PM_SIMD
        for (int k = 0; k < width; k++) {
            float g = gradient(f, r, act, slope, of, k);
            dx[k] = f->scale[k] * (g - (a[k] + (r->x[k] - f->mean[k]) * b[k]));
        }
    } else {
        PM_SIMD
        for (int k = 0; k < width; k++) {
            float g = gradient(f, r, act, slope, of, k);
            if (dx)
                dx[k] = f->scale[k] * (g - (a[k] + (r->x[k] - f->mean[k]) * b[k]));
            dresidual[k] = g;
        }
    }
}

PM_CLONES static void dx_run(const struct pm_args *args, size_t begin, size_t end)
{
    const struct batch_norm_params *p = args->params;
    const float *sums = args->buf[8];
    size_t c = (size_t)p->c;
    float a[BLOCK], b[BLOCK]; /* subtracted from g: a + (x - mean) b */
    struct affine f;

    for (int block = 0; block < p->c; block += BLOCK) {
        int width = p->c - block < BLOCK ? p->c - block : BLOCK;

        affine_of(&f, block, width, args->buf[MEAN], args->buf[RSTD], args->buf[GAMMA],
                  args->buf[BETA]);
        for (int k = 0; k < width; k++) {
            a[k] = sums ? sums[block + k] * p->inv_count : 0;
            b[k] = sums ? sums[c + block + k] * f.rstd[k] * p->inv_count : 0;
        }
        for (size_t i = begin; i < end; i++) {
            size_t offset = i * c + block;
            struct row r = row_at(args, offset);
            float *dx = args->buf[9] ? (float *)args->buf[9] + offset : NULL;
            float *dresidual = args->buf[10] ? (float *)args->buf[10] + offset : NULL;

            pm_prefetch(r.x + pm_row_ahead(c), width, 0);
            pm_prefetch(r.dy + pm_row_ahead(c), width, 0);
            if (dx)
                pm_prefetch(dx + pm_row_ahead(c), width, 1);
#define CALL(kind)                                                                        \
    if (r.y)                                                                           \
        dx_row(&f, &r, kind, p->slope, OF_Y, width, a, b, dx, dresidual);              \
    else if (r.residual)                                                               \
        dx_row(&f, &r, kind, p->slope, OF_Z_AND_RESIDUAL, width, a, b, dx, dresidual); \
    else                                                                               \
        dx_row(&f, &r, kind, p->slope, OF_Z, width, a, b, dx, dresidual)
            PM_ACT_SWITCH(p->act, CALL)
#undef CALL
        }
    }
}

static void dx_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct batch_norm_params *p = a->params;
    const struct pm_valid_rows v = valid_rows(p, a->buf[11]);
    bool valid = true;

    for (size_t next; begin < end; begin = next) {
        next = v.count ? pm_valid_run(&v, begin, end, &valid) : end;
        if (valid) {
            dx_run(a, begin, next);
        } else {
            clear(a->buf[9], begin, next, (size_t)p->c);
            clear(a->buf[10], begin, next, (size_t)p->c);
        }
    }
}

/* ---- rows ------------------------------------------------------------------------------ */

static size_t sums_scratch(const void *params, int buf)
{
    const struct batch_norm_sums_params *p = params;
    return buf == 8 ? sizeof(float) * 2 * (size_t)p->chunks * (size_t)p->c : 0;
}

bool pm_batch_norm_pick_two(const char *four, const char *one, const char *combine, int c,
                            int chunks, int level, struct pm_picks *out)
{
    if (!pick_four(four, one, c % 4 == 0, (size_t)chunks * (size_t)c, 0, level, out))
        return false;
    out->d[1] = (struct pm_dispatch){ .shader = combine, .spec = { 64, 1, 1 }, .specs = 3,
                                      .groups = { c > 65535 ? 65535 : (uint32_t)c, 1, 1 } };
    out->count = 2;
    return true;
}

/* Picks one dispatch of 256 lanes per workgroup, whose last workgroup of a block of channels adds
 * the parts. */
static bool pick_last(const struct batch_norm_sums_params *p, struct pm_picks *out)
{
    const bool four = p->c % 4 == 0;
    const uint32_t items = (uint32_t)(four ? p->c / 4 : p->c);
    uint32_t across = four ? 16 : 64, blocks, parts, most;

    while (across > 1 && across / 2 >= items)
        across /= 2;
    blocks = (items + across - 1) / across;
    parts = (uint32_t)p->rows / (LAST_LANES / across * 4);
    most = LAST_GROUPS / blocks < 256 ? LAST_GROUPS / blocks : 256;
    parts = parts > most ? most : parts;
    parts = parts < 1 ? 1 : parts;
    *out = (struct pm_picks){ .count = 1 };
    out->variant = four ? "batch_norm_sums_last4" : "batch_norm_sums_last";
    out->d[0] = (struct pm_dispatch){ .shader = out->variant,
                                      .spec = { LAST_LANES, 1, 1, (uint32_t)p->act, across, parts },
                                      .specs = 6, .groups = { blocks, parts, 1 } };
    /* The next level must find enough scratch, too. */
    out->scratch[8] = sizeof(float) * 2 * (size_t)parts * (size_t)p->c;
    if (out->scratch[8] < sums_scratch(p, 8))
        out->scratch[8] = sums_scratch(p, 8);
    out->scratch[12] = blocks * sizeof(uint32_t);
    return true;
}

/* GPUs add the parts within the first dispatch. On CPU drivers a barrier within a workgroup costs
 * more than a dispatch, so there this form is the last level. */
static bool sums_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct batch_norm_sums_params *p = params;
    const bool on_cpu = pm_class_on_cpu(caps->device_class);
    const bool fits = caps->last_group && caps->max_workgroup_invocations >= LAST_LANES &&
                      caps->max_workgroup_size[0] >= LAST_LANES;
    const int last = on_cpu ? (p->c % 4 == 0 ? 2 : 1) : 0;

    (void)count;
    if (fits && level == last)
        return pick_last(p, out);
    if (fits && level > last)
        level--;
    if (!pm_batch_norm_pick_two("batch_norm_sums4", "batch_norm_sums", "batch_norm_sums_combine",
                                p->c, p->chunks, level, out))
        return false;
    out->d[0].spec[3] = (uint32_t)p->act;
    out->scratch[8] = sums_scratch(params, 8);
    return true;
}

static size_t valid_sums_scratch(const void *params, int buf)
{
    const struct batch_norm_valid_sums_params *p = params;
    return buf == PART ? sizeof(float) * 2 * valid_chunks(p) * (size_t)p->c : 0;
}

static bool valid_sums_pick(const struct pm_caps *caps, const void *params, size_t count,
                            int level, struct pm_picks *out)
{
    const struct batch_norm_valid_sums_params *p = params;

    (void)caps, (void)count;
    if (!pm_batch_norm_pick_two("batch_norm_valid_sums4", "batch_norm_valid_sums",
                                "batch_norm_valid_sums_combine", p->c, (int)valid_chunks(p), level,
                                out))
        return false;
    out->d[0].spec[3] = (uint32_t)p->act;
    out->scratch[PART] = valid_sums_scratch(params, PART);
    return true;
}

static bool pick_rows(const char *four, const char *one, const struct batch_norm_params *p,
                      int level, struct pm_picks *out)
{
    return pick_four(four, one, p->c % 4 == 0, (size_t)p->rows * (size_t)p->c, (uint32_t)p->act,
                     level, out);
}

static bool apply_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    (void)caps, (void)count;
    return pick_rows("batch_norm_apply4", "batch_norm_apply", params, level, out);
}

static bool dx_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                    struct pm_picks *out)
{
    (void)caps, (void)count;
    return pick_rows("batch_norm_dx4", "batch_norm_dx", params, level, out);
}

static double sums_flops(const void *params, size_t count)
{
    const struct batch_norm_sums_params *p = params;
    (void)count;
    return 6.0 * p->rows * p->c;
}

static double valid_sums_flops(const void *params, size_t count)
{
    const struct batch_norm_valid_sums_params *p = params;
    (void)count;
    return 6.0 * p->examples * p->crops * p->crop_rows * p->c;
}

static double rows_flops(const void *params, size_t count)
{
    const struct batch_norm_params *p = params;
    (void)count;
    return 6.0 * p->rows * p->c;
}

const struct pm_kernel pm_row_batch_norm_apply = {
    .name = "batch_norm_apply",
    .bufs = "r:x r:mean r:rstd r?:gamma r?:beta r?:residual w:y r?:count",
    .inplace = "y=x,y=residual", .params_size = sizeof(struct batch_norm_params),
    .cpu = apply_cpu, .grain = 32, .pick = apply_pick, .flops = rows_flops,
};
const struct pm_kernel pm_row_batch_norm_sums = {
    .name = "batch_norm_sums",
    .bufs = "r:x r?:y r:dy r?:residual r:mean r:rstd r?:gamma r?:beta t:part w:sums u?:dbeta "
            "u?:dgamma z:done",
    .params_size = sizeof(struct batch_norm_sums_params),
    .accumulate = offsetof(struct batch_norm_sums_params, accumulate) + 1, .cpu_all = sums_cpu,
    .cpu_scratch = sums_scratch, .pick = sums_pick, .flops = sums_flops,
};
const struct pm_kernel pm_row_batch_norm_valid_sums = {
    .name = "batch_norm_valid_sums",
    .bufs = "r:x r?:y r:dy r?:residual r:mean r:rstd r?:gamma r?:beta r:count t:part w:sums "
            "u?:dbeta u?:dgamma",
    .params_size = sizeof(struct batch_norm_valid_sums_params),
    .accumulate = offsetof(struct batch_norm_valid_sums_params, accumulate) + 1,
    .cpu_all = valid_sums_cpu, .cpu_scratch = valid_sums_scratch, .pick = valid_sums_pick,
    .flops = valid_sums_flops,
};
const struct pm_kernel pm_row_batch_norm_dx = {
    .name = "batch_norm_dx",
    .bufs = "r:x r?:y r:dy r?:residual r:mean r:rstd r?:gamma r?:beta r?:sums w?:dx w?:dresidual "
            "r?:count",
    .inplace = "dx=dy", .params_size = sizeof(struct batch_norm_params), .cpu = dx_cpu,
    .grain = 32, .pick = dx_pick, .flops = rows_flops,
};
