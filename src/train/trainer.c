/* trainer: the training loop. Batches come from the loader. Results are read a few steps late, so
 * that the device never waits for the log. */
#include "train/trainer.h"

#include "optim/averages.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <string.h>

enum { FIRST_SAVE_SECONDS = 60 }; /* latest time of the first checkpoint of a run */
/* How soon another process must answer after a signal: mpirun kills all 1 s after it. */
static const double answer_seconds = 0.3;

static volatile sig_atomic_t stop_signal;

/* A second Ctrl-C or SIGTERM ends the process at once. SIGHUP and SIGPIPE do not. SIGHUP comes
 * several times when a terminal closes, and SIGPIPE comes with every line written to a closed pipe.
 * A logout may also send SIGTERM after SIGHUP while the checkpoint is being written. */
static void on_signal(int number)
{
    if (stop_signal == 0)
        stop_signal = number;
    if (number == SIGINT || number == SIGTERM) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
}

int pm_trainer_signal(void)
{
    return stop_signal;
}

/* ---- the loop --------------------------------------------------------------------------- */

struct pm_step pm_trainer_step_values(const struct pm_trainer *t, uint64_t step)
{
    uint64_t seed = (uint64_t)t->run.c->run.seed;
    double n = (double)step + 1;

    return (struct pm_step){
        .step = (uint32_t)step,
        .seed_low = (uint32_t)seed, .seed_high = (uint32_t)(seed >> 32),
        .lr = pm_schedule_rate(&t->start.schedule, (int64_t)step), .loss_scale = 1,
        .beta1_power = (float)pow(t->start.betas[0], n),
        .beta2_power = (float)pow(t->start.betas[1], n),
        .ema_decay = pm_averages_decay(&t->run.c->optim, step + 1),
    };
}

/* Whether a checkpoint is due by run.save_every_secs. The run's first one comes earlier. */
static bool is_save_time(const struct pm_trainer *t)
{
    const double every = t->run.c->run.save_every_secs;
    const double due = t->run.saved_step == UINT64_MAX ? fmin(every, FIRST_SAVE_SECONDS) : every;

    return every > 0 && pm_seconds() - t->saving.saved_at >= due;
}

static int one_step(struct pm_trainer *t)
{
    const int slot = (int)(t->run.step % PM_STEP_SLOTS);
    struct pm_batch *batch = NULL;
    struct pm_step values = pm_trainer_step_values(t, t->run.step);
    enum pm_phase_of_run before;
    int err = PM_OK;

    if (t->run.step - t->run.collected == PM_STEP_SLOTS)
        PM_TRY(pm_trainer_collect(t));
    before = pm_phases_enter(&t->phases, PM_RUN_DATA);
    err = pm_loader_next(t->run.loader, &batch);
    pm_phases_enter(&t->phases, before);
    PM_TRY(err);
    PM_TRY(pm_trainer_share_batch(t, batch));
    pm_watch_batch(t->watch, &t->run, slot, batch);
    memcpy(t->loop.records + (size_t)(slot * t->loop.examples), batch->record,
           (size_t)t->loop.examples * sizeof *batch->record);
    pm_trainer_note_phase(t, PM_REPLICA_TRAINING);
    pm_trainer_write_word(t, stop_signal, is_save_time(t), batch);
    PM_TRY(pm_clones_step(t->run.clones, slot, batch, &values));
    t->loop.skipped += (uint64_t)batch->skipped; /* a step that fails is not counted */
    pm_trainer_read_words(t);
    t->loop.skipped_at[slot] = t->loop.skipped;
    t->run.step++;
    if (pm_clones_wait(t->run.clones))
        PM_TRY(pm_trainer_collect(t));
    PM_TRY(pm_trainer_flip(t));
out:
    if (batch)
        pm_loader_release(t->run.loader, batch);
    return err;
}

/* Whether a multiple of `every` lies in the steps that the last step has made. */
static bool is_due(const struct pm_trainer *t, int64_t every)
{
    const uint64_t n = (uint64_t)every;

    return every > 0 && t->run.step / n > t->loop.step_before / n;
}

static int after_step(struct pm_trainer *t)
{
    const struct pm_config_run *run = &t->run.c->run;
    const bool by_time = t->replicas.sync ? t->replicas.save : is_save_time(t);
    const bool saves = is_due(t, run->save_every_steps) || by_time;
    const bool evaluates = is_due(t, t->run.c->eval.every_steps);
    int err = PM_OK;

    PM_TRY(pm_trainer_check_written(t));
    if (pm_seconds() - t->saving.folder_checked_at >= 1) /* the file system may be remote */
        PM_TRY(pm_trainer_check_folder(t));
    PM_TRY(pm_trainer_balance(t));
    if (saves && !(evaluates && t->saving.stop.metric)) {
        PM_TRY(pm_trainer_save(t)); /* else the evaluation saves, with what it counted */
        PM_TRY(pm_trainer_mend_drift(t));
    } else if (is_due(t, run->snapshot_every_steps)) {
        PM_TRY(pm_trainer_drain(t));
        PM_TRY(pm_trainer_snapshot(t));
        PM_TRY(pm_trainer_mend_drift(t));
    }
    if (pm_watch_histograms_due(t->watch, &t->run)) {
        PM_TRY(pm_trainer_drain(t));
        if (t->snapshot.step != t->run.step)
            PM_TRY(pm_trainer_snapshot(t));
        PM_TRY(pm_watch_histograms(t->watch, &t->run, t->snapshot.state));
    }
    if (evaluates) {
        PM_TRY(pm_trainer_evaluate(t));
        if (t->run.saved_step == UINT64_MAX && run->save_every_secs > 0)
            PM_TRY(pm_trainer_save(t)); /* keeps what was just reported */
    }
out:
    return err;
}

static bool is_last(const struct pm_trainer *t)
{
    const int64_t steps = t->run.e->steps;

    return steps > 0 && t->run.step >= (uint64_t)steps;
}

static bool is_paused(const struct pm_trainer *t)
{
    const int64_t step = t->run.c->run.pause_step;

    return step > 0 && t->run.step >= (uint64_t)step && !is_last(t);
}

/* Logs why the run ends before its last step, and where its best checkpoint is. */
static void say_early_stop(const struct pm_trainer *t, struct cJSON *summary)
{
    const char *folder = t->run.c->run.folder;
    struct pm_checkpoint *best = NULL;
    struct pm_str why = { 0 }, where = { 0 };

    pm_early_stop_reason(&t->saving.stop, &why);
    if (!t->saving.best)
        pm_str_add(&where, "run.keep_best is none, so no best checkpoint is kept");
    else if (pm_checkpoint_open(folder, "best", "run.early_stop", &best) == PM_OK)
        pm_str_add(&where, "the checkpoint with the best %s is %s", t->saving.best->name,
                   best->path);
    else
        pm_str_add(&where, "%s", pm_error_text());
    PM_INFO("train", "run.early_stop: %s: training ends at step %llu; %s", why.text,
            (unsigned long long)t->run.step, where.text);
    if (summary)
        cJSON_AddStringToObject(summary, "early_stop", why.text);
    pm_checkpoint_close(&best);
    pm_str_free(&why);
    pm_str_free(&where);
}

/* Whether a signal stops the training: with several processes, after the same step in all. */
static bool stops(const struct pm_trainer *t)
{
    return t->replicas.r ? t->replicas.stop != 0 : stop_signal != 0;
}

static int loop(struct pm_trainer *t)
{
    const int64_t evaluates = t->run.c->eval.every_steps;
    int err = PM_OK;

    PM_TRY(pm_trainer_agree_end(t));
    if (t->run.step == 0 && t->run.c->run.save_first_step)
        PM_TRY(pm_trainer_save(t));
    /* The process may have been killed, or a device lost, between the last save and its
     * evaluation. */
    if (!stops(t) && t->run.step > 0 && evaluates > 0 && t->run.step % (uint64_t)evaluates == 0)
        PM_TRY(pm_trainer_evaluate(t));
    while (!stops(t) && !is_last(t) && !is_paused(t) && !t->saving.stops_early) {
        if (pm_trace_steps_due(&t->trace, &t->run)) {
            PM_TRY(pm_trainer_drain(t));
            PM_TRY(pm_trace_steps_switch(&t->trace, &t->run));
        }
        t->loop.step_before = t->run.step;
        PM_TRY(t->async.on ? pm_trainer_async_step(t) : one_step(t));
        PM_TRY(after_step(t));
    }
    PM_TRY(pm_trainer_async_wait(t));
    PM_TRY(pm_trainer_drain(t));
    PM_TRY(pm_trainer_save(t));
    PM_TRY(pm_trainer_wait_written(t));
    PM_TRY(pm_trace_steps_end(&t->trace, &t->run));
    if (!stops(t) && t->run.c->eval.every_steps > 0 && t->run.step > 0)
        PM_TRY(pm_trainer_evaluate(t));
    PM_TRY(pm_trainer_async_end(t));
out:
    return err;
}

/* Makes clones with the values of the snapshot. */
static int make_again(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_trainer_clones(t));
    PM_TRY(pm_trainer_restore(t));
out:
    return err;
}

/* Resumes from the snapshot, after a device was lost. With several processes, all do it, from that
 * of the chief. A device may be lost again meanwhile. So all processes copy the snapshot before any
 * of them uses a device, and vote after that. */
static int resume_from_snapshot(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_trainer_share_devices(t));
    PM_TRY(pm_trainer_share_start(t));
    PM_TRY(pm_trainer_vote(t, make_again(t)));
    PM_TRY(pm_trainer_check_folder(t));
    if (t->run.evaluated_step > t->run.step)
        t->run.evaluated_step = UINT64_MAX; /* its metrics line is removed */
    PM_TRY(pm_trainer_loader(t));
    t->run.evaluated_step = pm_watch_open(t->watch, &t->run);
    PM_TRY(pm_trainer_agree(t, &t->run.evaluated_step, sizeof t->run.evaluated_step));
    pm_watch_start(t->watch, &t->run);
out:
    return err;
}

static void summarise(const struct pm_trainer *t, struct cJSON *summary)
{
    double seconds = pm_seconds() - t->loop.started_at;
    double images = (double)(t->run.step - t->start.first_step) * t->run.c->run.batch_size;
    char path[4096];

    cJSON_AddNumberToObject(summary, "step", (double)t->run.step);
    if (t->run.step > t->start.first_step) {
        cJSON_AddNumberToObject(summary, "loss", t->loop.loss); /* as in metrics.jsonl */
        cJSON_AddNumberToObject(summary, "l2", t->loop.decay);
    }
    cJSON_AddNumberToObject(summary, "seconds", seconds);
    cJSON_AddNumberToObject(summary, "images_per_second", seconds > 0 ? images / seconds : 0);
    snprintf(path, sizeof path, "%s/checkpoints/step-%06llu.safetensors", t->run.c->run.folder,
             (unsigned long long)t->run.saved_step);
    cJSON_AddStringToObject(summary, "checkpoint", path);
    if (t->run.c->data.on_corrupt == PM_CORRUPT_SKIP)
        cJSON_AddNumberToObject(summary, "skipped", (double)t->loop.skipped);
    if (pm_trainer_lost(t)[0])
        cJSON_AddStringToObject(summary, "lost", pm_trainer_lost(t));
    pm_watch_summarise(t->watch, &t->run, summary);
    if (t->saving.metrics)
        cJSON_AddItemToObject(summary, "metrics", cJSON_Duplicate(t->saving.metrics, true));
}

/* Fails if a validation layer reported a message. It is a bug in this program that some driver may
 * not tolerate. */
static int check_messages(const struct pm_trainer *t)
{
    if (t->run.c->run.validate && pm_device_messages() > 0)
        return pm_fail(PM_EDEVICE,
                       "run.validate: the validation layer reported %llu messages (see above); the "
                       "run is saved",
                       (unsigned long long)pm_device_messages());
    return PM_OK;
}

/* Takes the place of a lost chief. The chief may have saved the last step before it was lost. So
 * the step of the newest checkpoint is read from the run folder. */
static int inherit(struct pm_trainer *t)
{
    int64_t newest;
    int err = PM_OK;

    PM_TRY(pm_run_lock(t->run.c->run.folder, &t->run.lock));
    t->replicas.heir = true;
    newest = pm_checkpoint_newest_step(t->run.c->run.folder);
    t->run.saved_step = newest < 0                       ? UINT64_MAX
                        : (uint64_t)newest > t->run.step ? t->run.step
                                                         : (uint64_t)newest;
out:
    return err;
}

/* Saves the last whole step after another process failed. If the chief is lost, rank 1 does it. */
static void save_survivor(struct pm_trainer *t, int failed_rank)
{
    int err = PM_OK;

    if (t->run.collected != t->run.step)
        return;
    if (failed_rank == 0 && pm_replicas_silent(t->replicas.r) &&
        pm_replicas_rank(t->replicas.r) == 1)
        PM_TRY(inherit(t));
    if (!pm_trainer_is_chief(t))
        return;
    PM_TRY(pm_trainer_save(t));
    PM_TRY(pm_trainer_wait_written(t));
    PM_WARN("train", "step %llu is saved", (unsigned long long)t->run.step);
out:
    if (err < 0)
        PM_WARN("train", "%s", pm_error_text());
}

/* Call it after another process failed, or when a signal leaves no time to end the step. The values
 * are those of the last whole step, which is saved. Returns the result of the run. */
static int survive(struct pm_trainer *t, int err)
{
    char why[1024];
    int rank;

    if (!pm_replicas_failed(t->replicas.r, &rank) || !t->run.clones)
        return err;
    snprintf(why, sizeof why, "%s", pm_error_text());
    if (!t->async.on)
        save_survivor(t, rank);
    else if (pm_trainer_async_survive(t) < 0)
        PM_WARN("train", "%s", pm_error_text());
    if (!pm_replicas_stopped(t->replicas.r))
        return pm_fail(err, "%s", why);
    t->replicas.stop = stop_signal;
    return PM_OK;
}

int pm_train(const struct pm_config *c, struct pm_replicas *replicas, int *signal_number,
             struct cJSON *summary)
{
    struct pm_trainer t = { .run.c = c, .run.replicas = replicas, .losses.failed.clone = -1,
                            .replicas.r = replicas };
    bool paused = false;
    int err = PM_OK;

    *signal_number = 0;
    PM_TRY(pm_trainer_open(&t));
    stop_signal = 0;
    pm_catch_stop_signals(on_signal);
    t.saving.saved_at = t.loop.started_at = pm_seconds();
    pm_phases_start(&t.phases); /* exclude the time of the start from the first step */
    pm_watch_start(t.watch, &t.run);
    pm_replicas_stop_flag(replicas, &stop_signal, answer_seconds);
    if (pm_trainer_goes_alone(&t))
        err = pm_trainer_async_work(&t);
    else
        while ((err = loop(&t)) == PM_ELOST && pm_trainer_rewinds(&t))
            if ((err = pm_trainer_recover(&t, resume_from_snapshot)) < 0)
                break;
    if (err < 0 && replicas)
        err = survive(&t, err);
    if (err < 0 && pm_trainer_check_folder(&t) < 0)
        err = PM_EFAIL; /* the run folder is gone, which explains every failed write */
    PM_TRY(err);
    PM_TRY(check_messages(&t));
    *signal_number = replicas ? t.replicas.stop : stop_signal;
    paused = is_paused(&t);
    pm_watch_stop(t.watch);
    if (*signal_number)
        PM_INFO(
            "train",
            "stopped by a signal at step %llu; the run is saved: run the same command to resume",
            (unsigned long long)t.run.step);
    else if (paused && pm_trainer_is_chief(&t))
        PM_INFO("train", "run.pause_step: training pauses after step %llu of %lld; the run is "
                "saved: run the same command with a larger run.pause_step to go on",
                (unsigned long long)t.run.step, (long long)t.run.e->steps);
    else if (pm_early_stop_due(&t.saving.stop) && !is_last(&t) && pm_trainer_is_chief(&t))
        say_early_stop(&t, summary);
    if (t.loop.skipped)
        PM_WARN("data",
                "%llu damaged %s skipped since step 0 and replaced by other records "
                "(data.on_corrupt)", (unsigned long long)t.loop.skipped,
                pm_plural((double)t.loop.skipped, "record was", "records were"));
    if (!*signal_number && pm_trainer_is_chief(&t))
        pm_trainer_say_end(&t);
    if (summary)
        summarise(&t, summary);
out:
    if (err < 0 && !pm_trainer_is_chief(&t))
        PM_ERROR("train", "%s", pm_error_text());
    pm_watch_end(t.watch, &t.run, err, paused || *signal_number);
    pm_trainer_close(&t);
    return err;
}
