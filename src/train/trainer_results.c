/* trainer_results: reads the results of steps, a few steps after they began. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>

/* Returns the first variable whose gradient is not finite, else the one with the largest
 * gradient. */
static const char *worst_variable(struct pm_trainer *t, const float *norms, float *norm)
{
    const struct pm_variables *v = pm_clones_master(t->run.clones);
    int worst = 0;

    for (int k = 0; pm_update_variable(v, k) >= 0; k++)
        if (!(norms[k] <= norms[worst])) {
            worst = k;
            if (!isfinite(norms[k]))
                break;
        }
    *norm = norms[worst];
    return v->list[pm_update_variable(v, worst)].name;
}

static int fail_non_finite(struct pm_trainer *t, const struct pm_step_result *r)
{
    float norm;
    const char *name = worst_variable(t, r->norms, &norm);
    char last[64] = "none yet";

    if (t->run.saved_step != UINT64_MAX)
        snprintf(last, sizeof last, "step %llu", (unsigned long long)t->run.saved_step);
    return pm_fail(PM_EFAIL, "step %llu: the loss is %g and the gradients are not finite, most in "
                   "%s (norm %g); last good checkpoint: %s; lower schedule.base_lr, set "
                   "optim.clip_norm, or look for bad labels",
                   (unsigned long long)t->run.collected, r->loss, name, (double)norm, last);
}

int pm_trainer_collect(struct pm_trainer *t)
{
    const int slot = (int)(t->run.collected % PM_STEP_SLOTS);
    struct pm_step_result r;
    int err = PM_OK;

    PM_TRY(pm_clones_collect(t->run.clones, slot, &r));
    t->run.collected++;
    t->loop.decay = r.l2;
    t->loop.loss = r.loss + t->loop.decay;
    if (!r.finite)
        PM_TRY(fail_non_finite(t, &r));
    pm_watch_step(t->watch, &t->run, &(struct pm_watched_step){
        .result = &r, .slot = slot, .lr = pm_schedule_rate(&t->start.schedule,
                                                           (int64_t)t->run.collected - 1),
        .skipped = t->loop.skipped_at[slot], .phases = &t->phases });
out:
    return err;
}

int pm_trainer_drain(struct pm_trainer *t)
{
    int err = PM_OK;

    while (t->run.collected < t->run.step)
        PM_TRY(pm_trainer_collect(t));
out:
    return err;
}
