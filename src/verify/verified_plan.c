/* verified_plan: verified_plan.h has the contract. */
#include "verify/verified_plan.h"

#include <pumice/verify.h>

#include <string.h>

/* ---- before a plan is used ---------------------------------------------------------------- */

static bool plan_runs(const struct pm_plan *p, const struct pm_device *d,
                      const struct pm_verified *r)
{
    size_t count;
    const struct pm_planned_call *calls = pm_plan_calls(p, &count);

    for (size_t i = 0; i < count; i++) {
        const struct pm_planned_call *c = &calls[i];
        const char *variant;

        if (strcmp(c->kernel->name, r->kernel) == 0 &&
            pm_call_variant(d, c->kernel, c->params, c->count, 0, &variant) == PM_OK && variant &&
            strcmp(variant, r->variant) == 0)
            return true;
    }
    return false;
}

static void avoid(struct pm_device *d, const struct pm_verified *r, const char *when)
{
    PM_WARN("verify",
            "%s: %s, variant %s, gives wrong results with this driver%s: %s. It is not used; "
            "please report this with the output of 'pumice verify %s --json'",
            pm_device_get_info(d)->address, r->kernel, r->variant, when, r->why,
            pm_device_get_info(d)->address);
    pm_device_avoid(d, r->kernel, r->variant);
}

/* Avoids the wrong variants that the plan runs; returns their number. */
static int avoid_wrong(struct pm_device *d, const struct pm_plan *p,
                       const struct pm_verified *list, size_t count, const char *when)
{
    int avoided = 0;

    for (size_t i = 0; i < count; i++)
        if (list[i].verdict == PM_VERDICT_WRONG && plan_runs(p, d, &list[i])) {
            avoid(d, &list[i], when);
            avoided++;
        }
    return avoided;
}

/* Returns the floating-point operations of the plan's calls. */
static double plan_work(const struct pm_plan *p)
{
    size_t count;
    const struct pm_planned_call *calls = pm_plan_calls(p, &count);
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += calls[i].kernel->flops ? calls[i].kernel->flops(calls[i].params, calls[i].count)
                                      : (double)calls[i].count;
    return sum;
}

/* Verifies the plan's own calls with one or two examples, if the CPU needs about a second for them.
 * Small nets verify variants that these calls do not reach (tiles for many pixels). */
static int run_wanted(struct pm_verify *v, const struct pm_verification *t,
                      const struct pm_plan *plan, const struct pm_plan_options *o,
                      const char *const *slots)
{
    const double much = 2e10;
    double each = plan_work(plan) / (t->batch * (o->micro_batches > 1 ? o->micro_batches : 1));
    struct pm_verify_source s = { .name = o->name, .build = t->build, .ctx = t->ctx,
                                  .batch = t->batch > 1 && 2 * each < much ? 2 : 1,
                                  .height = t->height, .width = t->width,
                                  .options = *o, .slots = slots };
    int err = PM_OK;

    /* The walk runs each call once, so it has the memory for copies of weights even where the plan
     * has not. Data gradients without a copy are other variants. */
    s.options.no_copies = !pm_plan_keeps_copies(plan);
    if (each < 5 * much)
        PM_TRY(pm_verify_source(v, &s));
    for (size_t i = 0; pm_verify_lacks(v) > 0 && pm_verify_case(i, &s); i++)
        PM_TRY(pm_verify_source(v, &s));
out:
    return err;
}

/* Verifies kernels that have no verdict. *again: some are avoided from now on, so the plan must be
 * created again. */
static int verify_plan(const struct pm_verification *t, struct pm_device *d,
                       const struct pm_plan *plan, const struct pm_plan_options *o,
                       const char *const *slots, bool *again)
{
    struct pm_verdicts *known = pm_verdicts_load(d);
    struct pm_verify *v = NULL;
    const struct pm_verified *list;
    double start = pm_seconds();
    size_t count;
    int err = PM_OK;

    list = pm_verdicts_list(known, &count);
    *again = avoid_wrong(d, plan, list, count, " (found earlier)") > 0;
    PM_TRY(pm_verify_open(d, &v));
    if (*again || pm_verify_want_plan(v, plan, known) == 0)
        goto out;
    err = run_wanted(v, t, plan, o, slots);
    pm_verdicts_save(known, v);
    PM_TRY(err);
    list = pm_verify_results(v, &count);
    PM_INFO("verify", "%s: %zu kernel%s verified against the CPU in %.1f s",
            pm_device_get_info(d)->address, count, count == 1 ? "" : "s", pm_seconds() - start);
    if (pm_verify_lacks(v) > 0)
        PM_DEBUG("verify", "%s: small inputs do not reach %zu kernels of the plan",
                 pm_device_get_info(d)->address, pm_verify_lacks(v));
    *again = avoid_wrong(d, plan, list, count, "") > 0;
out:
    pm_verify_close(&v);
    pm_verdicts_free(&known);
    return err;
}

int pm_verified_plan_create(const struct pm_verification *t, struct pm_net *net,
                            struct pm_device *d, struct pm_variables *v,
                            const struct pm_plan_options *o, const char *const *slots,
                            struct pm_plan **out)
{
    struct pm_plan *plan = NULL;
    bool again = t->on && pm_device_caps(d)->needs_verification;
    int err = PM_OK;

    PM_TRY(pm_plan_create(net, d, v, o, &plan));
    while (again) {
        PM_TRY(verify_plan(t, d, plan, o, slots, &again));
        if (!again)
            break;
        pm_plan_destroy(&plan);
        PM_TRY(pm_plan_create(net, d, v, o, &plan));
    }
    *out = plan, plan = NULL;
out:
    pm_plan_destroy(&plan);
    return err;
}
