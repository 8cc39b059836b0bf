/* verify: runs one call in every wanted variant and records the result by kernel and variant. */
#include "verify/verify_private.h"

#include <string.h>

int pm_verify_open(struct pm_device *d, struct pm_verify **out)
{
    int err = PM_OK;
    struct pm_verify *v = pm_calloc(1, sizeof *v);
    struct pm_device_info *list = NULL, info;
    size_t count, index;

    v->device = d;
    PM_TRY(pm_device_list(&list, &count));
    PM_TRY(pm_device_find(list, count, "cpu", "verify", &index));
    info = list[index];
    PM_TRY(pm_device_open(&info, NULL, &v->cpu));
    *out = v, v = NULL;
out:
    pm_free(list);
    pm_verify_close(&v);
    return err;
}

void pm_verify_close(struct pm_verify **v)
{
    if (*v) {
        pm_device_close(&(*v)->cpu);
        pm_free((*v)->found);
        pm_free((*v)->wanted);
        pm_free((*v)->seen);
        pm_free(*v);
    }
    *v = NULL;
}

const struct pm_verified *pm_verify_results(const struct pm_verify *v, size_t *count)
{
    *count = v->count;
    return v->found;
}

/* ---- wanted variants -------------------------------------------------------------------- */

static struct pm_verified *find(const struct pm_verify *v, const char *kernel,
                                const char *variant)
{
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->found[i].kernel, kernel) == 0 && strcmp(v->found[i].variant, variant) == 0)
            return &v->found[i];
    return NULL;
}

/* Returns the place for a new entry. Variants of a kernel are next to each other; kernels are in
 * the order of their first run. */
static size_t place_of(const struct pm_verify *v, const char *kernel)
{
    size_t at = v->count;

    while (at > 0 && strcmp(v->found[at - 1].kernel, kernel) != 0)
        at--;
    return at > 0 ? at : v->count;
}

static struct pm_verified *entry(struct pm_verify *v, const char *kernel, const char *variant)
{
    struct pm_verified *r = find(v, kernel, variant);

    if (r)
        return r;
    PM_GROW(v->found, v->count, v->capacity);
    r = &v->found[place_of(v, kernel)];
    memmove(r + 1, r, (size_t)(&v->found[v->count++] - r) * sizeof *r);
    *r = (struct pm_verified){ .verdict = PM_VERDICT_OK };
    snprintf(r->kernel, sizeof r->kernel, "%s", kernel);
    snprintf(r->variant, sizeof r->variant, "%s", variant);
    return r;
}

static bool is_wanted(const struct pm_verify *v, const char *kernel, const char *variant)
{
    for (size_t i = 0; i < v->wanted_count; i++)
        if (strcmp(v->wanted[i].kernel, kernel) == 0 &&
            strcmp(v->wanted[i].variant, variant) == 0)
            return true;
    return false;
}

void pm_verify_want(struct pm_verify *v, const char *kernel, const char *variant)
{
    struct pm_wanted *w;

    v->only = true;
    if (is_wanted(v, kernel, variant))
        return;
    PM_GROW(v->wanted, v->wanted_count, v->wanted_capacity);
    w = &v->wanted[v->wanted_count++];
    snprintf(w->kernel, sizeof w->kernel, "%s", kernel);
    snprintf(w->variant, sizeof w->variant, "%s", variant);
}

bool pm_verify_wants(const struct pm_verify *v, const char *kernel, const char *variant)
{
    return !v->only || (is_wanted(v, kernel, variant) && !find(v, kernel, variant));
}

bool pm_verify_first(struct pm_verify *v, uint64_t call)
{
    for (size_t i = 0; i < v->seen_count; i++)
        if (v->seen[i] == call)
            return false;
    PM_GROW(v->seen, v->seen_count, v->seen_capacity);
    v->seen[v->seen_count++] = call;
    return true;
}

void pm_verify_limit(struct pm_verify *v, double seconds)
{
    v->end = pm_seconds() + seconds;
}

bool pm_verify_is_late(struct pm_verify *v)
{
    v->cut |= v->end > 0 && pm_seconds() > v->end;
    return v->cut;
}

bool pm_verify_is_cut(const struct pm_verify *v)
{
    return v->cut;
}

size_t pm_verify_lacks(const struct pm_verify *v)
{
    size_t lacking = 0;

    for (size_t i = 0; i < v->wanted_count; i++)
        lacking += !find(v, v->wanted[i].kernel, v->wanted[i].variant);
    return lacking;
}

size_t pm_verify_want_plan(struct pm_verify *v, const struct pm_plan *p,
                           const struct pm_verdicts *known)
{
    size_t count, wanted = 0;
    const struct pm_planned_call *calls = pm_plan_calls(p, &count);

    v->only = true;
    for (size_t i = 0; i < count; i++) {
        const struct pm_planned_call *c = &calls[i];
        const char *variant;

        if (pm_call_variant(v->device, c->kernel, c->params, c->count, 0, &variant) < 0 ||
            !variant)
            continue; /* creating the program reports the error */
        if (find(v, c->kernel->name, variant) || is_wanted(v, c->kernel->name, variant) ||
            (known && pm_verdicts_find(known, c->kernel->name, variant)))
            continue;
        pm_verify_want(v, c->kernel->name, variant);
        wanted++;
    }
    return wanted;
}

/* ---- running ---------------------------------------------------------------------------- */

/* Runs the call once on the device. The result is recorded under the variant that actually ran. */
static int run_way(struct pm_verify *v, const struct pm_verify_call *call, struct pm_way way,
                   struct pm_expected *e, const char *asked)
{
    struct pm_one_call *run = NULL;
    struct pm_verified *r;
    char fault[200];
    int err = PM_OK;

    err = pm_one_call_create(v->device, call, way, &run);
    if (err == PM_EDEVICE) { /* there is no fallback, or a buffer could not be allocated */
        r = entry(v, call->kernel->name, asked);
        if (r->verdict == PM_VERDICT_OK && r->calls == 0)
            r->verdict = PM_VERDICT_CANNOT;
        snprintf(r->why, sizeof r->why, "%s", pm_error_text());
        return PM_OK;
    }
    PM_TRY(err);
    if (strcmp(pm_one_call_variant(run), asked) != 0)
        entry(v, call->kernel->name, asked)->verdict = PM_VERDICT_CANNOT;
    r = entry(v, call->kernel->name, pm_one_call_variant(run));
    PM_TRY(pm_one_call_run(run, pm_expected_contents(e), fault, sizeof fault));
    if (fault[0] && r->verdict != PM_VERDICT_WRONG) {
        r->verdict = PM_VERDICT_WRONG;
        snprintf(r->why, sizeof r->why, "%s (%s)", fault, call->label);
    }
    PM_TRY(pm_expected_compare(e, run, r));
out:
    pm_one_call_destroy(&run);
    return err;
}

/* Runs a level out of place, and in every place that the row and the buffers allow. */
static int run_level(struct pm_verify *v, const struct pm_verify_call *call, int level,
                     struct pm_expected *e, int accumulate)
{
    const char *asked;
    bool more = true;
    int err = PM_OK;

    PM_TRY(pm_call_variant(v->device, call->kernel, call->params, call->count, level, &asked));
    for (int inplace = 0; more; inplace++) {
        if (inplace > 0 && !pm_one_call_inplace(call, inplace, &more))
            continue;
        PM_TRY(run_way(v, call, (struct pm_way){ .level = level, .accumulate = accumulate,
                                                 .inplace = inplace }, e, asked));
    }
out:
    return err;
}

/* Runs the levels whose bits are set in `levels`; the CPU's side is computed once for all of
 * them. */
static int run_levels(struct pm_verify *v, const struct pm_verify_call *call, uint32_t levels)
{
    bool adds = call->kernel->accumulate != 0;
    struct pm_expected *e = NULL;
    int err = PM_OK;

    for (int accumulate = adds ? 0 : -1; accumulate <= (adds ? 1 : -1); accumulate++) {
        PM_TRY(pm_expected_create(v->cpu, call, accumulate, &e));
        for (int level = 0; level < 32; level++)
            if (levels >> level & 1)
                PM_TRY(run_level(v, call, level, e, accumulate));
        pm_expected_destroy(&e);
    }
out:
    pm_expected_destroy(&e);
    return err;
}

int pm_verify_levels(struct pm_verify *v, const struct pm_verify_call *call, uint32_t levels)
{
    int err = PM_OK;

    if (v->hooks)
        return v->hooks->run(v->hooks->ctx, call, levels);
    PM_TRY(run_levels(v, call, levels));
    for (int level = 0; level < 32; level++) {
        const char *variant;

        if (!(levels >> level & 1))
            continue;
        PM_TRY(pm_call_variant(v->device, call->kernel, call->params, call->count, level,
                               &variant));
        entry(v, call->kernel->name, variant)->calls++;
    }
out:
    return err;
}

uint32_t pm_verify_mask(const struct pm_verify *v, const struct pm_kernel *k, const void *params,
                        size_t count)
{
    uint32_t mask = 0;
    const char *variant, *last = NULL;

    if (v->hooks)
        return v->hooks->levels(v->hooks->ctx, k, params, count);
    for (int level = 0; level < 32; level++) {
        if (pm_call_variant(v->device, k, params, count, level, &variant) < 0 || !variant)
            break;
        if (!(last && strcmp(last, variant) == 0) && pm_verify_wants(v, k->name, variant))
            mask |= UINT32_C(1) << level;
        last = variant;
    }
    return mask;
}

int pm_verify_call(struct pm_verify *v, const struct pm_verify_call *call)
{
    uint32_t mask = pm_verify_mask(v, call->kernel, call->params, call->count);

    return mask ? pm_verify_levels(v, call, mask) : PM_OK;
}
