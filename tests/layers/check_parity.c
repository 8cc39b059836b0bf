/* check parity and check bench: run kernel calls one by one, in every variant of the device. */
#include <stdlib.h>

#include "check_modes.h"

/* ---- parity ---------------------------------------------------------------------------- */

/* Copies the values that a call uses; the others are NULL. */
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

/* Compares value v of the device's run (in s) with that of the C function (want). */
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
    const double allowed = ulps * CHECK_EPSILON * largest;
    for (size_t i = 0; i < value->bytes / 4; i++) {
        const bool alike = a[i] == b[i] || fabs((double)a[i] - b[i]) <= allowed;

        k->values++;
        if (!alike || isnan(a[i]))
            return pm_fail(PM_EFAIL, "%s[%zu] is %.9g, the C function says %.9g, allowed +-%.3g",
                           what, i, b[i], a[i], allowed);
    }
    return PM_OK;
}

/* Runs one call on the device with the values in `before`, and compares the results with
 * `after`. */
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
        if (c->buf[b] < 0 || spec[b].access == 'r' || pm_access_own(spec[b].access))
            continue;
        const int v = c->buf[b];
        const char *want = after[pm_calls_root(&s->calls, v)] + pm_calls_at(&s->calls, v);

        snprintf(what, sizeof what, "%s, variant %s%s%s: %s", c->kernel->name, variant,
                 o->accumulate == 1 ? ", accumulating" : "", o->alias ? ", in place" : "",
                 spec[b].name);
        PM_TRY(compare_value(k, s, v, want, what));
    }
out:
    return err;
}

/* Fills the sums that a call adds to: with numbers when it adds, with NaN when it must write them.
 * Gradients of variables hold numbers already. */
static void start_sums(struct subject *s, int call, bool adds)
{
    const struct pm_planned_call *c = &s->calls.calls[call];
    struct pm_buf_spec spec[PM_MAX_BUFS];

    pm_kernel_bufs(c->kernel, spec);
    for (int b = 0; b < c->bufs && !adds_to_gradient(s, call); b++) {
        if (c->buf[b] < 0 || spec[b].access != 'u')
            continue;
        const struct image *m = &s->values[pm_calls_root(&s->calls, c->buf[b])];

        for (size_t i = 0; i < m->bytes / 4; i++)
            ((float *)m->data)[i] = adds ? (float)(i * 37 % 101) / 50 - 1 : (float)NAN;
    }
}

/* True when the row has a variant of this level on the device. */
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
        if (alias) { /* the C function must support it, too */
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

/* Large cases exist for bench. parity runs only those of their calls that take a software driver
 * about a second; enough of these need more than 65,535 groups. */
static bool too_much(const struct subject *s, int call)
{
    const struct pm_planned_call *c = &s->calls.calls[call];
    size_t bytes = 0;

    for (int b = 0; b < c->bufs; b++)
        bytes += c->buf[b] < 0 ? 0 : s->calls.values[c->buf[b]].bytes;
    return bytes > 64 << 20 || (c->kernel->flops && c->kernel->flops(c->params, c->count) > 5e7);
}

/* Runs a call without comparing it; later calls read its results. */
static int run_only(struct check *k, struct subject *s, int call)
{
    const struct run_options run = { .first = call, .last = call + 1, .accumulate = -1 };

    return subject_run(s, k->cpu, &run);
}

static int parity_of_call(struct check *k, struct subject *s, int call)
{
    int err = PM_OK;
    const struct pm_kernel *kernel = s->calls.calls[call].kernel;

    if (kernel->accumulate) {
        start_sums(s, call, true);
        PM_TRY(parity_levels(k, s, call, 1));
        start_sums(s, call, false);
    }
    PM_TRY(parity_levels(k, s, call, kernel->accumulate ? 0 : -1));
out:
    return err;
}

static bool shares_moments(const struct pm_planned_call *call)
{
    int flag = 0;

    if (call->kernel->moments)
        memcpy(&flag, (const char *)call->params + call->kernel->moments - 1, sizeof flag);
    return flag != 0;
}

/* Compares all calls; with moments only those that compute or take them, which do not add to a
 * gradient. The calls before the last of these run as well, since it may read their results. Sets
 * has_moments if a row of the calls has moments. */
static int parity_of_case(struct check *k, const struct entry *e, const struct check_case *c,
                          bool moments, bool *has_moments)
{
    int err = PM_OK, end;
    struct subject *s = NULL;
    const struct build_options o = { .backward = true, .update = true, .flag = 1,
                                     .doctor = k->doctor, .moments = moments };

    PM_TRY(subject_build(e, c, &o, &s));
    end = s->calls.call_count;
    while (moments && end > 0 && !shares_moments(&s->calls.calls[end - 1]))
        end--;
    for (int i = 0; i < end; i++) {
        const struct pm_kernel *kernel = s->calls.calls[i].kernel;

        *has_moments |= kernel->moments > 0;
        if ((c->large && too_much(s, i)) || (moments && !shares_moments(&s->calls.calls[i])))
            PM_TRY(run_only(k, s, i));
        else if (moments)
            PM_TRY(parity_levels(k, s, i, kernel->accumulate ? 0 : -1));
        else
            PM_TRY(parity_of_call(k, s, i));
    }
out:
    subject_free(&s);
    return err;
}

int mode_parity(struct check *k, const struct entry *e, const struct check_case *c)
{
    int err = PM_OK;
    bool has_moments = false;

    PM_TRY(parity_of_case(k, e, c, false, &has_moments));
    if (has_moments)
        PM_TRY(parity_of_case(k, e, c, true, &has_moments));
out:
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
            bytes += (double)s->values[c->buf[b]].bytes;
    flops = c->kernel->flops ? c->kernel->flops(c->params, c->count) : (double)c->count;
    printf("%s,\"%s of %s\",%s,%s,%.4f,%.2f,%.2f\n", s->entry->name, s->c->options, s->c->inputs,
           c->kernel->name, variant, seconds * 1e3, bytes / seconds / 1e9, flops / seconds / 1e9);
    fflush(stdout);
out:
    return err;
}

int mode_bench(struct check *k, const struct entry *e, const struct check_case *c)
{
    int err = PM_OK;
    struct subject *s = NULL;
    const struct build_options o = { .backward = true, .doctor = k->doctor };
    struct run_options run = { .accumulate = -1 };
    const bool variants = pm_device_caps(k->device)->runs_shaders;

    if (!c->large)
        return PM_OK;
    PM_TRY(subject_build(e, c, &o, &s));
    run.last = s->calls.call_count;
    PM_TRY(subject_run(s, k->device, &run)); /* so that every call has real inputs */
    for (int i = 0; i < s->calls.call_count; i++)
        for (int n = 0; variants ? has_level(k, &s->calls.calls[i], n) : n == 0; n++)
            PM_TRY(bench_call(k, s, i, n));
out:
    subject_free(&s);
    return err;
}
