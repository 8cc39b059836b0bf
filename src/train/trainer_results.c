/* trainer_results: reads the results of steps, a few steps after they began. */
#include "train/trainer.h"

#include "tasks/record.h"

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

/* Appends where a record is, and its picture's name if it has one. */
static void add_record(struct pm_dataset *d, size_t i, struct pm_str *out)
{
    struct pm_example *e = NULL;
    uint8_t *buf = NULL;
    size_t capacity = 0, size;
    char where[512], *name = NULL;

    pm_str_add(out, "%s", pm_dataset_where(d, i, where, sizeof where));
    if (pm_dataset_read(d, i, &buf, &capacity, &size) == PM_OK &&
        pm_example_parse(buf, size, where, &e) == PM_OK)
        name = pm_record_file(e);
    if (name)
        pm_str_add(out, ": %s", name);
    pm_free(name);
    pm_example_destroy(&e);
    pm_free(buf);
}

/* Logs the records of the step's batch, several in a line. */
static void say_records(const struct pm_trainer *t, int slot)
{
    enum { LINE = 2000 }; /* bytes, well below the longest line of the log */
    const uint64_t *records = t->loop.records + (size_t)(slot * t->loop.examples);
    struct pm_str line = { 0 };

    for (int i = 0; i < t->loop.examples; i++) {
        add_record(t->run.e->train, (size_t)records[i], &line);
        if (i + 1 < t->loop.examples && line.length < LINE) {
            pm_str_add(&line, ", ");
            continue;
        }
        PM_WARN("train", "step %llu, records of its batch: %s",
                (unsigned long long)t->run.collected, line.text);
        line.length = 0;
    }
    pm_str_free(&line);
}

static int fail_non_finite(struct pm_trainer *t, const struct pm_step_result *r, int slot)
{
    float norm;
    const char *name = worst_variable(t, r->norms, &norm);
    char last[64] = "none yet";

    if (t->run.saved_step != UINT64_MAX)
        snprintf(last, sizeof last, "step %llu", (unsigned long long)t->run.saved_step);
    say_records(t, slot);
    return pm_fail(PM_EFAIL, "step %llu: the loss is %g and the gradients are not finite, most in "
                   "%s (norm %g); last good checkpoint: %s; lower schedule.base_lr, set "
                   "optim.clip_norm, or look for bad labels in the records of its batch, which the "
                   "lines above name",
                   (unsigned long long)t->run.collected, r->loss, name, (double)norm, last);
}

int pm_trainer_result(struct pm_trainer *t, const struct pm_step_result *r, int slot,
                      uint64_t number)
{
    struct pm_watched_step step = { .result = r, .slot = slot, .phases = &t->phases,
                                    .lr = pm_schedule_rate(&t->start.schedule, (int64_t)number),
                                    .skipped = t->loop.skipped_at[slot] };
    int err = PM_OK;

    t->loop.decay = r->l2;
    t->loop.loss = r->loss + t->loop.decay;
    if (!r->finite)
        PM_TRY(fail_non_finite(t, r, slot));
    if (pm_watch_is_logged(&t->run))
        pm_trainer_note_updates(t, &step);
    PM_TRY(pm_watch_step(t->watch, &t->run, &step));
out:
    return err;
}

int pm_trainer_collect(struct pm_trainer *t)
{
    const int slot = (int)(t->run.collected % PM_STEP_SLOTS);
    struct pm_step_result r;
    int err = PM_OK;

    PM_TRY(pm_clones_collect(t->run.clones, slot, &r));
    t->run.before = t->run.collected++;
    PM_TRY(pm_trainer_result(t, &r, slot, t->run.before));
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
