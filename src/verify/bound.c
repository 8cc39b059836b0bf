/* bound: computes the CPU's results, the allowed error of a device, and compares the two; verify.h
 * derives the bound. Draws per call: 4 at 2^-14, and 32 more of each kind if any value is
 * outside. */
#include "verify/verify_private.h"

#include <pumice/rng.h>

#include <math.h>
#include <string.h>

enum { DRAWS = 4, MORE_DRAWS = 32 };
static const double unit = 0x1p-24, coarse = 0x1p-14, fine = 0x1p-20, tiny = 0x1p-120;

struct output {
    size_t count;     /* values; 0: not an output, or absent */
    bool floats;
    void *want;
    float *move;      /* S: largest change over the draws, scaled to an amplitude of `unit` */
    double largest;   /* finite |y| */
    double roundings; /* n of verify.h */
    float *low, *high; /* range of the finer draws; NULL before the second look */
};

struct pm_expected {
    const struct pm_verify_call *call; /* borrowed */
    struct pm_one_call *cpu;
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs, accumulate;
    void *start[PM_MAX_BUFS];    /* owned; contents that differ from the call's */
    const void *contents[PM_MAX_BUFS];
    void *moved[PM_MAX_BUFS];    /* contents of a draw */
    struct output out[PM_MAX_BUFS];
    int draws;
};

/* ---- contents --------------------------------------------------------------------------- */

/* Fills an accumulating buffer with numbers as large as the terms that are added to it. */
static void random_start(struct pm_expected *e, int b, double size)
{
    size_t count = e->call->buf[b].bytes / sizeof(float);
    float *v = pm_malloc(e->call->buf[b].bytes + 4);
    struct pm_rng rng = pm_rng_make(b, pm_hash("accumulate"), 0, 0);

    for (size_t i = 0; i < count; i++)
        v[i] = (float)((2 * pm_rng_uniform(&rng) - 1) * size);
    e->start[b] = v;
    e->contents[b] = v;
}

/* Fills a buffer that must be written with NaN: no part of it may be read. */
static void nan_start(struct pm_expected *e, int b)
{
    size_t count = e->call->buf[b].bytes / sizeof(float);
    float *v = pm_malloc(e->call->buf[b].bytes + 4);

    for (size_t i = 0; i < count; i++)
        v[i] = NAN;
    e->start[b] = v;
    e->contents[b] = v;
}

static bool is_input(const struct pm_expected *e, int b)
{
    char access = e->spec[b].access;

    return e->call->buf[b].bytes > 0 && (access == 'r' || access == 'u');
}

/* ---- draws ------------------------------------------------------------------------------ */

/* Multiplies every float input by 1 + amplitude or 1 - amplitude. */
static void move_inputs(struct pm_expected *e, double amplitude)
{
    const float up = (float)(1 + amplitude), down = (float)(1 - amplitude);

    for (int b = 0; b < e->bufs; b++) {
        const struct pm_verify_buffer *buf = &e->call->buf[b];
        const float *from = e->contents[b];
        float *to = e->moved[b];
        struct pm_rng rng = pm_rng_make((uint64_t)e->draws, pm_hash("draw"), 0, (uint32_t)b);
        uint32_t signs = 0;

        for (size_t i = 0; to && i < buf->bytes / sizeof(float); i++, signs >>= 1) {
            if (i % 32 == 0)
                signs = pm_rng_u32(&rng);
            to[i] = from[i] * (signs & 1 ? up : down);
        }
    }
    e->draws++;
}

static void measure(struct output *o, const float *got, double amplitude)
{
    const float *want = o->want, scale = (float)(unit / amplitude);

    for (size_t i = 0; i < o->count; i++)
        o->move[i] = fmaxf(o->move[i], fabsf(got[i] - want[i]) * scale);
}

static void span(struct output *o, const float *got)
{
    for (size_t i = 0; i < o->count; i++) {
        o->low[i] = fminf(o->low[i], got[i]);
        o->high[i] = fmaxf(o->high[i], got[i]);
    }
}

static int draw(struct pm_expected *e, double amplitude)
{
    const void *contents[PM_MAX_BUFS];
    char fault[64];
    int err = PM_OK;

    move_inputs(e, amplitude);
    for (int b = 0; b < PM_MAX_BUFS; b++)
        contents[b] = e->moved[b] ? e->moved[b] : e->contents[b];
    PM_TRY(pm_one_call_run(e->cpu, contents, fault, sizeof fault));
    for (int b = 0; b < e->bufs; b++) {
        struct output *o = &e->out[b];
        const float *got = pm_one_call_result(e->cpu, b);

        if (o->count && o->floats && amplitude == coarse)
            measure(o, got, amplitude);
        else if (o->count && o->floats)
            span(o, got);
    }
out:
    return err;
}

/* ---- making ----------------------------------------------------------------------------- */

static double values_in(const struct pm_expected *e)
{
    size_t most = 0;

    for (int b = 0; b < e->bufs; b++)
        if (is_input(e, b) && e->call->buf[b].type == PM_F32 && e->call->buf[b].bytes / 4 > most)
            most = e->call->buf[b].bytes / 4;
    return (double)most;
}

static int first_run(struct pm_expected *e)
{
    const struct pm_verify_call *c = e->call;
    double flops, all = 0;
    char fault[200];
    int err = PM_OK;

    PM_TRY(pm_one_call_run(e->cpu, e->contents, fault, sizeof fault));
    if (fault[0])
        PM_TRY(pm_fail(PM_EFAIL, "%s on the CPU: %s", c->label, fault));
    for (int b = 0; b < e->bufs; b++)
        if (c->buf[b].bytes && e->spec[b].access != 'r')
            all += (double)(c->buf[b].bytes / pm_type_size(c->buf[b].type));
    flops = c->kernel->flops ? c->kernel->flops(c->params, c->count) : (double)c->count;
    for (int b = 0; b < e->bufs; b++) {
        const struct pm_verify_buffer *buf = &c->buf[b];
        struct output *o = &e->out[b];
        const float *y;

        if (!buf->bytes || e->spec[b].access == 'r' || pm_access_own(e->spec[b].access))
            continue;
        o->count = buf->bytes / pm_type_size(buf->type);
        o->floats = buf->type == PM_F32;
        o->want = pm_malloc(buf->bytes + 4);
        memcpy(o->want, pm_one_call_result(e->cpu, b), buf->bytes);
        o->move = o->floats ? pm_calloc(o->count, sizeof *o->move) : NULL;
        o->roundings = fmax(1, fmax(flops / all, values_in(e) / (double)o->count));
        y = o->want;
        for (size_t i = 0; o->floats && i < o->count; i++)
            if (isfinite(y[i]))
                o->largest = fmax(o->largest, fabs(y[i]));
    }
out:
    return err;
}

/* For accumulate = 1: the start values are as large as the result of accumulate = 0. */
static int accumulate_start(struct pm_expected *e, struct pm_device *cpu)
{
    struct pm_expected *plain = NULL;
    int err = PM_OK;

    if (e->accumulate == 1)
        PM_TRY(pm_expected_create(cpu, e->call, 0, &plain));
    for (int b = 0; b < e->bufs; b++) {
        if (e->spec[b].access != 'u' || e->call->buf[b].bytes == 0)
            continue;
        if (e->accumulate == 1)
            random_start(e, b, plain->out[b].largest);
        else
            nan_start(e, b);
    }
out:
    pm_expected_destroy(&plain);
    return err;
}

int pm_expected_create(struct pm_device *cpu, const struct pm_verify_call *call, int accumulate,
                       struct pm_expected **out)
{
    struct pm_expected *e = pm_calloc(1, sizeof *e);
    int err = PM_OK;

    e->call = call;
    e->accumulate = accumulate;
    e->bufs = pm_kernel_bufs(call->kernel, e->spec);
    for (int b = 0; b < e->bufs; b++)
        e->contents[b] = call->buf[b].data;
    if (accumulate >= 0)
        PM_TRY(accumulate_start(e, cpu));
    for (int b = 0; b < e->bufs; b++)
        if (is_input(e, b) && call->buf[b].type == PM_F32)
            e->moved[b] = pm_malloc(call->buf[b].bytes + 4);
    PM_TRY(pm_one_call_create(cpu, call, (struct pm_way){ .accumulate = accumulate }, &e->cpu));
    PM_TRY(first_run(e));
    for (int i = 0; i < DRAWS; i++)
        PM_TRY(draw(e, coarse));
    *out = e, e = NULL;
out:
    pm_expected_destroy(&e);
    return err;
}

void pm_expected_destroy(struct pm_expected **expected)
{
    struct pm_expected *e = *expected;

    if (!e)
        return;
    pm_one_call_destroy(&e->cpu);
    for (int b = 0; b < PM_MAX_BUFS; b++) {
        pm_free(e->start[b]);
        pm_free(e->moved[b]);
        pm_free(e->out[b].want);
        pm_free(e->out[b].move);
        pm_free(e->out[b].low);
        pm_free(e->out[b].high);
    }
    pm_free(e);
    *expected = NULL;
}

const void *const *pm_expected_contents(const struct pm_expected *e)
{
    return e->contents;
}

/* ---- comparing -------------------------------------------------------------------------- */

static double allowed_at(const struct output *o, size_t i)
{
    const double y = fabs(((const float *)o->want)[i]);

    return 16 * (o->roundings + 2) * ((double)o->move[i] + unit * y) + 16 * unit * o->largest +
           tiny;
}

/* Returns the error divided by the allowed error. A value for which the CPU has no number is not
 * judged. */
static double share_at(const struct output *o, const float *got, size_t i)
{
    const double y = ((const float *)o->want)[i], x = got[i];
    double error = fabs(x - y);

    if (!isfinite(y))
        return 0;
    if (!isfinite(x))
        return INFINITY;
    if (o->low)
        error = x < o->low[i] ? o->low[i] - x : x > o->high[i] ? x - o->high[i] : 0;
    return error / allowed_at(o, i);
}

/* Returns the index of the worst value; *worst is its share. */
static size_t worst_of(const struct output *o, const float *got, double *worst)
{
    size_t at = 0;

    *worst = 0;
    for (size_t i = 0; i < o->count; i++) {
        double share = share_at(o, got, i);

        if (share > *worst)
            *worst = share, at = i;
    }
    return at;
}

static int refine(struct pm_expected *e)
{
    int err = PM_OK;

    for (int b = 0; b < e->bufs; b++) {
        struct output *o = &e->out[b];
        size_t bytes = o->count * sizeof(float);

        if (!o->floats || o->low)
            continue;
        o->low = pm_malloc(bytes + 4);
        o->high = pm_malloc(bytes + 4);
        memcpy(o->low, o->want, bytes);
        memcpy(o->high, o->want, bytes);
    }
    for (int i = 0; i < MORE_DRAWS; i++) {
        PM_TRY(draw(e, coarse));
        PM_TRY(draw(e, fine));
    }
out:
    return err;
}

static void say_wrong(const struct pm_expected *e, int b, size_t i, const void *got,
                      struct pm_verified *r)
{
    const struct output *o = &e->out[b];
    const char *how = e->accumulate == 1 ? ", accumulating" : "";

    if (r->verdict == PM_VERDICT_WRONG) /* the first fault is reported */
        return;
    r->verdict = PM_VERDICT_WRONG;
    if (o->floats)
        snprintf(r->why, sizeof r->why,
                 "%s[%zu] of %zu is %.9g, but %.9g on the CPU; the tolerance is +-%.3g (%s%s)",
                 e->spec[b].name, i, o->count, ((const float *)got)[i], ((const float *)o->want)[i],
                 allowed_at(o, i), e->call->label, how);
    else
        snprintf(r->why, sizeof r->why, "%s differs at byte %zu of %zu, integers must be equal "
                 "(%s%s)", e->spec[b].name, i, e->call->buf[b].bytes, e->call->label, how);
}

static void compare_bytes(const struct pm_expected *e, int b, const void *got,
                          struct pm_verified *r)
{
    const unsigned char *x = got, *y = e->out[b].want;
    size_t bytes = e->call->buf[b].bytes, i = 0;

    while (i < bytes && x[i] == y[i])
        i++;
    if (i < bytes)
        say_wrong(e, b, i, got, r);
}

int pm_expected_compare(struct pm_expected *e, const struct pm_one_call *run,
                        struct pm_verified *r)
{
    int err = PM_OK;

    for (int b = 0; b < e->bufs; b++) {
        struct output *o = &e->out[b];
        const void *got = o->count ? pm_one_call_result(run, b) : NULL;
        double worst;
        size_t at;

        if (!o->count)
            continue;
        r->values += o->count;
        if (!o->floats) {
            compare_bytes(e, b, got, r);
            continue;
        }
        at = worst_of(o, got, &worst);
        if (worst > 1 && !o->low) {
            PM_TRY(refine(e));
            at = worst_of(o, got, &worst);
        }
        if (worst > r->worst)
            r->worst = worst;
        if (worst > 1)
            say_wrong(e, b, at, got, r);
    }
out:
    return err;
}
