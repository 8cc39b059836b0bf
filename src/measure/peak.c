/* peak: see peak.h. A multiply-add counts as two operations, a copied byte as one read and one
 * write. Several chains hide the unit's latency. The best number of chains depends on the latency
 * and on the registers, which differ per device. Each number is therefore tried, and the best
 * result counts. */
#include "measure/peak.h"

#include <pumice/measure.h>

#include "base/vector.h"
#include "copy_peak.params.h"
#include "fma_peak.params.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, VALUES_HOST = 1 << 14, VALUES_GPU = 1 << 20, COPY_BYTES = 256 << 20,
       COPY_PIECES = 16 };

#define LONG_ENOUGH 2e-3 /* seconds */

/* ---- rows ------------------------------------------------------------------------------- */

typedef float lanes_t __attribute__((vector_size(LANES * sizeof(float))));

/* Sixteen adjacent values: vectors of the largest width. The compiler splits them if the machine's
 * vectors are shorter. */
#define CHAINS(n)                                                                                  \
    PM_CLONES static void chains_##n(const struct fma_peak_params *p, float *y, size_t begin,      \
                                     size_t end)                                                   \
    {                                                                                              \
        for (size_t i = begin; i < end; i += LANES) {                                              \
            lanes_t x[n], sum = { 0 }, start = { 0 };                                              \
                                                                                                   \
            for (int l = 0; l < LANES; l++)                                                        \
                start[l] = (float)((i + (size_t)l) % 16);                                          \
            _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) x[k] = start + (float)k;          \
            for (int r = 0; r < p->iterations; r++) {                                              \
                _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) x[k] = x[k] * p->a + p->b;    \
            }                                                                                      \
            _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) sum += x[k];                      \
            memcpy(y + i, &sum, sizeof sum);                                                       \
        }                                                                                          \
    }
CHAINS(4)
CHAINS(8)
CHAINS(12)
CHAINS(16)

static const struct {
    int chains;
    const char *shader;
    void (*cpu)(const struct fma_peak_params *p, float *y, size_t begin, size_t end);
} variants[] = {
    { 4, "fma_peak_4", chains_4 },
    { 8, "fma_peak_8", chains_8 },
    { 12, "fma_peak_12", chains_12 },
    { 16, "fma_peak_16", chains_16 },
};

static size_t variant_of(const struct fma_peak_params *p)
{
    size_t v = 0;

    while (v + 1 < PM_COUNT(variants) && variants[v].chains != p->chains)
        v++;
    return v;
}

static void fma_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    variants[variant_of(a->params)].cpu(a->params, a->buf[0], begin, end);
}

static bool fma_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps;
    pm_pick_elements(variants[variant_of(params)].shader, 64, count, out);
    return level == 0;
}

static double fma_flops(const void *params, size_t count)
{
    const struct fma_peak_params *p = params;

    return 2.0 * (double)count * p->iterations * p->chains;
}

const struct pm_kernel pm_fma_peak = {
    .name = "fma_peak", .bufs = "w:y", .params_size = sizeof(struct fma_peak_params),
    .cpu = fma_cpu, .grain = 16 * LANES, .pick = fma_pick, .flops = fma_flops,
};

static void copy_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    memcpy((char *)a->buf[1] + 16 * begin, (const char *)a->buf[0] + 16 * begin,
           16 * (end - begin));
}

const struct pm_kernel pm_copy_peak = {
    .name = "copy_peak", .bufs = "r:x w:y", .params_size = sizeof(struct copy_peak_params),
    .cpu = copy_cpu, .grain = 4096,
};

/* ---- measuring -------------------------------------------------------------------------- */

/* Returns the time of the fastest run within `seconds`, of at least two: the first run raises
 * clocks. */
static int fastest(struct pm_device *d, const struct pm_bound_call *call, double seconds,
                   double *best)
{
    struct pm_program *p = NULL;
    int err = PM_OK;

    PM_TRY(pm_program_create(d, &(struct pm_program_desc){
        .name = "peak", .calls = call, .calls_count = 1, .slots = 1 }, &p));
    *best = INFINITY;
    const double start = pm_seconds();
    for (int i = 0; i < 2 || pm_seconds() - start < seconds; i++) {
        PM_TRY(pm_program_submit(p, 0));
        PM_TRY(pm_program_wait(p, 0));
        *best = fmin(*best, pm_program_seconds(p, 0));
    }
out:
    pm_program_destroy(&p);
    return err;
}

/* Measures all numbers of chains and takes the best. Runs are just long enough to make their start
 * negligible: on a machine with other work, short runs are less often interrupted. */
static int measure_fma(struct pm_device *d, double seconds, double *gflops)
{
    const int count = pm_device_caps(d)->on_host_cores ? VALUES_HOST : VALUES_GPU;
    const size_t tried = PM_COUNT(variants);
    struct pm_buffer *y = NULL;
    double t;
    int err = PM_OK;

    PM_TRY(pm_buffer_create(d, (size_t)count * sizeof(float), &y));
    *gflops = 0;
    for (size_t v = 0; v < tried; v++) {
        struct fma_peak_params p = { .count = count, .iterations = 8, .a = 0.999f, .b = 0.001f,
                                     .chains = variants[v].chains };
        struct pm_bound_call call = { .kernel = &pm_fma_peak, .label = "peak", .params = &p,
                                      .count = (size_t)count,
                                      .buf = { { y, 0, (size_t)count * sizeof(float) } } };

        PM_TRY(fastest(d, &call, 0, &t));
        while (t < LONG_ENOUGH && p.iterations < 1 << 20) {
            p.iterations *= 2;
            PM_TRY(fastest(d, &call, 0, &t));
        }
        PM_TRY(fastest(d, &call, seconds / (double)tried, &t));
        *gflops = fmax(*gflops, 1e-9 * fma_flops(&p, (size_t)count) / t);
    }
out:
    pm_buffer_destroy(d, &y);
    return err;
}

/* Copies piece by piece, one program each, in turns: before a piece is copied again, it has left
 * the caches. */
static int copy_pieces(struct pm_device *d, const struct pm_place *x, const struct pm_place *y,
                       int pieces, double seconds, double *best)
{
    struct pm_program *p[COPY_PIECES] = { 0 };
    const size_t bytes = x->size / (size_t)pieces;
    const struct copy_peak_params params = { (int)(bytes / 16) };
    double start;
    int err = PM_OK;

    for (int i = 0; i < pieces; i++) {
        const size_t at = bytes * (size_t)i;
        const struct pm_bound_call call = {
            .kernel = &pm_copy_peak, .label = "peak", .params = &params, .count = bytes / 16,
            .buf = { { x->buffer, at, bytes }, { y->buffer, at, bytes } } };

        PM_TRY(pm_program_create(d, &(struct pm_program_desc){
            .name = "peak", .calls = &call, .calls_count = 1, .slots = 1 }, &p[i]));
    }
    *best = INFINITY;
    start = pm_seconds();
    for (int i = 0; i < 2 * pieces || pm_seconds() - start < seconds; i++) {
        PM_TRY(pm_program_submit(p[i % pieces], 0));
        PM_TRY(pm_program_wait(p[i % pieces], 0));
        *best = fmin(*best, pm_program_seconds(p[i % pieces], 0));
    }
out:
    for (int i = 0; i < pieces; i++)
        pm_program_destroy(&p[i]);
    return err;
}

/* Measures copying. A GPU copies everything at once. On the host's cores, where other work may
 * interrupt, the best piece counts. */
static int measure_copy(struct pm_device *d, double seconds, struct pm_speed_peak *out)
{
    const struct pm_device_info *info = pm_device_get_info(d);
    const int pieces = pm_device_caps(d)->on_host_cores ? COPY_PIECES : 1;
    struct pm_place x = { .size = COPY_BYTES }, y = x;
    double t;
    int err = PM_OK;

    while (x.size > 1 << 20 && (x.size > info->caps.max_buffer_bytes ||
                                (info->memory_bytes && x.size > info->memory_bytes / 8)))
        x.size /= 2;
    y.size = x.size;
    PM_TRY(pm_buffer_create(d, x.size, &x.buffer));
    PM_TRY(pm_buffer_create(d, y.size, &y.buffer));
    PM_TRY(pm_buffer_fill(d, x.buffer, 0, x.size, 0x3f800000));
    PM_TRY(copy_pieces(d, &x, &y, pieces, seconds, &t));
    out->gigabytes = 2e-9 * (double)x.size / pieces / t;
    out->copy_bytes = x.size;
out:
    pm_buffer_destroy(d, &x.buffer);
    pm_buffer_destroy(d, &y.buffer);
    return err;
}

int pm_measure_peak(struct pm_device *d, double seconds, struct pm_speed_peak *out)
{
    int err = PM_OK;

    PM_TRY(measure_fma(d, seconds / 2, &out->gflops));
    PM_TRY(measure_copy(d, seconds / 2, out));
out:
    return err;
}
