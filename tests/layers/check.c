/* check MODE [LAYER] [--device NAME]: the cases of tests/layers/ against their references.
 *
 *   ref     each case's output (and what update() leaves) against the reference; allowed: ulps x
 *           2^-24 x the sum of the terms' magnitudes
 *   grad    gradients against central differences of the reference; also: nothing changes when only
 *           dx or only dw is wanted, and accumulating calls add
 *   parity  each kernel call, C function against every shader variant of the device
 *   bench   the large cases, each call and variant: CSV on standard output
 *   self    plants faults and expects the modes to catch them
 *
 * ref and grad run on the CPU or on --device; parity, bench and self want a Vulkan device, at first
 * the one that VK_DRIVER_FILES shows, and leave with 77 when there is none. In all runs outputs start
 * as NaN, guard words surround every buffer and read-only buffers must stay as they are. */
#include <assert.h>
#include <pumice/rng.h>
#include <stdlib.h>

#include "check_run.h"

#define PM_LAYER(name) extern const struct pm_layer_test pm_test_##name;
#include "layers/layers.def"
#undef PM_LAYER

static const struct entry entries[] = {
#define PM_LAYER(name) { #name, &pm_test_##name },
#include "layers/layers.def"
#undef PM_LAYER
};

enum { SAMPLES = 128, DIRECTIONS = 6 };
static const double epsilon = 0x1p-24;

struct check {
    struct pm_device *cpu, *device; /* device: the one under test; may be the cpu */
    void (*doctor)(struct subject *s);
    int cases, failures;
    long values, kinks;             /* compared; left out in grad because a kink was too near */
    bool quiet;                     /* self: failures are wanted */
};

static double or_default(double v, double otherwise)
{
    return v > 0 ? v : otherwise;
}

static int fail_case(struct check *k, const struct entry *e, const struct check_case *c)
{
    k->failures++;
    if (!k->quiet)
        printf("FAIL %s: \"%s\" of %s%s: %s\n", e->name, c->options, c->inputs,
               c->train ? " train" : "", pm_error_text());
    return PM_EFAIL;
}

static const float *floats(const struct subject *s, struct pm_tensor t)
{
    return (const float *)s->values[pm_calls_root(&s->calls, t.value)].data;
}

/* ---- ref ------------------------------------------------------------------------------- */

static int compare(struct check *k, const char *what, const float *got, const struct ref_array *want,
                   double scale, double ulps)
{
    for (size_t i = 0; i < want->count; i++) {
        const double allowed = ulps * epsilon * want->mag[i] * scale;
        const double off = fabs(got[i] - want->v[i] * scale);

        k->values++;
        if (!(off <= allowed + 1e-37))
            return pm_fail(PM_EFAIL, "%s[%zu] is %.9g, the reference says %.9g, allowed +-%.3g",
                           what, i, got[i], want->v[i] * scale, allowed);
    }
    return PM_OK;
}

/* Reference output of integers (argmax) is compared as such. */
static int compare_output(struct check *k, const struct subject *s, const struct ref *r)
{
    const struct pm_layer_test *t = s->entry->test;
    char have[64], want[64];

    if (!pm_shape_equal(s->y.shape, r->y.shape))
        return pm_fail(PM_EFAIL, "the output is %s, the reference's %s",
                       pm_shape_text(s->y.shape, have), pm_shape_text(r->y.shape, want));
    if (s->y.type != PM_F32) {
        const char *data = (const char *)floats(s, s->y);

        for (size_t i = 0; i < r->y.count; i++) {
            const double got = s->y.type == PM_U8 ? ((const uint8_t *)data)[i]
                                                  : ((const int32_t *)data)[i];
            k->values++;
            if (got != r->y.v[i])
                return pm_fail(PM_EFAIL, "y[%zu] is %.0f, the reference says %.0f", i, got,
                               r->y.v[i]);
        }
        return PM_OK;
    }
    return compare(k, "y", floats(s, s->y), &r->y, t->loss ? CHECK_SHARE : 1,
                   or_default(t->ulps, 16));
}

/* After update(): variables the reference moves, and the others unchanged. */
static int compare_variables(struct check *k, const struct subject *s, const struct ref *r,
                             bool finite)
{
    int err = PM_OK;
    char what[32];

    for (int v = 0; v < r->vars; v++) {
        const float *got = floats(s, s->w[v]);

        snprintf(what, sizeof what, "variable %d", v);
        if (finite && r->after[v].count)
            PM_TRY(compare(k, what, got, &r->after[v], 1, or_default(s->entry->test->ulps, 16)));
        else
            for (size_t i = 0; i < r->var[v].count; i++)
                if (got[i] != (float)r->var[v].v[i])
                    PM_TRY(pm_fail(PM_EFAIL, "%s[%zu] has changed from %g to %g", what, i,
                                   r->var[v].v[i], got[i]));
    }
out:
    return err;
}

static int ref_once(struct check *k, const struct entry *e, const struct check_case *c, bool finite)
{
    int err = PM_OK;
    struct subject *s = NULL;
    struct ref r = { 0 };
    const struct build_options o = { .update = true, .flag = finite, .doctor = k->doctor };
    struct run_options run = { .accumulate = -1 };
    int step;

    PM_TRY(subject_build(e, c, &o, &s));
    ref_make(s, &r);
    e->test->reference(&r);
    /* Call by call shows who wrote where; a device gets them all, to see its barriers at work. */
    step = k->device == k->cpu ? 1 : s->calls.call_count;
    for (; run.first < s->calls.call_count; run.first = run.last) {
        run.last = run.first + step;
        PM_TRY(subject_run(s, k->device, &run));
    }
    PM_TRY(compare_output(k, s, &r));
    PM_TRY(compare_variables(k, s, &r, finite));
out:
    ref_free(&r);
    subject_free(&s);
    return err;
}

static int mode_ref(struct check *k, const struct entry *e, const struct check_case *c)
{
    int err = c->large ? PM_OK : ref_once(k, e, c, true);

    if (!err && !c->large && c->train)
        err = ref_once(k, e, c, false);
    return err;
}

/* ---- grad ------------------------------------------------------------------------------ */

/* Central differences of J = sum of g[j] y[j] along `way` (NULL: element i alone) of array a. */
struct slope {
    double value, magnitude;
    bool kink;
};

static void shift(struct ref_array *a, size_t i, const double *way, double by)
{
    if (!way)
        a->v[i] += by;
    else
        for (size_t j = 0; j < a->count; j++)
            a->v[j] += by * way[j];
}

static struct slope difference(const struct entry *e, struct ref *r, struct ref_array *a, size_t i,
                               const double *way, const double *g, const double *y0, double h,
                               double *plus)
{
    struct slope d = { 0 };
    double bend = 0, noise = 0;
    const double *saved_v = a->v;
    double *copy = malloc(a->count * sizeof *copy);

    memcpy(copy, a->v, a->count * sizeof *copy);
    shift(a, i, way, h);
    e->test->reference(r);
    memcpy(plus, r->y.v, r->y.count * sizeof *plus);
    memcpy(a->v, copy, a->count * sizeof *copy);
    shift(a, i, way, -h);
    e->test->reference(r);
    memcpy(a->v, copy, a->count * sizeof *copy);
    assert(a->v == saved_v);
    for (size_t j = 0; j < r->y.count; j++) {
        const double term = g[j] * (plus[j] - r->y.v[j]) / (2 * h);

        d.value += term;
        d.magnitude += fabs(term);
        bend += fabs(g[j] * (plus[j] - 2 * y0[j] + r->y.v[j]) / h);
        noise += fabs(g[j]) * r->y.mag[j] * 0x1p-50 / h;
    }
    d.kink = bend > 1e-2 * d.magnitude + noise;
    free(copy);
    return d;
}

struct expected {
    struct ref_array *a; /* of the reference */
    const float *got;
    const char *name;
};

/* One array's gradient: sampled elements, then random directions over all of them. */
static int compare_gradient(struct check *k, const struct entry *e, struct ref *r,
                            const struct expected *x, const double *g)
{
    int err = PM_OK;
    struct ref_array *a = x->a;
    const double ulps = or_default(e->test->grad_ulps, 64);
    const size_t samples = a->count < SAMPLES ? a->count : SAMPLES;
    struct slope *d = calloc(samples, sizeof *d);
    double *y0 = malloc(r->y.count * sizeof *y0), *plus = malloc(r->y.count * sizeof *plus);
    double *way = malloc(a->count * sizeof *way), largest = 0, sum = 0;
    size_t kinks = 0;

    e->test->reference(r);
    memcpy(y0, r->y.v, r->y.count * sizeof *y0);
    for (size_t i = 0; i < samples; i++) {
        const size_t at = pm_permute(7, 0, a->count, i);

        d[i] = difference(e, r, a, at, NULL, g, y0, 1e-4, plus);
        if (d[i].kink)
            d[i] = difference(e, r, a, at, NULL, g, y0, 1e-6, plus);
        kinks += d[i].kink;
        largest = fmax(largest, d[i].magnitude);
        sum += d[i].magnitude;
    }
    for (size_t i = 0; i < samples; i++) {
        const size_t at = pm_permute(7, 0, a->count, i);
        /* Values that elements share (means, norms) err in proportion to the largest. */
        const double allowed = ulps * epsilon * (d[i].magnitude + largest / 16) + 1e-10 * largest;

        k->values++;
        if (!d[i].kink && !(fabs(x->got[at] - d[i].value) <= allowed + 1e-37))
            PM_TRY(pm_fail(PM_EFAIL, "%s[%zu] is %.9g, differences of the reference say %.9g, "
                           "allowed +-%.3g", x->name, at, x->got[at], d[i].value, allowed));
    }
    k->kinks += (long)kinks;
    if (kinks > 2 + samples / 20)
        PM_TRY(pm_fail(PM_EFAIL, "%s: %zu of %zu differences cross a kink: choose other inputs",
                       x->name, kinks, samples));
    struct pm_rng rng = pm_rng_make(11, pm_hash("direction"), 0, 0);

    for (int t = 0; t < DIRECTIONS && a->count > samples; t++) {
        double got = 0;

        for (size_t i = 0; i < a->count; i++) {
            way[i] = pm_rng_u32(&rng) & 1 ? 1 : -1;
            got += way[i] * x->got[i];
        }
        const struct slope w = difference(e, r, a, 0, way, g, y0, 1e-7, plus);
        const double allowed = ulps * epsilon * sum / (double)samples * (double)a->count +
                               1e-6 * largest;
        if (!w.kink && !(fabs(got - w.value) <= allowed))
            PM_TRY(pm_fail(PM_EFAIL, "%s along a random direction is %.9g, differences of the "
                           "reference say %.9g, allowed +-%.3g", x->name, got, w.value, allowed));
    }
out:
    free(d);
    free(y0);
    free(plus);
    free(way);
    return err;
}

/* Gradients with only some of them wanted must have the bits they had with all. */
static int same_when_unwanted(struct check *k, const struct subject *all, bool no_dx)
{
    int err = PM_OK;
    struct subject *s = NULL;
    const struct build_options o = { .backward = true, .no_dx = no_dx, .no_dw = !no_dx,
                                     .doctor = k->doctor };
    struct run_options run = { .accumulate = 0 };

    PM_TRY(subject_build(all->entry, all->c, &o, &s));
    run.last = s->calls.call_count;
    PM_TRY(subject_run(s, k->device, &run));
    for (int i = 0; i < s->node->inputs && !no_dx; i++)
        if (pm_has(s->dx[i]) && memcmp(floats(s, s->dx[i]), floats(all, all->dx[i]),
                                       pm_count(s->dx[i]) * sizeof(float)))
            PM_TRY(pm_fail(PM_EFAIL, "dx of input %d differs when no dw is wanted", i));
    for (int v = 0; v < s->node->var_count && no_dx; v++)
        if (pm_has(s->dw[v]) && memcmp(floats(s, s->dw[v]), floats(all, all->dw[v]),
                                       pm_count(s->dw[v]) * sizeof(float)))
            PM_TRY(pm_fail(PM_EFAIL, "dw of variable %d differs when no dx is wanted", v));
out:
    subject_free(&s);
    return err;
}

/* With the flag set, dw = what was there + what a writing call gives. */
static int adds_up(struct check *k, const struct subject *all)
{
    int err = PM_OK;
    struct subject *s = NULL, *fresh = NULL;
    const struct build_options o = { .backward = true, .doctor = k->doctor };
    struct run_options run = { .accumulate = 1 };

    PM_TRY(subject_build(all->entry, all->c, &o, &s));
    PM_TRY(subject_build(all->entry, all->c, &o, &fresh));
    run.last = s->calls.call_count;
    PM_TRY(subject_run(s, k->device, &run));
    for (int v = 0; v < s->node->var_count; v++)
        for (size_t i = 0; pm_has(s->dw[v]) && i < pm_count(s->dw[v]); i++) {
            const double start = floats(fresh, s->dw[v])[i], step = floats(all, all->dw[v])[i];
            const double got = floats(s, s->dw[v])[i];

            if (!(fabs(got - start - step) <= 16 * epsilon * (fabs(start) + fabs(step) + 1)))
                PM_TRY(pm_fail(PM_EFAIL, "accumulating dw of variable %d [%zu] is %.9g, not %.9g "
                               "+ %.9g", v, i, got, start, step));
        }
out:
    subject_free(&s);
    subject_free(&fresh);
    return err;
}

static int mode_grad(struct check *k, const struct entry *e, const struct check_case *c)
{
    int err = PM_OK;
    struct subject *s = NULL;
    struct ref r = { 0 };
    double *g = NULL;
    const struct build_options o = { .backward = true, .doctor = k->doctor };
    struct run_options run = { .accumulate = 0 };
    char name[32];

    if (c->large)
        return PM_OK;
    PM_TRY(subject_build(e, c, &o, &s));
    if (s->forward_calls == s->calls.call_count && !s->node->layer->view)
        goto out; /* no backward */
    run.last = s->calls.call_count;
    ref_make(s, &r);
    e->test->reference(&r);
    g = malloc(r.y.count * sizeof *g);
    for (size_t j = 0; j < r.y.count; j++)
        g[j] = e->test->loss ? CHECK_SHARE : floats(s, s->dy)[j];
    PM_TRY(subject_run(s, k->device, &run));
    for (int i = 0; i < s->node->inputs; i++)
        if (pm_has(s->dx[i])) {
            snprintf(name, sizeof name, "dx of input %d: dx", i);
            const struct expected x = { &r.in[i], floats(s, s->dx[i]), name };
            PM_TRY(compare_gradient(k, e, &r, &x, g));
        }
    for (int v = 0; v < s->node->var_count; v++)
        if (pm_has(s->dw[v])) {
            snprintf(name, sizeof name, "dw of variable %d: dw", v);
            const struct expected x = { &r.var[v], floats(s, s->dw[v]), name };
            PM_TRY(compare_gradient(k, e, &r, &x, g));
        }
    if (s->node->var_count) {
        PM_TRY(same_when_unwanted(k, s, true));
        PM_TRY(same_when_unwanted(k, s, false));
        PM_TRY(adds_up(k, s));
    }
out:
    free(g);
    ref_free(&r);
    subject_free(&s);
    return err;
}

/* ---- parity ---------------------------------------------------------------------------- */

/* Copies of the values that a call uses; others are NULL. */
static char **save(const struct subject *s, int call)
{
    char **copy = calloc((size_t)s->calls.value_count + 1, sizeof *copy);
    const struct pm_planned_call *c = &s->calls.calls[call];

    for (int b = 0; b < c->bufs; b++) {
        const int v = c->buf[b] < 0 ? -1 : pm_calls_root(&s->calls, c->buf[b]);

        if (v >= 0 && !copy[v])
            memcpy(copy[v] = malloc(s->values[v].bytes + 4), s->values[v].data,
                   s->values[v].bytes);
    }
    return copy;
}

static void load(struct subject *s, char **copy)
{
    for (int v = 0; v < s->calls.value_count; v++)
        if (copy[v])
            memcpy(s->values[v].data, copy[v], s->values[v].bytes);
}

static void drop(const struct subject *s, char **copy)
{
    for (int v = 0; copy && v < s->calls.value_count; v++)
        free(copy[v]);
    free(copy);
}

/* Value v of the device's run (in s) against the C function's. */
static int compare_value(struct check *k, const struct subject *s, int v, const char *want,
                         const char *what)
{
    const struct pm_value *value = &s->calls.values[v];
    const float *a = (const float *)want, *b = (const float *)s->values[v].data;
    const double ulps = or_default(s->entry->test->parity_ulps, 64);
    double largest = 0;

    if (value->type != PM_F32) {
        if (memcmp(want, s->values[v].data, value->bytes))
            return pm_fail(PM_EFAIL, "%s: integers differ", what);
        return PM_OK;
    }
    for (size_t i = 0; i < value->bytes / 4; i++)
        largest = fmax(largest, fabs(a[i]));
    for (size_t i = 0; i < value->bytes / 4; i++) {
        const bool alike = a[i] == b[i] || fabs((double)a[i] - b[i]) <= ulps * epsilon * largest;

        k->values++;
        if (!alike || isnan(a[i]))
            return pm_fail(PM_EFAIL, "%s[%zu] is %.9g, the C function says %.9g, allowed +-%.3g",
                           what, i, b[i], a[i], ulps * epsilon * largest);
    }
    return PM_OK;
}

/* One call on the device, from the values in `before`; results against those in `after`. */
static int parity_call(struct check *k, struct subject *s, const struct run_options *o,
                       char **before, char **after)
{
    int err = PM_OK;
    const struct pm_planned_call *c = &s->calls.calls[o->first];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const char *variant = "?";
    struct run_options run = *o;
    char what[128];

    pm_kernel_bufs(c->kernel, spec);
    run.variant = &variant;
    load(s, before);
    if ((err = subject_run(s, k->device, &run)) < 0) {
        const char *text = strdup(pm_error_text());

        err = pm_fail(PM_EFAIL, "%s level %d (%s): %s", c->kernel->name, o->level, variant, text);
        free((char *)text);
        return err;
    }
    for (int b = 0; b < c->bufs; b++) {
        if (c->buf[b] < 0 || spec[b].access == 'r' || spec[b].access == 't')
            continue;
        const int v = pm_calls_root(&s->calls, c->buf[b]);

        snprintf(what, sizeof what, "%s, variant %s%s%s: %s", c->kernel->name, variant,
                 o->accumulate == 1 ? ", accumulating" : "", o->alias ? ", in place" : "",
                 spec[b].name);
        PM_TRY(compare_value(k, s, v, after[v], what));
    }
out:
    return err;
}

/* Whether the row has a variant of this level on the device. */
static bool has_level(const struct check *k, const struct pm_planned_call *c, int level)
{
    static struct pm_picks picks;

    if (!c->kernel->pick)
        return level == 0;
    return c->kernel->pick(pm_device_caps(k->device), c->params, c->count, level, &picks);
}

static int parity_levels(struct check *k, struct subject *s, int call, int accumulate)
{
    int err = PM_OK;
    const struct pm_planned_call *c = &s->calls.calls[call];
    struct run_options o = { .first = call, .last = call + 1, .accumulate = accumulate };
    char **before = save(s, call), **after = NULL;

    PM_TRY(subject_run(s, k->cpu, &o));
    after = save(s, call);
    for (int alias = 0; alias <= (c->kernel->inplace != NULL); alias++) {
        o.alias = alias;
        if (alias) { /* the C function must bear it too */
            struct check cpu = *k;

            cpu.device = k->cpu;
            PM_TRY(parity_call(&cpu, s, &o, before, after));
        }
        for (o.level = 0; has_level(k, c, o.level); o.level++)
            PM_TRY(parity_call(k, s, &o, before, after));
        o.level = 0;
    }
    load(s, after);
out:
    drop(s, before);
    drop(s, after);
    return err;
}

/* Large cases are there for bench; parity takes their calls up to what a software driver does in
 * about a second, which leaves enough that need more than 65,535 groups. */
static bool too_much(const struct subject *s, int call)
{
    const struct pm_planned_call *c = &s->calls.calls[call];
    size_t bytes = 0;

    for (int b = 0; b < c->bufs; b++)
        bytes += c->buf[b] < 0 ? 0 : s->calls.values[c->buf[b]].bytes;
    return bytes > 64 << 20 || (c->kernel->flops && c->kernel->flops(c->params, c->count) > 5e7);
}

static int mode_parity(struct check *k, const struct entry *e, const struct check_case *c)
{
    int err = PM_OK;
    struct subject *s = NULL;
    const struct build_options o = { .backward = true, .update = true, .flag = 1,
                                     .doctor = k->doctor };

    PM_TRY(subject_build(e, c, &o, &s));
    for (int i = 0; i < s->calls.call_count; i++) {
        const struct pm_kernel *kernel = s->calls.calls[i].kernel;

        if (kernel->host)
            continue;
        if (c->large && too_much(s, i)) {
            const struct run_options run = { .first = i, .last = i + 1, .accumulate = -1 };

            PM_TRY(subject_run(s, k->cpu, &run)); /* later calls want its results */
            continue;
        }
        if (kernel->accumulate)
            PM_TRY(parity_levels(k, s, i, 1));
        PM_TRY(parity_levels(k, s, i, kernel->accumulate ? 0 : -1));
    }
out:
    subject_free(&s);
    return err;
}

/* ---- bench ----------------------------------------------------------------------------- */

static int bench_call(struct check *k, struct subject *s, int call, int level)
{
    int err = PM_OK;
    const struct pm_planned_call *c = &s->calls.calls[call];
    const char *variant;
    double seconds, bytes = 0, flops;

    PM_TRY(subject_time(s, k->device, call, level, &seconds, &variant));
    for (int b = 0; b < c->bufs; b++)
        if (c->buf[b] >= 0)
            bytes += (double)s->values[pm_calls_root(&s->calls, c->buf[b])].bytes;
    flops = c->kernel->flops ? c->kernel->flops(c->params, c->count) : (double)c->count;
    printf("%s,\"%s of %s\",%s,%s,%.4f,%.2f,%.2f\n", s->entry->name, s->c->options, s->c->inputs,
           c->kernel->name, variant, seconds * 1e3, bytes / seconds / 1e9, flops / seconds / 1e9);
    fflush(stdout);
out:
    return err;
}

static int mode_bench(struct check *k, const struct entry *e, const struct check_case *c)
{
    int err = PM_OK;
    struct subject *s = NULL;
    const struct build_options o = { .backward = true, .doctor = k->doctor };
    struct run_options run = { .accumulate = -1 };
    const bool vulkan = pm_device_caps(k->device)->backend == PM_BACKEND_VULKAN;

    if (!c->large)
        return PM_OK;
    PM_TRY(subject_build(e, c, &o, &s));
    run.last = s->calls.call_count;
    PM_TRY(subject_run(s, k->device, &run)); /* so that every call has real inputs */
    for (int i = 0; i < s->calls.call_count; i++)
        for (int level = 0; vulkan ? has_level(k, &s->calls.calls[i], level) : level == 0; level++)
            PM_TRY(bench_call(k, s, i, level));
out:
    subject_free(&s);
    return err;
}

/* ---- modes ----------------------------------------------------------------------------- */

typedef int (*mode_fn)(struct check *k, const struct entry *e, const struct check_case *c);

static int run_cases(struct check *k, mode_fn mode, const char *layer)
{
    for (size_t i = 0; i < PM_COUNT(entries); i++)
        for (const struct check_case *c = entries[i].test->cases; c->options; c++) {
            if (layer && strcmp(layer, entries[i].name))
                continue;
            k->cases++;
            if (mode(k, &entries[i], c) < 0)
                fail_case(k, &entries[i], c);
        }
    return k->failures ? 1 : 0;
}

/* Faults that `self` plants into conv2d with a bias and relu6: each mode must catch its own. */
static struct pm_planned_call *find_call(struct subject *s, const char *kernel)
{
    for (int i = 0; i < s->calls.call_count; i++)
        if (!strcmp(s->calls.calls[i].kernel->name, kernel))
            return &s->calls.calls[i];
    return NULL;
}

static struct pm_kernel broken; /* copy of a row with another C function */
static void (*sound)(const struct pm_args *a, size_t begin, size_t end);

static void break_row(struct subject *s, const char *name,
                      void (*cpu)(const struct pm_args *a, size_t begin, size_t end))
{
    struct pm_planned_call *c = find_call(s, name);

    if (!c)
        return;
    broken = *c->kernel;
    sound = broken.cpu;
    broken.cpu = cpu;
    c->kernel = &broken;
}

static void little_off(const struct pm_args *a, size_t begin, size_t end)
{
    sound(a, begin, end);
    if (begin == 0)
        ((float *)a->buf[2])[0] += 1e-3f;
}

static void last_left_out(const struct pm_args *a, size_t begin, size_t end)
{
    sound(a, begin, end == a->count ? end - 1 : end);
}

static void one_too_many(const struct pm_args *a, size_t begin, size_t end)
{
    sound(a, begin, end);
    ((float *)a->buf[2])[a->count] = 1;
}

static void input_changed(const struct pm_args *a, size_t begin, size_t end)
{
    sound(a, begin, end);
    ((float *)a->buf[0])[0] += 1;
}

static void plant_little(struct subject *s) { break_row(s, "bias_act_fwd", little_off); }
static void plant_little_bwd(struct subject *s) { break_row(s, "bias_act_bwd", little_off); }
static void plant_last(struct subject *s) { break_row(s, "bias_act_fwd", last_left_out); }
static void plant_beyond(struct subject *s) { break_row(s, "bias_act_fwd", one_too_many); }
static void plant_input(struct subject *s) { break_row(s, "bias_act_fwd", input_changed); }

static int mode_self(struct check *k)
{
    static const struct check_case cases[] = {
        { "conv2d filters=4 activation=relu6", "2x5x5x3", .train = true },
    };
    static const struct {
        const char *name;
        mode_fn mode;
        void (*plant)(struct subject *s);
        bool vulkan;
    } faults[] = {
        { "ref: an output off by 1e-3", mode_ref, plant_little },
        { "ref: an output not written", mode_ref, plant_last },
        { "ref: a write outside", mode_ref, plant_beyond },
        { "ref: a read-only buffer changed", mode_ref, plant_input },
        { "grad: a gradient off by 1e-3", mode_grad, plant_little_bwd },
        { "parity: C and shader differ", mode_parity, plant_little, true },
        { "parity: an output not written", mode_parity, plant_last, true },
    };
    const struct entry *e = NULL;
    int missed = 0;

    for (size_t i = 0; i < PM_COUNT(entries); i++)
        if (!strcmp(entries[i].name, "conv2d"))
            e = &entries[i];
    assert(e);
    for (size_t i = 0; i < PM_COUNT(faults); i++) {
        struct check mine = { .cpu = k->cpu, .device = faults[i].vulkan ? k->device : k->cpu };

        if (faults[i].vulkan && k->device == k->cpu) {
            printf("skipped, no Vulkan device: %s\n", faults[i].name);
            continue;
        }
        if (faults[i].mode(&mine, e, cases) < 0) {
            printf("MISSED (fails without a fault): %s: %s\n", faults[i].name, pm_error_text());
            missed++;
            continue;
        }
        mine.doctor = faults[i].plant;
        const bool caught = faults[i].mode(&mine, e, cases) < 0;

        printf("%s: %s: %s\n", caught ? "caught" : "MISSED", faults[i].name,
               caught ? pm_error_text() : "");
        missed += !caught;
    }
    return missed ? 1 : 0;
}

/* ---- main ------------------------------------------------------------------------------ */

static int open_device(const struct pm_device_info *list, size_t count, const char *name,
                       struct pm_device **out)
{
    const struct pm_device_options options = { .validate = getenv("PM_VALIDATE") != NULL };

    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].address, name) && list[i].usable)
            return pm_device_open(&list[i], &options, out);
    return pm_fail(PM_EDEVICE, "%s: no such device", name);
}

static int usage(void)
{
    fprintf(stderr, "check ref|grad|parity|bench|self [LAYER] [--device cpu|vulkan:N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "", *layer = NULL, *name = NULL;
    struct pm_device_info *list = NULL;
    struct check k = { 0 };
    size_t count;
    int status = 1;

    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], "--device") && i + 1 < argc)
            name = argv[++i];
        else
            layer = argv[i];
    const mode_fn fn = !strcmp(mode, "ref") ? mode_ref : !strcmp(mode, "grad") ? mode_grad
                     : !strcmp(mode, "parity") ? mode_parity
                     : !strcmp(mode, "bench") ? mode_bench : NULL;
    const bool self = !strcmp(mode, "self");

    if (!fn && !self)
        return usage();
    if (!name)
        name = fn == mode_ref || fn == mode_grad || fn == mode_bench ? "cpu" : "vulkan:0";
    if (pm_device_list(&list, &count) < 0 || open_device(list, count, "cpu", &k.cpu) < 0)
        goto out;
    if (!strcmp(name, "cpu") || (open_device(list, count, name, &k.device) < 0 && self))
        k.device = k.cpu;
    if (!k.device) {
        printf("skipped: %s\n", pm_error_text());
        status = 77;
        goto out;
    }
    if (fn == mode_bench)
        printf("layer,case,kernel,variant,ms,GB/s,GFLOP/s\n");
    status = self ? mode_self(&k) : run_cases(&k, fn, layer);
    if (fn && fn != mode_bench)
        printf("check %s on %s: %d cases, %ld values compared, %d failures%s\n", mode,
               pm_device_get_info(k.device)->name, k.cases, k.values, k.failures,
               fn == mode_grad && k.kinks ? ", some differences crossed kinks" : "");
    if (fn && k.cases == 0)
        status = usage();
    if (pm_device_messages())
        printf("%llu validation messages\n", (unsigned long long)pm_device_messages()), status = 1;
out:
    if (status == 1 && !k.device)
        fprintf(stderr, "check: %s\n", pm_error_text());
    if (k.device != k.cpu)
        pm_device_close(&k.device);
    pm_device_close(&k.cpu);
    pm_free(list);
    return status;
}
