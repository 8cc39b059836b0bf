/* trainer_save: checkpoints of a run, and its evaluations. Both wait for all steps under way. */
#include "train/trainer.h"

#include "optim/averages.h"

#include <cjson/cJSON.h>
#include <string.h>

/* ---- saving ----------------------------------------------------------------------------- */

struct pm_keep pm_trainer_keep(const struct pm_config *c)
{
    return (struct pm_keep){ .newest = c->run.keep, .every_hours = c->run.keep_every_hours };
}

/* A resumed run reads skipped, loss_averages and train_confusion. data is for commands that use the
 * net without the data folder. checkpoint.c notes betas in the file of the tensors, too.
 * trainer_open.c warns if seed, batch_size or devices change. */
void pm_trainer_state(const struct pm_trainer *t, struct pm_str *json)
{
    pm_str_add(json, "{\"seed\": %lld, \"batch_size\": %d, \"skipped\": %llu, \"devices\": \"",
               (long long)t->run.c->run.seed, t->run.c->run.batch_size,
               (unsigned long long)t->snapshot.skipped);
    pm_trainer_list_devices(t, json);
    pm_str_add(json, "\", \"lost\": \"%s\"", pm_trainer_lost(t));
    if (t->start.betas[0] > 0 || t->start.betas[1] > 0)
        pm_str_add(json, ", \"betas\": [%.9g, %.9g]", t->start.betas[0], t->start.betas[1]);
    pm_str_add(json, ", ");
    pm_watch_print(t->watch, json);
    pm_early_stop_print(&t->saving.stop, json);
    pm_str_add(json, ", \"data\": %s}", t->start.data_json);
}

int pm_trainer_check_folder(struct pm_trainer *t)
{
    char last[64] = "none";

    t->saving.folder_checked_at = pm_seconds();
    if (!pm_trainer_is_chief(t) || pm_run_lock_holds(t->run.lock, t->run.saved_step != UINT64_MAX))
        return PM_OK;
    if (t->run.saved_step != UINT64_MAX)
        snprintf(last, sizeof last, "step %llu", (unsigned long long)t->run.saved_step);
    return pm_fail(
        PM_EFAIL,
        "%s: the run folder was removed, moved or replaced while this run trained in it: the steps "
        "up to %llu since its last checkpoint (%s) are lost; put a moved folder back and run the "
        "same command to resume from that checkpoint; without it the same command starts a new run",
        t->run.c->run.folder, (unsigned long long)t->run.collected, last);
}

int pm_trainer_save(struct pm_trainer *t)
{
    enum pm_phase_of_run before;
    int err = PM_OK;

    if (t->run.saved_step == t->run.step ||
        (t->writing.running && t->writing.step == t->run.step))
        return PM_OK;
    before = pm_phases_enter(&t->phases, PM_RUN_SAVING);
    PM_TRY(pm_trainer_drain(t));
    PM_TRY(pm_trainer_check_folder(t));
    PM_TRY(t->async.on ? pm_trainer_async_fresh(t) : pm_trainer_snapshot(t));
    if (!pm_trainer_is_chief(t)) {
        t->run.saved_step = t->run.step;
        goto out;
    }
    pm_trainer_note_phase(t, PM_REPLICA_SAVING);
    pm_watch_saving(t->watch);
    PM_TRY(pm_trainer_write(t));
out:
    pm_phases_enter(&t->phases, before);
    return err;
}

/* ---- evaluating ------------------------------------------------------------------------- */

/* Call it after the step was saved. */
static int keep_best(struct pm_trainer *t)
{
    const struct pm_metric_kind *kind = t->saving.best;
    const double value = cJSON_GetNumberValue(cJSON_GetObjectItem(t->saving.metrics, kind->name));
    bool best = false;
    int err = PM_OK;

    PM_TRY(pm_checkpoint_keep_best(t->run.c->run.folder, t->run.step, kind->name, value,
                                   kind->higher_is_better, &best));
    if (best)
        PM_INFO("eval", "step %llu: best %s so far, %g", (unsigned long long)t->run.step,
                kind->name, value);
out:
    return err;
}

/* Returns the variables to evaluate: the moving averages, if the run has them and eval.averages is
 * not off. */
static int evaluated_variables(struct pm_trainer *t, struct pm_variables **out)
{
    *out = pm_clones_variables(t->run.clones, 0);
    if (pm_averages_evaluated(t->run.c))
        return pm_clones_averaged(t->run.clones, out);
    return PM_OK;
}

int pm_trainer_plan_evaluation(struct pm_trainer *t)
{
    struct pm_variables *v;
    int err = PM_OK;

    PM_TRY(evaluated_variables(t, &v));
    if (!t->saving.evaluator) {
        PM_TRY(pm_evaluator_create(t->run.e, pm_clones_device(t->run.clones, 0), v,
                                   &t->saving.evaluator));
        pm_evaluator_share(t->saving.evaluator, t->replicas.sync);
    }
out:
    return err;
}

/* The line in metrics.jsonl is written last. If a start from this step's checkpoint does not find
 * the line, it evaluates again and writes everything once more, with the same bits. */
static int evaluate(struct pm_trainer *t)
{
    enum pm_phase_of_run before;
    struct cJSON *detail = NULL;
    uint64_t count, skipped;
    int err = PM_OK;

    before = pm_phases_enter(&t->phases, PM_RUN_EVALUATING);
    pm_trainer_note_phase(t, PM_REPLICA_EVALUATION);
    PM_TRY(pm_trainer_drain(t));
    PM_TRY(pm_trainer_check_devices(t));
    if (t->async.on)
        PM_TRY(pm_trainer_async_fresh(t));
    PM_TRY(pm_trainer_plan_evaluation(t));
    cJSON_Delete(t->saving.metrics);
    t->saving.metrics = cJSON_CreateObject();
    detail = cJSON_CreateObject();
    PM_TRY(pm_evaluator_run(t->saving.evaluator, t->saving.metrics, detail, &count, &skipped));
    if (!pm_trainer_is_chief(t))
        goto out;
    PM_TRY(pm_trainer_check_folder(t));
    pm_early_stop_count(&t->saving.stop, t->run.step, t->saving.metrics);
    if (t->saving.best || t->saving.stop.metric) /* first, because it may lose the device */
        PM_TRY(pm_trainer_save(t));
    pm_watch_evaluation(t->watch, &t->run, count, t->saving.metrics, detail);
    if (t->saving.best) {
        PM_TRY(pm_trainer_wait_written(t));
        PM_TRY(keep_best(t));
    }
    pm_watch_evaluated(t->watch, &t->run, t->saving.metrics);
    t->run.evaluated_step = t->run.step;
    pm_watch_start(t->watch, &t->run);
out:
    cJSON_Delete(detail);
    pm_phases_enter(&t->phases, before);
    return err;
}

int pm_trainer_agree_end(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_trainer_agree(t, &t->saving.stop.now, sizeof t->saving.stop.now));
    t->saving.stops_early = pm_early_stop_due(&t->saving.stop);
out:
    return err;
}

/* All processes evaluate. The chief has the results, and sends the state of early_stop to the
 * others. */
int pm_trainer_evaluate(struct pm_trainer *t)
{
    int err = PM_OK;

    if (t->run.evaluated_step == t->run.step)
        return PM_OK;
    PM_TRY(evaluate(t));
    t->run.evaluated_step = t->run.step;
    PM_TRY(pm_trainer_agree_end(t));
out:
    return err;
}
