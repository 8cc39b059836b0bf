/* trainer_async: asynchronous training (run.sync_replicas false). Each worker makes steps of its
 * own batch. Owners (clones/owner.h) hold the variables: the workers themselves, or processes that
 * do nothing else. Rank 0, the chief, counts the updates of all workers and deals the numbers of
 * batches, each of which decides the records, the random numbers and the learning rate of a step.
 * The chief's run.step is the count, so it can grow by more than 1 in a step.
 *
 * The chief writes and evaluates what it collects from the owners. Values of a lost owner are lost
 * too, so after a failure the chief saves its last snapshot. */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- roles ------------------------------------------------------------------------------- */

void pm_trainer_choose_mode(struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.r;
    struct pm_servers_ranks *ranks = &t->async.link.ranks;
    const int servers = t->run.c->run.parameter_servers;

    t->async.on = r && !t->run.c->run.sync_replicas;
    t->replicas.sync = t->run.replicas = t->async.on ? NULL : r;
    t->run.jumps = t->async.on;
    if (!t->async.on)
        return;
    ranks->workers = pm_replicas_count(r) - servers;
    ranks->owners = servers > 0 ? servers : ranks->workers;
    ranks->first_owner = servers > 0 ? ranks->workers : 0;
}

bool pm_trainer_only_serves(const struct pm_trainer *t)
{
    return t->async.on && pm_replicas_rank(t->replicas.r) >= t->async.link.ranks.workers;
}

bool pm_trainer_goes_alone(const struct pm_trainer *t)
{
    return t->async.on && pm_replicas_rank(t->replicas.r) > 0;
}

/* Checks the keys that only one of the two modes has. */
static int check_mode(const struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    const struct pm_config_run *run = &c->run;

    if (run->sync_replicas && run->startup_delay_steps > 0)
        return pm_fail(PM_ECONFIG,
                       "%s: run.startup_delay_steps: %lld, but the processes make every step "
                       "together: set it to 0, or run.sync_replicas to false",
                       pm_config_source(c, "run.startup_delay_steps"),
                       (long long)run->startup_delay_steps);
    if (run->sync_replicas && run->parameter_servers > 0)
        return pm_fail(PM_ECONFIG,
                       "%s: run.parameter_servers: %d, but in synchronous training every process "
                       "holds all variables: set it to 0, or run.sync_replicas to false",
                       pm_config_source(c, "run.parameter_servers"), run->parameter_servers);
    if (!t->async.on)
        return PM_OK;
    if (t->async.link.ranks.workers < 1)
        return pm_fail(PM_ECONFIG,
                       "%s: run.parameter_servers: %d of %d processes leave none to train: start "
                       "more processes, or set it to at most %d",
                       pm_config_source(c, "run.parameter_servers"), run->parameter_servers,
                       pm_replicas_count(t->replicas.r), pm_replicas_count(t->replicas.r) - 1);
    if (run->balance == PM_BALANCE_AUTO)
        return pm_fail(PM_ECONFIG,
                       "%s: run.balance: \"auto\" shares out one batch, but in asynchronous "
                       "training each process has its own: set it to \"equal\"",
                       pm_config_source(c, "run.balance"));
    if (run->exchange != PM_WIRE_FLOAT32)
        return pm_fail(PM_ECONFIG,
                       "%s: run.exchange: \"bfloat16\" is only available with run.sync_replicas "
                       "true: set it to \"float32\"",
                       pm_config_source(c, "run.exchange"));
    return PM_OK;
}

static int check_aggregate(const struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    const int all = c->run.replicas_to_aggregate, ranks = pm_replicas_count(t->replicas.r);
    const char *where = pm_config_source(c, "run.replicas_to_aggregate");

    if (all <= 0 || (all == ranks && !t->async.on))
        return PM_OK;
    if (t->async.on)
        return pm_fail(PM_ECONFIG,
                       "%s: run.replicas_to_aggregate: %d, but in asynchronous training each "
                       "gradient makes an update: set it to 0, or run.sync_replicas to true",
                       where, all);
    if (all < ranks)
        return pm_fail(PM_ECONFIG,
                       "%s: run.replicas_to_aggregate: %d is less than the %d processes: training "
                       "without the slowest processes is not available. Set it to 0 (all), or to "
                       "a multiple of %d",
                       where, all, ranks, ranks);
    if (all % ranks != 0)
        return pm_fail(PM_ECONFIG,
                       "%s: run.replicas_to_aggregate: %d is not a multiple of the %d %s: set it "
                       "to 0 (all), or to a multiple",
                       where, all, ranks, pm_plural(ranks, "process", "processes"));
    if (c->run.batch_size % (c->run.micro_batches * (all / ranks)) != 0)
        return pm_fail(PM_ECONFIG,
                       "%s: run.replicas_to_aggregate: each process computes %d gradients of a "
                       "step, in %d micro-batches each: run.batch_size, %d, must be a multiple of "
                       "%d",
                       where, all / ranks, c->run.micro_batches, c->run.batch_size,
                       c->run.micro_batches * (all / ranks));
    return PM_OK;
}

int pm_trainer_gradients(const struct pm_trainer *t)
{
    const int all = t->run.c->run.replicas_to_aggregate;

    return all > 0 ? all / pm_replicas_count(t->replicas.r) : 1;
}

int pm_trainer_clones_of_step(const struct pm_trainer *t)
{
    const struct pm_trainer_replicas *x = &t->replicas;

    return t->async.on ? x->of_rank[0] : x->r ? x->count : t->run.spec_count;
}

int pm_trainer_check_mode(const struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(check_mode(t));
    PM_TRY(check_aggregate(t));
out:
    return err;
}

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

/* Runs a step with a batch, and reports it. */
static int run_batch(struct pm_trainer *t, const struct pm_batch *batch)
{
    const struct pm_step values = pm_trainer_step_values(t, batch->step);
    struct pm_step_result r;
    struct pm_tally_view v = { 0 };
    int err = PM_OK;

    t->replicas.began = pm_seconds();
    pm_watch_batch(t->watch, &t->run, 0, batch);
    memcpy(t->loop.records, batch->record, (size_t)t->loop.examples * sizeof *batch->record);
    pm_trainer_note_phase(t, PM_REPLICA_TRAINING);
    PM_TRY(pm_clones_step(t->run.clones, 0, batch, &values));
    PM_TRY(pm_clones_collect(t->run.clones, 0, &r));
    if (r.finite)
        PM_TRY(report(t, PM_ASK_DONE, (uint64_t)batch->skipped));
    pm_trainer_note_time(t);
    if (!pm_trainer_goes_alone(t)) {
        pm_serving_view(t->async.serving, false, &v);
        t->loop.skipped = t->async.skipped + v.skipped;
    }
    PM_TRY(pm_trainer_result(t, &r, 0, batch->step));
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
    return t->snapshot.step == t->run.step ? PM_OK : pm_trainer_snapshot(t);
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

int pm_trainer_async_end(struct pm_trainer *t)
{
    return t->async.on ? pm_replica_inbox_end(t->async.inbox) : PM_OK;
}

void pm_trainer_staleness(struct pm_trainer *t, double *mean, double *most)
{
    struct pm_tally_view v;

    *mean = *most = NAN;
    if (!t->async.serving || pm_trainer_goes_alone(t))
        return;
    pm_serving_view(t->async.serving, true, &v);
    *mean = v.staleness;
    *most = isnan(v.staleness) ? NAN : (double)v.stalest;
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

/* ---- failures and messages --------------------------------------------------------------- */

int pm_trainer_async_survive(struct pm_trainer *t)
{
    const struct pm_keep keep = pm_trainer_keep(t->run.c);
    const uint64_t step = t->snapshot.step;
    struct pm_str state = { 0 };
    int err = PM_OK;

    if (pm_trainer_goes_alone(t))
        return PM_OK;
    if (t->run.saved_step == UINT64_MAX || t->run.saved_step < step) {
        pm_trainer_state(t, &state);
        PM_TRY(pm_trainer_check_folder(t));
        PM_TRY(pm_state_save(t->snapshot.state, t->run.c->run.folder, step, state.text, &keep));
        t->run.saved_step = step;
    }
    PM_WARN("train", "step %llu is saved, the last one whose values the chief has collected; the "
            "training was at step %llu", (unsigned long long)step,
            (unsigned long long)t->run.step);
out:
    pm_str_free(&state);
    return err;
}

void pm_trainer_say_async(const struct pm_trainer *t)
{
    const struct pm_servers_ranks *ranks = &t->async.link.ranks;
    const int workers = ranks->workers, servers = pm_replicas_count(t->replicas.r) - workers;
    struct pm_str who = { 0 };

    for (int k = 0; k < pm_replicas_count(t->replicas.r); k++)
        pm_str_add(&who, "%srank %d (%s)%s", k ? ", " : "", k, pm_replicas_host(t->replicas.r, k),
                   k < workers ? "" : " holds variables");
    PM_INFO("train", "asynchronous: %d %s, each with its own batch of %d; %d %s the variables: %s",
            workers, pm_plural(workers, "process trains", "processes train"),
            t->run.c->run.batch_size, ranks->owners,
            servers > 0 ? pm_plural(servers, "other holds", "others hold")
                        : pm_plural(workers, "holds", "hold"),
            who.text);
    pm_str_free(&who);
}
