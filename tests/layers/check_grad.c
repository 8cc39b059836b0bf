/* check grad: a layer's gradients against central differences of its reference. */
#include <assert.h>
#include <pumice/rng.h>
#include <stdlib.h>

#include "check_modes.h"

enum { SAMPLES = 128, DIRECTIONS = 6 };

/* Central differences of J = sum of g[j] y[j], along the direction `way` of array a (NULL: along
 * element i). */
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
    struct ref_array *a; /* belongs to the reference */
    const float *got;
    const char *name;
};

/* Compares the gradient of one array: sampled elements, then random directions over all
 * elements. */
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
        /* The error of values that elements share (means, norms) is proportional to the largest
         * element. */
        const double allowed = ulps * CHECK_EPSILON * (d[i].magnitude + largest / 16) +
                               1e-10 * largest;

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
        const double allowed = ulps * CHECK_EPSILON * sum / (double)samples * (double)a->count +
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

/* When only some gradients are computed, they must have the same bits as when all are. */
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

/* With the accumulate flag, dw must be its earlier contents plus the result of a writing call. */
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

            if (!(fabs(got - start - step) <= 16 * CHECK_EPSILON * (fabs(start) + fabs(step) + 1)))
                PM_TRY(pm_fail(PM_EFAIL, "accumulating dw of variable %d [%zu] is %.9g, not %.9g "
                               "+ %.9g", v, i, got, start, step));
        }
out:
    subject_free(&s);
    subject_free(&fresh);
    return err;
}

int mode_grad(struct check *k, const struct entry *e, const struct check_case *c)
{
    int err = PM_OK;
    struct subject *s = NULL;
    struct ref r = { 0 };
    double *g = NULL;
    const struct build_options o = { .backward = true, .doctor = k->doctor };
    struct run_options run = { .accumulate = 0 };
    char name[32];
    size_t at = 0;

    if (c->large)
        return PM_OK;
    PM_TRY(subject_build(e, c, &o, &s));
    if (s->forward_calls == s->calls.call_count && !s->node->layer->view)
        goto out; /* the case has no backward calls */
    run.last = s->calls.call_count;
    ref_make(s, &r);
    e->test->reference(&r);
    g = malloc(r.y.count * sizeof *g);
    for (int i = 0; i < s->outputs; i++) {
        const size_t count = pm_shape_count(r.out[i]);

        for (size_t j = 0; j < count; j++)
            g[at + j] = e->test->loss         ? CHECK_SHARE
                        : pm_has(s->dys[i]) ? floats(s, s->dys[i])[j]
                                            : 0;
        at += count;
    }
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
