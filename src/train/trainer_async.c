/* trainer_async: training in which the processes do not make every step together: asynchronous
 * training, and synchronous training with backups.
 *
 * Asynchronous (run.sync_replicas false): each worker makes steps of its own batch. Owners
 * (clones/owner.h) hold the variables: the workers themselves, or processes that do nothing else.
 * Rank 0, the chief, counts the updates of all workers and assigns the numbers of batches. A
 * number decides the records, the random numbers and the learning rate of a step.
 * The chief's run.step is the count, so it can grow by more than 1 in a step.
 *
 * With backups (run.replicas_to_aggregate below the number of workers, serving.h): each worker
 * computes a gradient of its own batch for each step. The first of them make the update, and the
 * others are dropped.
 *
 * The chief writes and evaluates what it collects from the owners. Values of a lost owner are lost
 * too, so after a failure the chief saves its last snapshot. */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- start and end ----------------------------------------------------------------------- */

void pm_trainer_async_open(struct pm_trainer *t)
{
    struct pm_trainer_async *a = &t->async;
    const int workers = a->link.ranks.workers;

    if (!a->on)
        return;
    /* Rank 0 serves until the servers end, too: they report signals to it. */
    a->inbox = pm_replica_inbox_create(t->replicas.r, pm_trainer_goes_alone(t)
                                                          ? workers
                                                          : pm_replicas_count(t->replicas.r));
    a->link.inbox = a->inbox;
    a->tally = pm_replica_call_create(a->inbox, 0, PM_LINE_TRAINER);
    a->link.tally = a->tally;
    a->numbers = pm_replica_call_create(a->inbox, 0, PM_LINE_LOADER);
}

/* Makes the owner of this process, if it has one. */
static int create_owner(struct pm_trainer *t)
{
    struct pm_trainer_async *a = &t->async;
    const int index = pm_replicas_rank(t->replicas.r) - a->link.ranks.first_owner;
    struct pm_clones_options options;

    if (index < 0)
        return PM_OK;
    pm_experiment_clones(t->run.e, t->run.specs, t->run.spec_count, &options);
    return pm_owner_create(&options, index, a->link.ranks.owners, &a->owner);
}

static int start_serving(struct pm_trainer *t)
{
    struct pm_trainer_async *a = &t->async;
    const int64_t steps = t->run.e->steps;
    int err = PM_OK;

    if (a->owner)
        PM_TRY(pm_state_write(t->snapshot.state, pm_owner_variables(a->owner)));
    PM_TRY(pm_serving_start(&(struct pm_serving_options){
        .ranks = a->link.ranks, .inbox = a->inbox, .owner = a->owner, .first = t->run.step,
        .backups = a->link.backups,
        .limit = steps > 0 ? (uint64_t)steps : UINT64_MAX, .order = getenv("PM_ORDER") },
        &a->serving));
out:
    return err;
}

int pm_trainer_async_begin(struct pm_trainer *t)
{
    int err = PM_OK;

    if (!t->async.on)
        return PM_OK;
    t->async.skipped = t->loop.skipped;
    PM_TRY(create_owner(t));
    PM_TRY(start_serving(t));
    t->async.link.begun = true;
out:
    return err;
}

int pm_trainer_open_server(struct pm_trainer *t)
{
    int err = PM_OK;

    pm_trainer_async_open(t);
    PM_TRY(create_owner(t));
    t->snapshot.state = pm_state_create(pm_owner_variables(t->async.owner));
    PM_TRY(pm_trainer_compare(t));
    PM_TRY(pm_trainer_share_start(t));
    PM_TRY(start_serving(t));
out:
    return err;
}

void pm_trainer_async_close(struct pm_trainer *t)
{
    struct pm_trainer_async *a = &t->async;

    pm_serving_destroy(&a->serving);
    pm_owner_destroy(&a->owner);
    pm_replica_call_destroy(&a->tally);
    pm_replica_call_destroy(&a->numbers);
}

void pm_trainer_async_leave(struct pm_trainer *t)
{
    pm_replica_inbox_destroy(&t->async.inbox);
}

/* ---- requests to the chief --------------------------------------------------------------- */

static int ask(struct pm_replica_call *call, enum pm_ask kind, const struct pm_tally_word *word,
               struct pm_tally_answer *answer)
{
    pm_replica_call_start(call, (unsigned)kind, word, sizeof *word);
    return pm_replica_call_wait(call, answer, sizeof *answer, NULL, NULL);
}

/* Reports to the chief, and sets the count of updates and whether this process stops. */
static int report(struct pm_trainer *t, enum pm_ask kind, uint64_t skipped)
{
    struct pm_trainer_async *a = &t->async;
    const struct pm_tally_word word = { a->link.staleness, skipped, pm_trainer_signal() };
    struct pm_tally_answer answer;
    int err = PM_OK;

    PM_TRY(ask(a->tally, kind, &word, &answer));
    t->run.before = t->run.step;
    t->run.step = t->run.collected = answer.count;
    a->over |= answer.stop != 0;
    if (answer.stop > 0)
        t->replicas.stop = answer.stop;
out:
    return err;
}

bool pm_trainer_draw(void *trainer, uint64_t *step)
{
    struct pm_trainer *t = trainer;
    struct pm_tally_answer answer;

    if (ask(t->async.numbers, PM_ASK_NUMBER, &(struct pm_tally_word){ 0 }, &answer) < 0 ||
        answer.none)
        return false; /* the trainer's next request finds a failure again */
    *step = answer.number;
    return true;
}

/* ---- steps ------------------------------------------------------------------------------- */

static bool has_progress(void *trainer, int *rank)
{
    const struct pm_trainer *t = trainer;
    struct pm_tally_view v;

    pm_serving_view(t->async.serving, false, &v);
    *rank = v.running;
    return v.count > t->run.step || v.running < 0 || v.stop != 0 || pm_trainer_signal() != 0;
}

/* The chief has no batch left: waits for updates of the others. */
static int watch_others(struct pm_trainer *t)
{
    struct pm_tally_view v;
    int err = PM_OK;

    if (!t->async.finished)
        PM_TRY(report(t, PM_ASK_FINISHED, 0));
    t->async.finished = true;
    PM_TRY(pm_replicas_until(t->replicas.r, has_progress, t));
    PM_TRY(report(t, PM_ASK_COUNT, 0));
    pm_serving_view(t->async.serving, false, &v);
    t->saving.stops_early |= v.running < 0; /* no further update comes */
out:
    return err;
}

/* Reports an update, which in training with backups the exchange has done. */
static int note_update(struct pm_trainer *t, const struct pm_batch *batch)
{
    const int64_t steps = t->run.e->steps;

    if (!t->async.link.backups)
        return report(t, PM_ASK_DONE, (uint64_t)batch->skipped);
    t->run.before = t->run.step;
    t->run.step = t->run.collected = t->async.link.step;
    t->async.over |= t->async.link.stop != 0 || (steps > 0 && t->run.step >= (uint64_t)steps);
    if (t->async.link.stop > 0)
        t->replicas.stop = t->async.link.stop;
    return PM_OK;
}

/* Lets further steps be decided: the chief has done everything that needs the values of one. */
static int let_go(struct pm_trainer *t)
{
    if (!t->async.link.backups || pm_trainer_goes_alone(t))
        return PM_OK;
    pm_replica_call_start(t->async.tally, PM_ASK_GO, NULL, 0);
    return pm_replica_call_wait(t->async.tally, NULL, 0, NULL, NULL);
}

/* The rate and the powers of a step. With backups they are those of the update, and the random
 * numbers those of the batch. */
static struct pm_step values_of(const struct pm_trainer *t, const struct pm_batch *batch)
{
    const bool backups = t->async.link.backups > 0;
    struct pm_step s = pm_trainer_step_values(t, backups ? t->run.step : batch->step);
    const uint64_t seed = pm_hash_bytes(&batch->step, sizeof batch->step, 0);

    if (backups) {
        s.seed_low ^= (uint32_t)seed;
        s.seed_high ^= (uint32_t)(seed >> 32);
    }
    return s;
}

/* Runs a step with a batch, and reports it. */
static int run_batch(struct pm_trainer *t, const struct pm_batch *batch)
{
    const struct pm_step values = values_of(t, batch);
    struct pm_step_result r;
    struct pm_tally_view v = { 0 };
    int err = PM_OK;

    t->async.link.step = t->run.step;
    t->async.link.skipped = (uint64_t)batch->skipped;
    PM_TRY(let_go(t));
    t->replicas.began = pm_seconds();
    pm_watch_batch(t->watch, &t->run, 0, batch);
    memcpy(t->loop.records, batch->record, (size_t)t->loop.examples * sizeof *batch->record);
    pm_trainer_note_phase(t, PM_REPLICA_TRAINING);
    PM_TRY(pm_clones_step(t->run.clones, 0, batch, &values));
    PM_TRY(pm_clones_collect(t->run.clones, 0, &r));
    if (r.finite)
        PM_TRY(note_update(t, batch));
    pm_trainer_note_time(t);
    if (!pm_trainer_goes_alone(t)) {
        pm_serving_view(t->async.serving, false, &v);
        t->loop.skipped = t->loop.skipped_at[0] = t->async.skipped + v.skipped;
    }
    PM_TRY(pm_trainer_result(t, &r, 0, values.step));
out:
    return err;
}

int pm_trainer_async_step(struct pm_trainer *t)
{
    struct pm_batch *batch = NULL;
    enum pm_phase_of_run before;
    int err = PM_OK;

    if (t->async.finished)
        return watch_others(t);
    if (t->run.evaluated_step == t->run.step) /* the evaluation took time */
        PM_TRY(pm_clones_gather(t->run.clones));
    before = pm_phases_enter(&t->phases, PM_RUN_DATA);
    err = pm_loader_next(t->run.loader, &batch);
    pm_phases_enter(&t->phases, before);
    PM_TRY(err);
    PM_TRY(batch ? run_batch(t, batch) : watch_others(t));
out:
    if (batch)
        pm_loader_release(t->run.loader, batch);
    return err;
}

int pm_trainer_async_fresh(struct pm_trainer *t)
{
    if (t->snapshot.step != t->run.step)
        return pm_trainer_snapshot(t);
    pm_early_stop_keep(&t->saving.stop); /* an evaluation of this step may have changed it */
    pm_watch_keep(t->watch);
    return PM_OK;
}

static bool all_finished(void *trainer, int *rank)
{
    const struct pm_trainer *t = trainer;
    struct pm_tally_view v;

    pm_serving_view(t->async.serving, false, &v);
    *rank = v.running;
    return v.running < 0;
}

int pm_trainer_async_wait(struct pm_trainer *t)
{
    int err = PM_OK;

    if (!t->async.on)
        return PM_OK;
    pm_serving_stop(t->async.serving);
    PM_TRY(report(t, PM_ASK_FINISHED, 0));
    t->async.finished = true;
    PM_TRY(pm_replicas_until(t->replicas.r, all_finished, t));
    PM_TRY(report(t, PM_ASK_COUNT, 0));
out:
    return err;
}

/* The loader's threads ask the chief for numbers, so they end first. */
int pm_trainer_async_end(struct pm_trainer *t)
{
    if (!t->async.on)
        return PM_OK;
    pm_loader_destroy(&t->run.loader);
    return pm_replica_inbox_end(t->async.inbox);
}

void pm_trainer_note_updates(struct pm_trainer *t, struct pm_watched_step *s)
{
    struct pm_tally_view v;

    if (!t->async.serving || pm_trainer_goes_alone(t))
        return;
    if (t->async.link.backups) {
        s->dropped = pm_serving_dropped(t->async.serving);
        s->workers = t->async.link.ranks.workers;
        return;
    }
    pm_serving_view(t->async.serving, true, &v);
    s->is_async = true;
    s->staleness = v.staleness;
    s->stalest = isnan(v.staleness) ? NAN : (double)v.stalest;
}

/* ---- workers and servers ----------------------------------------------------------------- */

/* Waits for the step at which this worker begins (run.startup_delay_steps). */
static int wait_for_start(struct pm_trainer *t)
{
    enum { PAUSE = 20000 }; /* microseconds */
    const int64_t steps = t->run.e->steps;
    const bool by_rank = strcmp(t->run.c->task, "segmentation") == 0;
    const double delay = (double)t->run.c->run.startup_delay_steps *
                         (by_rank ? pm_replicas_rank(t->replicas.r) : 1);
    const double begin = steps > 0 ? fmin(delay, (double)steps) : delay;

    int err = PM_OK;

    if (begin <= (double)t->run.step)
        return PM_OK;
    while (!t->async.over && (double)t->run.step < begin) {
        usleep(PAUSE);
        PM_TRY(report(t, PM_ASK_COUNT, 0));
    }
    PM_DEBUG("train", "this process begins at step %llu, after a delay of %.0f steps",
             (unsigned long long)t->run.step, begin);
    PM_TRY(pm_clones_gather(t->run.clones));
out:
    return err;
}

/* Makes steps until no batch is left, or all stop. */
static int work(struct pm_trainer *t)
{
    struct pm_batch *batch;
    int err = PM_OK;

    PM_TRY(wait_for_start(t));
    if (!t->async.over)
        PM_TRY(pm_trainer_loader(t));
    while (!t->async.over) {
        PM_TRY(pm_loader_next(t->run.loader, &batch));
        if (!batch)
            break;
        err = run_batch(t, batch);
        pm_loader_release(t->run.loader, batch);
        PM_TRY(err);
    }
    PM_TRY(report(t, PM_ASK_FINISHED, 0));
out:
    return err;
}

/* Serves until all workers have ended. Reports a signal to the chief. */
static int serve(struct pm_trainer *t)
{
    enum { PAUSE = 20000 }; /* microseconds */
    bool reported = false;
    int err = PM_OK;

    while (!pm_serving_ended(t->async.serving)) {
        usleep(PAUSE);
        pm_replicas_note(t->replicas.r, PM_REPLICA_TRAINING,
                         pm_serving_updates(t->async.serving));
        if (pm_trainer_signal() == 0 || reported)
            continue;
        PM_TRY(report(t, PM_ASK_COUNT, 0));
        reported = true;
    }
    PM_TRY(report(t, PM_ASK_COUNT, 0)); /* another process may have received a signal */
out:
    return err;
}

int pm_trainer_async_work(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_trainer_only_serves(t) ? serve(t) : work(t));
    PM_TRY(pm_trainer_async_end(t));
out:
    return err;
}

/* ---- failures ---------------------------------------------------------------------------- */

int pm_trainer_async_survive(struct pm_trainer *t)
{
    const uint64_t step = t->snapshot.step;
    int err = PM_OK;

    if (pm_trainer_goes_alone(t))
        return PM_OK;
    PM_TRY(pm_trainer_wait_written(t));
    if (t->run.saved_step == UINT64_MAX || t->run.saved_step < step) {
        PM_TRY(pm_trainer_check_folder(t));
        PM_TRY(pm_trainer_write(t));
        PM_TRY(pm_trainer_wait_written(t));
    }
    PM_WARN("train", "step %llu is saved, the last one whose values the chief has collected; the "
            "training was at step %llu", (unsigned long long)step,
            (unsigned long long)t->run.step);
out:
    return err;
}
