/* dry_run: what a training costs, without training. It makes the checks of `train`, then takes a
 * few steps from the values of a new run, as `bench` does. Nothing is written to the run folder. */
#include <pumice/train.h>

#include "checkpoints/published.h"
#include "measure/bench_report.h"
#include "measure/steps.h"
#include "train/trainer.h"

#include <cjson/cJSON.h>

/* Steps that fill the ring and the caches; steps that are measured. */
enum { WARM_UP = 2, MEASURED = 3 };

/* Makes the checks of a training, and finds its steps: the last one (0: none), and that of the
 * newest checkpoint (-1: none). */
static int check_run(const struct pm_config *c, int64_t *steps, int64_t *first)
{
    struct pm_trainer t = { .run.c = c, .losses.failed.clone = -1 };
    int err = PM_OK;

    PM_TRY(pm_trainer_prepare(&t));
    *steps = t.run.e->steps;
    *first = pm_checkpoint_newest_step(c->run.folder);
out:
    pm_trainer_close(&t);
    return err;
}

/* Sets the values of init.checkpoint if the run would read it, and finds its first step. Published
 * weights are not downloaded for this. */
static int start(struct pm_steps *s, int64_t *first)
{
    const struct pm_published *p = pm_published_is_wanted(s->c) ? pm_published_of(s->c) : NULL;
    int err = PM_OK;

    if (*first >= 0)
        return PM_OK;
    if (p && !pm_published_is_here(p))
        PM_INFO("init", "%s is not downloaded yet, so it was not tried", p->name);
    else
        PM_TRY(pm_steps_start(s));
    *first = (int64_t)s->step;
out:
    return err;
}

static int measure(struct pm_steps *s, int64_t *first, double *seconds)
{
    double begun;
    int err = PM_OK;

    PM_TRY(pm_steps_clones(s, false));
    PM_TRY(start(s, first));
    PM_TRY(pm_steps_loader(s));
    PM_TRY(pm_steps_take(s, WARM_UP));
    begun = pm_seconds();
    PM_TRY(pm_steps_take(s, MEASURED));
    *seconds = (pm_seconds() - begun) / MEASURED;
out:
    return err;
}

int pm_dry_run(const struct pm_config *c, struct cJSON *report)
{
    struct pm_steps s = { 0 };
    int64_t steps = 0, first = 0;
    double seconds = 0;
    int err = PM_OK;

    PM_TRY(check_run(c, &steps, &first));
    PM_TRY(pm_steps_open(&s, c, false));
    PM_TRY(measure(&s, &first, &seconds));
    cJSON_AddStringToObject(report, "config", c->path);
    cJSON_AddStringToObject(report, "model", pm_experiment_net_name(c));
    cJSON_AddNumberToObject(report, "batch", s.c->run.batch_size);
    cJSON *devices = cJSON_AddArrayToObject(report, "devices");
    for (int i = 0; i < s.count; i++)
        PM_TRY(pm_bench_add_device(devices, pm_clones_plan(s.clones, i, 0),
                                   pm_clones_examples(s.clones, i),
                                   pm_clones_memory(s.clones, i)));
    cJSON_AddNumberToObject(report, "seconds_per_step", seconds);
    cJSON_AddNumberToObject(report, "images_per_second", s.c->run.batch_size / seconds);
    cJSON_AddNumberToObject(report, "first_step", (double)first);
    cJSON_AddNumberToObject(report, "steps", (double)steps);
    if (steps > 0)
        cJSON_AddNumberToObject(report, "seconds",
                                seconds * (double)(steps > first ? steps - first : 0));
    else
        cJSON_AddNullToObject(report, "seconds");
out:
    pm_steps_close(&s);
    return err;
}
