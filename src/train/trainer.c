/* trainer: the loop. Batches come from the loader, results are read a few steps late so that the
 * device never waits for the log; before a checkpoint or an evaluation all steps under way are
 * collected. */
#include "train/trainer.h"

#include "optim/averages.h"
#include "observers/watch.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t stop_signal;

/* A second Ctrl-C or SIGTERM ends the process at once. SIGHUP, which comes several times when a terminal
 * closes, and SIGPIPE, which comes with every line that nobody reads, do not: a logout may send SIGTERM
 * behind SIGHUP while the checkpoint is being written. */
static void on_signal(int number)
{
    if (stop_signal == 0)
        stop_signal = number;
    if (number == SIGINT || number == SIGTERM) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
}

/* A lost terminal or reader of the output stops a run as Ctrl-C does, unless the signal was to be
 * ignored from the start, as nohup asks. */
static void catch_signals(void)
{
    static const int always[] = { SIGINT, SIGTERM }, unless_ignored[] = { SIGHUP, SIGPIPE };
    const struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    struct sigaction before;

    stop_signal = 0;
    for (size_t i = 0; i < PM_COUNT(always); i++)
        sigaction(always[i], &a, NULL);
    for (size_t i = 0; i < PM_COUNT(unless_ignored); i++)
        if (sigaction(unless_ignored[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(unless_ignored[i], &a, NULL);
}

/* ---- results ---------------------------------------------------------------------------- */

/* The variable whose gradient is not a number, else the one with the largest. */
static const char *worst_variable(struct pm_trainer *t, const float *norms, float *norm)
{
    const struct pm_variables *v = pm_clones_master(t->clones);
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

    if (t->saved_step != UINT64_MAX)
        snprintf(last, sizeof last, "step %llu", (unsigned long long)t->saved_step);
    return pm_fail(PM_EFAIL, "step %llu: the loss is %g and the gradients are not finite, most in "
                   "%s (norm %g); last good checkpoint: %s; lower schedule.base_lr, set "
                   "optim.clip_norm, or look for bad labels",
                   (unsigned long long)t->collected, r->loss, name, (double)norm, last);
}

/* Reads the results of the oldest step under way. */
static int collect(struct pm_trainer *t)
{
    struct pm_step_result r;
    int err = PM_OK;

    PM_TRY(pm_clones_collect(t->clones, (int)(t->collected % PM_TRAINER_SLOTS), &r));
    t->collected++;
    t->decay = r.l2;
    t->loss = r.loss + t->decay;
    if (!r.finite)
        PM_TRY(fail_non_finite(t, &r));
    pm_loss_averages_add(&t->averages, &r);
    pm_watch_step(t, &r);
out:
    return err;
}

static int drain(struct pm_trainer *t)
{
    int err = PM_OK;

    while (t->collected < t->step)
        PM_TRY(collect(t));
out:
    return err;
}

/* ---- saving and evaluating -------------------------------------------------------------- */

/* What is written into a folder of that name now would be half a run. */
static int check_folder(struct pm_trainer *t)
{
    char last[64] = "none";

    t->folder_checked_at = pm_seconds();
    if (pm_run_lock_holds(t->lock, t->saved_step != UINT64_MAX))
        return PM_OK;
    if (t->saved_step != UINT64_MAX)
        snprintf(last, sizeof last, "step %llu", (unsigned long long)t->saved_step);
    return pm_fail(PM_EFAIL, "%s: the run folder was removed, moved or replaced while this run "
                   "trained in it: the steps up to %llu since its last checkpoint (%s) are lost; put "
                   "a moved folder back and run the same command to go on from that checkpoint; "
                   "without it the same command begins anew",
                   t->c->run.folder, (unsigned long long)t->collected, last);
}

static int save(struct pm_trainer *t)
{
    const struct pm_config_run *run = &t->c->run;
    const struct pm_keep keep = pm_trainer_keep(t->c);
    enum pm_phase_of_run before;
    struct pm_str state = { 0 };
    int err = PM_OK;

    if (t->saved_step == t->step)
        return PM_OK;
    before = pm_phases_enter(&t->phases, PM_RUN_SAVING);
    PM_TRY(drain(t));
    PM_TRY(check_folder(t));
    PM_TRY(pm_trainer_snapshot(t));
    pm_watch_saving(t);
    pm_trainer_state(t, &state);
    PM_TRY(pm_state_save(t->snapshot, run->folder, t->step, state.text, &keep));
    t->saved_step = t->step;
    t->saved_at = pm_seconds();
    pm_watch_saved(t);
    PM_DEBUG("train", "step %llu saved", (unsigned long long)t->step);
out:
    pm_str_free(&state);
    pm_phases_enter(&t->phases, before);
    return err;
}

/* The step is saved. */
static int keep_best(struct pm_trainer *t)
{
    const char *metric = t->c->run.keep_best;
    const struct pm_metric_kind *kind = t->e->task_row->config.metrics;
    const double value = cJSON_GetNumberValue(cJSON_GetObjectItem(t->eval_metrics, metric));
    bool best = false;
    int err = PM_OK;

    while (kind->name && strcmp(kind->name, metric) != 0)
        kind++;
    PM_TRY(pm_checkpoint_keep_best(t->c->run.folder, t->step, metric, value,
                                   kind->higher_is_better, &best));
    if (best)
        PM_INFO("eval", "step %llu: best %s so far, %g", (unsigned long long)t->step, metric, value);
out:
    return err;
}

/* The averages where the run keeps some, unless eval.averages is off. */
static int evaluated_variables(struct pm_trainer *t, struct pm_variables **out)
{
    *out = pm_clones_variables(t->clones, 0);
    if (pm_averages_evaluated(t->c))
        return pm_clones_averaged(t->clones, out);
    return PM_OK;
}

/* The line in metrics.jsonl comes last. A start from this step's checkpoint that does not find it
 * evaluates again and writes everything once more, to the same bits. */
static int evaluate(struct pm_trainer *t)
{
    enum pm_phase_of_run before;
    struct cJSON *detail = NULL;
    struct pm_variables *v;
    uint64_t count, skipped;
    int err = PM_OK;

    if (t->evaluated_step == t->step)
        return PM_OK;
    before = pm_phases_enter(&t->phases, PM_RUN_EVALUATING);
    PM_TRY(drain(t));
    PM_TRY(evaluated_variables(t, &v));
    if (!t->evaluator)
        PM_TRY(pm_evaluator_create(t->e, pm_clones_device(t->clones, 0), v, &t->evaluator));
    cJSON_Delete(t->eval_metrics);
    t->eval_metrics = cJSON_CreateObject();
    detail = cJSON_CreateObject();
    PM_TRY(pm_evaluator_run(t->evaluator, t->eval_metrics, detail, &count, &skipped));
    PM_TRY(check_folder(t));
    if (t->c->run.keep_best) /* before anything is written: this may lose the device */
        PM_TRY(save(t));
    pm_watch_evaluation(t, count, detail);
    if (t->c->run.keep_best)
        PM_TRY(keep_best(t));
    pm_watch_evaluated(t);
    t->evaluated_step = t->step;
    pm_watch_start(t);
out:
    cJSON_Delete(detail);
    pm_phases_enter(&t->phases, before);
    return err;
}

/* ---- the loop --------------------------------------------------------------------------- */

static struct pm_step step_values(const struct pm_trainer *t)
{
    uint64_t seed = (uint64_t)t->c->run.seed;
    double n = (double)t->step + 1;

    return (struct pm_step){
        .step = (uint32_t)t->step, .seed_low = (uint32_t)seed, .seed_high = (uint32_t)(seed >> 32),
        .lr = pm_schedule_rate(&t->schedule, (int64_t)t->step), .loss_scale = 1,
        .beta1_power = (float)pow(t->betas[0], n), .beta2_power = (float)pow(t->betas[1], n),
        .ema_decay = pm_averages_decay(&t->c->optim, t->step + 1),
    };
}

static int one_step(struct pm_trainer *t)
{
    struct pm_batch *batch = NULL;
    struct pm_step values = step_values(t);
    enum pm_phase_of_run before;
    int err = PM_OK;

    if (t->step - t->collected == PM_TRAINER_SLOTS)
        PM_TRY(collect(t));
    before = pm_phases_enter(&t->phases, PM_RUN_DATA);
    err = pm_loader_next(t->loader, &batch);
    pm_phases_enter(&t->phases, before);
    PM_TRY(err);
    pm_watch_batch(t, batch);
    t->skipped += (uint64_t)batch->skipped;
    t->skipped_at[t->step % PM_TRAINER_SLOTS] = t->skipped;
    PM_TRY(pm_clones_step(t->clones, (int)(t->step % PM_TRAINER_SLOTS), batch, &values));
    t->step++;
    if (pm_clones_wait(t->clones))
        PM_TRY(collect(t));
out:
    if (batch)
        pm_loader_release(t->loader, batch);
    return err;
}

static bool is_due(uint64_t step, int64_t every)
{
    return every > 0 && step % (uint64_t)every == 0;
}

/* The same values, cut otherwise: nets and plans are made again. */
static int rebalance(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_trainer_snapshot(t));
    pm_watch_leave(t);
    pm_evaluator_destroy(&t->evaluator);
    pm_clones_destroy(&t->clones);
    PM_TRY(pm_trainer_clones(t));
    PM_TRY(pm_trainer_restore(t));
out:
    return err;
}

static int after_step(struct pm_trainer *t)
{
    const struct pm_config_run *run = &t->c->run;
    bool timed = run->save_every_secs > 0 && pm_seconds() - t->saved_at >= run->save_every_secs;
    int err = PM_OK;

    if (pm_seconds() - t->folder_checked_at >= 1) /* the file system may be far away */
        PM_TRY(check_folder(t));
    if (t->spec_count > 1 && pm_balancer_step(&t->balance, t->clones, t->specs)) {
        if (!t->lost[0]) /* a later start has all devices again */
            PM_TRY(pm_balancer_save(run->folder, t->specs, t->spec_count));
        if (t->balance.moved)
            PM_TRY(rebalance(t));
    }
    if (is_due(t->step, run->save_every_steps) || timed) {
        PM_TRY(save(t));
    } else if (is_due(t->step, run->snapshot_every_steps)) {
        PM_TRY(drain(t));
        PM_TRY(pm_trainer_snapshot(t));
    }
    if (pm_watch_due(t)) {
        PM_TRY(drain(t));
        if (t->snapshot_step != t->step)
            PM_TRY(pm_trainer_snapshot(t));
        PM_TRY(pm_watch_look(t));
    }
    if (is_due(t->step, t->c->eval.every_steps))
        PM_TRY(evaluate(t));
out:
    return err;
}

static int loop(struct pm_trainer *t)
{
    int64_t steps = t->e->steps;
    int err = PM_OK;

    /* A kill or a loss may have come between the last save and its evaluation. */
    if (!stop_signal && t->step > 0 && is_due(t->step, t->c->eval.every_steps))
        PM_TRY(evaluate(t));
    while (!stop_signal && (steps == 0 || t->step < (uint64_t)steps)) {
        if (pm_trace_steps_due(t)) {
            PM_TRY(drain(t));
            pm_trace_steps_switch(t);
        }
        PM_TRY(one_step(t));
        PM_TRY(after_step(t));
    }
    PM_TRY(drain(t));
    PM_TRY(save(t));
    pm_trace_steps_end(t);
    if (!stop_signal && t->c->eval.every_steps > 0 && t->step > 0)
        PM_TRY(evaluate(t));
out:
    return err;
}

/* After a loss: from the snapshot. */
static int go_on(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_trainer_clones(t));
    PM_TRY(pm_trainer_restore(t));
    PM_TRY(check_folder(t));
    if (t->evaluated_step > t->step)
        t->evaluated_step = UINT64_MAX; /* its line goes with the steps that are taken again */
    PM_TRY(pm_trainer_loader(t));
    pm_watch_open(t);
    pm_watch_start(t);
out:
    return err;
}

static void summarise(const struct pm_trainer *t, struct cJSON *summary)
{
    double seconds = pm_seconds() - t->started_at;
    double images = (double)(t->step - t->first_step) * t->c->run.batch_size;
    char path[4096];

    cJSON_AddNumberToObject(summary, "step", (double)t->step);
    if (t->step > t->first_step) {
        cJSON_AddNumberToObject(summary, "loss", t->loss); /* as in metrics.jsonl */
        cJSON_AddNumberToObject(summary, "l2", t->decay);
    }
    cJSON_AddNumberToObject(summary, "seconds", seconds);
    cJSON_AddNumberToObject(summary, "images_per_second", seconds > 0 ? images / seconds : 0);
    snprintf(path, sizeof path, "%s/checkpoints/step-%06llu.safetensors", t->c->run.folder,
             (unsigned long long)t->saved_step);
    cJSON_AddStringToObject(summary, "checkpoint", path);
    if (t->c->data.on_corrupt == PM_CORRUPT_SKIP)
        cJSON_AddNumberToObject(summary, "skipped", (double)t->skipped);
    if (t->lost[0])
        cJSON_AddStringToObject(summary, "lost", t->lost);
    if (t->eval_metrics)
        cJSON_AddItemToObject(summary, "metrics", cJSON_Duplicate(t->eval_metrics, true));
}

/* A message of the validation layer is a mistake of ours that some driver will punish. */
static int check_messages(const struct pm_trainer *t)
{
    if (t->c->run.validate && pm_device_messages() > 0)
        return pm_fail(PM_EDEVICE, "run.validate: the validation layer had %llu messages (see "
                       "above); the run is saved", (unsigned long long)pm_device_messages());
    return PM_OK;
}

int pm_train(const struct pm_config *c, int *signal_number, struct cJSON *summary)
{
    struct pm_trainer t = { .c = c, .failed.clone = -1 };
    int err = PM_OK;

    *signal_number = 0;
    PM_TRY(pm_trainer_open(&t));
    catch_signals();
    t.saved_at = t.started_at = pm_seconds();
    pm_phases_start(&t.phases); /* what the start took is no step's time */
    pm_watch_start(&t);
    while ((err = loop(&t)) == PM_ELOST)
        PM_TRY(pm_trainer_recover(&t, go_on));
    if (err < 0 && check_folder(&t) < 0)
        err = PM_EFAIL; /* the reason of whatever could not be written */
    PM_TRY(err);
    PM_TRY(check_messages(&t));
    *signal_number = stop_signal;
    pm_progress_end(&t.progress);
    if (stop_signal)
        PM_INFO("train", "stopped by a signal at step %llu, saved; run the same command to go on",
                (unsigned long long)t.step);
    if (t.skipped)
        PM_WARN("data", "%llu damaged records were passed over since step 0, others stood in "
                "(data.on_corrupt)", (unsigned long long)t.skipped);
    if (summary)
        summarise(&t, summary);
out:
    pm_watch_end(&t, err, *signal_number);
    pm_trainer_close(&t);
    return err;
}
