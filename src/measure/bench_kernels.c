/* bench_kernels: measures a table of products and convolutions on one device, and compares them
 * with its measured peaks.
 *
 * Times are the device's (timestamps on GPUs). A call shorter than half a millisecond is repeated
 * inside one program, so that the cost of starting it is negligible. Rates are those of the fastest
 * run, because other work on the machine can only make a run longer. */
#include <pumice/measure.h>
#include <pumice/rng.h>

#include "measure/bench_shapes.h"
#include "measure/peak.h"
#include "measure/spread.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

enum { MOST_RUNS = 200, LEAST_RUNS = 2, MOST_COPIES = 64, NOISE = 1 << 18 };

struct total {
    const char *net, *pass;
    double seconds, flops;
};
struct bench {
    struct pm_device *device;
    struct pm_speed_peak peak;
    double seconds;    /* time limit of one row */
    double end;        /* pm_seconds() after which no row begins */
    int left;          /* number of rows that were not begun */
    float *noise;      /* NOISE values, owned */
    struct total *totals;
    size_t total_count, total_capacity;
};

/* ---- one row ---------------------------------------------------------------------------- */

static size_t floats_of(const struct conv2d_params *p, char what)
{
    const size_t n = (size_t)p->n;

    return what == 'x'   ? n * p->h * p->w * p->c
           : what == 'y' ? n * p->oh * p->ow * p->k
                         : (size_t)p->kh * p->kw * (p->c / p->groups) * p->k;
}

/* Returns the size of a row's buffer by its name: x, w, y and their gradients. */
static size_t buffer_bytes(const struct pm_bench_shape *s, const struct pm_buf_spec *spec)
{
    const char *name = spec->name;

    return sizeof(float) * floats_of(&s->p, name[strlen(name) - 1]);
}

static size_t work_items(const struct pm_bench_shape *s)
{
    return floats_of(&s->p, s->pass[1] == 'o' ? 'y' : s->pass[0] == 'd' ? 'x' : 'w');
}

/* Fills a buffer with random values, because a GPU's clock depends on its data. */
static int fill(struct bench *b, struct pm_buffer *buffer, size_t bytes)
{
    int err = PM_OK;

    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < NOISE * sizeof(float) ? bytes - at : NOISE * sizeof(float);
        PM_TRY(pm_buffer_write(b->device, buffer, at, b->noise, part));
    }
out:
    return err;
}

static int make_call(struct bench *b, const struct pm_bench_shape *s, struct pm_bound_call *call,
                     struct pm_buffer **buffers, double *bytes)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    size_t scratch[PM_MAX_BUFS], size;
    int count = pm_kernel_bufs(s->kernel, spec), err = PM_OK;

    *call = (struct pm_bound_call){ .kernel = s->kernel, .label = "bench",
                                    .count = work_items(s), .params = &s->p };
    *bytes = 0;
    PM_TRY(pm_call_scratch(b->device, s->kernel, &s->p, call->count, 0, scratch));
    for (int i = 0; i < count; i++) {
        size = pm_access_own(spec[i].access) ? (scratch[i] + 3) / 4 * 4
                                             : buffer_bytes(s, &spec[i]);
        if (size == 0 || spec[i].optional)
            continue;
        PM_TRY(pm_buffer_create(b->device, size, &buffers[i]));
        call->buf[i] = (struct pm_place){ buffers[i], 0, size };
        if (spec[i].access == 'z')
            PM_TRY(pm_buffer_fill(b->device, buffers[i], 0, size, 0));
        if (pm_access_own(spec[i].access))
            continue;
        *bytes += (double)size;
        PM_TRY(fill(b, buffers[i], size));
    }
out:
    return err;
}

static int one_run(struct pm_program *p, double *seconds)
{
    int err = PM_OK;

    PM_TRY(pm_program_submit(p, 0));
    PM_TRY(pm_program_wait(p, 0));
    *seconds = pm_program_seconds(p, 0);
out:
    return err;
}

static int make_program(struct bench *b, const struct pm_bound_call *call, int copies,
                        struct pm_program **out)
{
    struct pm_bound_call calls[MOST_COPIES];

    for (int i = 0; i < copies; i++)
        calls[i] = *call;
    return pm_program_create(b->device, &(struct pm_program_desc){
        .name = "bench", .calls = calls, .calls_count = (size_t)copies, .slots = 1 }, out);
}

/* Measures the seconds of the call, several times, after one warm-up run for caches and clocks. */
static int time_call(struct bench *b, const struct pm_bound_call *call, double *runs, size_t *count,
                     char variant[64])
{
    struct pm_program *p = NULL;
    double t, start;
    int copies = 1, err = PM_OK;

    PM_TRY(make_program(b, call, 1, &p));
    PM_TRY(one_run(p, &t));
    if (t < 2e-4 && t * MOST_RUNS < b->seconds) {
        copies = t <= 0 ? MOST_COPIES : (int)fmin(MOST_COPIES, ceil(5e-4 / t));
        pm_program_destroy(&p);
        PM_TRY(make_program(b, call, copies, &p));
        PM_TRY(one_run(p, &t));
    }
    snprintf(variant, 64, "%s", pm_program_variant(p, 0));
    start = pm_seconds();
    for (*count = 0; *count < MOST_RUNS; ++*count) {
        if (*count >= LEAST_RUNS && pm_seconds() - start > b->seconds)
            break;
        PM_TRY(one_run(p, &t));
        runs[*count] = t / copies;
    }
out:
    pm_program_destroy(&p);
    return err;
}

/* ---- rows and totals -------------------------------------------------------------------- */

static void add_total(struct bench *b, const struct pm_bench_shape *s, double seconds, double flops)
{
    size_t i = 0;

    while (i < b->total_count && (strcmp(b->totals[i].net, s->net) != 0 ||
                                  strcmp(b->totals[i].pass, s->pass) != 0))
        i++;
    if (i == b->total_count) {
        PM_GROW(b->totals, i, b->total_capacity);
        b->totals[b->total_count++] = (struct total){ .net = s->net, .pass = s->pass };
    }
    b->totals[i].seconds += s->uses * seconds;
    b->totals[i].flops += s->uses * flops;
}

static void add_geometry(struct cJSON *o, const struct conv2d_params *p)
{
    static const struct { const char *name; size_t offset; } members[] = {
        { "n", offsetof(struct conv2d_params, n) }, { "h", offsetof(struct conv2d_params, h) },
        { "w", offsetof(struct conv2d_params, w) }, { "c", offsetof(struct conv2d_params, c) },
        { "oh", offsetof(struct conv2d_params, oh) }, { "ow", offsetof(struct conv2d_params, ow) },
        { "k", offsetof(struct conv2d_params, k) }, { "kh", offsetof(struct conv2d_params, kh) },
        { "kw", offsetof(struct conv2d_params, kw) },
        { "stride", offsetof(struct conv2d_params, stride_h) },
        { "dilation", offsetof(struct conv2d_params, dilation_h) },
        { "groups", offsetof(struct conv2d_params, groups) },
    };
    struct cJSON *g = cJSON_AddObjectToObject(o, "geometry");

    for (size_t i = 0; i < PM_COUNT(members); i++) {
        int v;

        memcpy(&v, (const char *)p + members[i].offset, sizeof v);
        cJSON_AddNumberToObject(g, members[i].name, v);
    }
}

static struct cJSON *describe(const struct pm_bench_shape *s)
{
    struct cJSON *o = cJSON_CreateObject();
    char shape[96];

    cJSON_AddStringToObject(o, "net", s->net);
    cJSON_AddStringToObject(o, "pass", s->pass);
    cJSON_AddStringToObject(o, "kernel", s->kernel->name);
    cJSON_AddStringToObject(o, "shape", pm_bench_shape_text(s, shape));
    cJSON_AddNumberToObject(o, "uses", s->uses);
    add_geometry(o, &s->p);
    cJSON_AddNumberToObject(o, "flops", s->kernel->flops(&s->p, work_items(s)));
    return o;
}

static int measure_row(struct bench *b, const struct pm_bench_shape *s, struct cJSON *o)
{
    struct pm_buffer *buffers[PM_MAX_BUFS] = { 0 };
    struct pm_bound_call call;
    double runs[MOST_RUNS], bytes, flops = s->kernel->flops(&s->p, work_items(s)), need;
    struct pm_spread t;
    char variant[64];
    size_t count;
    int err = PM_OK;

    PM_TRY(make_call(b, s, &call, buffers, &bytes));
    PM_TRY(time_call(b, &call, runs, &count, variant));
    t = pm_spread_of(runs, count);
    need = fmax(1e-9 * flops / b->peak.gflops, 1e-9 * bytes / b->peak.gigabytes);
    cJSON_AddStringToObject(o, "variant", variant);
    cJSON_AddNumberToObject(o, "runs", (double)count);
    pm_spread_json(o, "ms", t, 1e3);
    cJSON_AddNumberToObject(o, "bytes", bytes);
    cJSON_AddNumberToObject(o, "gflops", 1e-9 * flops / t.min);
    cJSON_AddNumberToObject(o, "gigabytes_per_second", 1e-9 * bytes / t.min);
    cJSON_AddNumberToObject(o, "share_of_peak", 1e-9 * flops / t.min / b->peak.gflops);
    cJSON_AddNumberToObject(o, "share_of_bound", need / t.min);
    add_total(b, s, t.min, flops);
out:
    for (int i = 0; i < PM_MAX_BUFS; i++)
        pm_buffer_destroy(b->device, &buffers[i]);
    return err;
}

/* ---- the table -------------------------------------------------------------------------- */

static bool is_wanted(const struct pm_bench_shape *s, const char *filter)
{
    struct pm_str text = { 0 };
    char shape[96];
    bool found;

    if (!filter)
        return true;
    pm_str_add(&text, "%s %s %s", s->net, s->pass, pm_bench_shape_text(s, shape));
    found = strstr(text.text, filter) != NULL;
    pm_str_free(&text);
    return found;
}

static int run_table(struct bench *b, const struct pm_kernels_options *o, int batch,
                     struct cJSON *rows)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_bench_shape *list;
    size_t count, found = 0;
    int err = PM_OK;

    PM_TRY(pm_bench_shapes(b->device, batch, a, &list, &count));
    for (size_t i = 0; i < count; i++) {
        struct cJSON *row;

        if (!is_wanted(&list[i], o->filter))
            continue;
        found++;
        if (!o->list_only && pm_seconds() > b->end) {
            b->left++;
            continue;
        }
        row = describe(&list[i]);
        cJSON_AddItemToArray(rows, row);
        if (!o->list_only)
            PM_TRY(measure_row(b, &list[i], row));
        if (o->row)
            PM_TRY(o->row(o->ctx, row));
    }
    if (found == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: --filter: none of the %zu rows has '%s' in its "
                       "\"net pass shape\" (--list prints them)", count, o->filter));
out:
    pm_arena_destroy(&a);
    return err;
}

static void add_totals(const struct bench *b, struct cJSON *list)
{
    for (size_t i = 0; i < b->total_count; i++) {
        const struct total *t = &b->totals[i];
        struct cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "net", t->net);
        cJSON_AddStringToObject(o, "pass", t->pass);
        cJSON_AddNumberToObject(o, "ms", 1e3 * t->seconds);
        cJSON_AddNumberToObject(o, "gflops", 1e-9 * t->flops / t->seconds);
        cJSON_AddNumberToObject(o, "share_of_peak", 1e-9 * t->flops / t->seconds / b->peak.gflops);
        cJSON_AddItemToArray(list, o);
    }
}

static int measure_device_peak(struct bench *b, struct cJSON *report)
{
    struct cJSON *o;
    int err = PM_OK;

    PM_TRY(pm_measure_peak(b->device, 2, &b->peak));
    o = cJSON_AddObjectToObject(report, "peak");
    cJSON_AddNumberToObject(o, "gflops", b->peak.gflops);
    cJSON_AddNumberToObject(o, "gigabytes_per_second", b->peak.gigabytes);
    cJSON_AddNumberToObject(o, "copy_bytes", (double)b->peak.copy_bytes);
out:
    return err;
}

static void make_noise(struct bench *b)
{
    struct pm_rng r = pm_rng_make(1, pm_hash("bench"), 0, 0);

    b->noise = pm_calloc(NOISE, sizeof *b->noise);
    for (int i = 0; i < NOISE; i++)
        b->noise[i] = (float)(2 * pm_rng_uniform(&r) - 1);
}

int pm_bench_kernels(struct pm_device *d, const struct pm_kernels_options *o, struct cJSON *report)
{
    struct bench b = { .device = d, .seconds = o->seconds,
                       .end = o->limit > 0 ? pm_seconds() + o->limit : INFINITY };
    int batch = o->batch > 0 ? o->batch : pm_device_caps(d)->on_host_cores ? 8 : 32;
    int err = PM_OK;

    make_noise(&b);
    cJSON_AddNumberToObject(report, "batch", batch);
    if (!o->list_only)
        PM_TRY(measure_device_peak(&b, report));
    if (o->start)
        o->start(o->ctx, report);
    PM_TRY(run_table(&b, o, batch, cJSON_AddArrayToObject(report, "rows")));
    cJSON_AddNumberToObject(report, "rows_left", b.left);
    add_totals(&b, cJSON_AddArrayToObject(report, "totals"));
out:
    pm_free(b.noise);
    pm_free(b.totals);
    return err;
}
