/* trainer_mode: how several processes train together, by the config: all make every step together,
 * or each makes steps of its own (trainer_async.c). */
#include "train/trainer.h"

void pm_trainer_choose_mode(struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.r;
    struct pm_servers_ranks *ranks = &t->async.link.ranks;
    const int servers = t->run.c->run.parameter_servers;

    const int needed = t->run.c->run.replicas_to_aggregate;
    const bool backups = r && t->run.c->run.sync_replicas && needed > 0 &&
                         needed < pm_replicas_count(r) - servers;

    t->async.on = r && (backups || !t->run.c->run.sync_replicas);
    t->async.link.backups = backups ? needed : 0;
    t->async.link.signal = pm_trainer_signal;
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
    if (run->sync_replicas && run->parameter_servers > 0 && !t->async.on)
        return pm_fail(PM_ECONFIG,
                       "%s: run.parameter_servers: %d, but in synchronous training every process "
                       "holds all variables: set it to 0, run.sync_replicas to false, or "
                       "run.replicas_to_aggregate to fewer than all workers",
                       pm_config_source(c, "run.parameter_servers"), run->parameter_servers);
    if (!t->async.on)
        return PM_OK;
    if (run->pause_step > 0)
        return pm_fail(PM_ECONFIG,
                       "%s: run.pause_step: %lld, but only processes that make every step together "
                       "can pause: set it to 0",
                       pm_config_source(c, "run.pause_step"), (long long)run->pause_step);
    if (t->async.link.ranks.workers < 1)
        return pm_fail(PM_ECONFIG,
                       "%s: run.parameter_servers: %d of %d processes leave none to train: start "
                       "more processes, or set it to at most %d",
                       pm_config_source(c, "run.parameter_servers"), run->parameter_servers,
                       pm_replicas_count(t->replicas.r), pm_replicas_count(t->replicas.r) - 1);
    if (run->balance == PM_BALANCE_AUTO)
        return pm_fail(PM_ECONFIG,
                       "%s: run.balance: \"auto\" shares out one batch, but in asynchronous "
                       "training, and with backups, each process has its own: set it to "
                       "\"equal\"",
                       pm_config_source(c, "run.balance"));
    if (run->exchange != PM_WIRE_FLOAT32)
        return pm_fail(PM_ECONFIG,
                       "%s: run.exchange: \"bfloat16\" is only available if all processes make "
                       "every step together: set it to \"float32\"",
                       pm_config_source(c, "run.exchange"));
    return PM_OK;
}

/* Each worker computes a part of the size of the update's. */
static int check_backups(const struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;

    if (c->run.batch_size % t->async.link.backups != 0)
        return pm_fail(PM_ECONFIG,
                       "%s: run.batch_size: %d is not a multiple of run.replicas_to_aggregate, %d: "
                       "each process computes an equal part of it",
                       pm_config_source(c, "run.batch_size"), c->run.batch_size,
                       t->async.link.backups);
    if (c->data.folders || c->data.repeat_threshold > 0)
        return pm_fail(PM_ECONFIG,
                       "%s: run.replicas_to_aggregate: %d is less than the number of workers, "
                       "which is not available with data.folders and data.repeat_threshold: set "
                       "it to 0",
                       pm_config_source(c, "run.replicas_to_aggregate"), t->async.link.backups);
    return PM_OK;
}

static int check_aggregate(const struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    const int all = c->run.replicas_to_aggregate, ranks = pm_replicas_count(t->replicas.r);
    const char *where = pm_config_source(c, "run.replicas_to_aggregate");

    if (all <= 0 || (all == ranks && !t->async.on))
        return PM_OK;
    if (t->async.link.backups)
        return check_backups(t);
    if (t->async.on)
        return pm_fail(PM_ECONFIG,
                       "%s: run.replicas_to_aggregate: %d, but in asynchronous training each "
                       "gradient makes an update: set it to 0, or run.sync_replicas to true",
                       where, all);
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

    return all > 0 && !t->async.on ? all / pm_replicas_count(t->replicas.r) : 1;
}

int pm_trainer_batch(const struct pm_trainer *t)
{
    const int backups = t->async.link.backups;

    return t->run.c->run.batch_size / (backups ? backups : 1);
}

int pm_trainer_clones_of_step(const struct pm_trainer *t)
{
    const struct pm_trainer_replicas *x = &t->replicas;
    const int backups = t->async.link.backups;

    if (t->async.on)
        return x->of_rank[0] * (backups ? backups : 1);
    return x->r ? x->count : t->run.spec_count;
}

int pm_trainer_check_mode(const struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(check_mode(t));
    PM_TRY(check_aggregate(t));
out:
    return err;
}

void pm_trainer_say_async(const struct pm_trainer *t)
{
    const struct pm_servers_ranks *ranks = &t->async.link.ranks;
    const int workers = ranks->workers, servers = pm_replicas_count(t->replicas.r) - workers;
    struct pm_str who = { 0 };
    char how[96] = "asynchronous";

    if (t->async.link.backups)
        snprintf(how, sizeof how, "the first %d gradients make a step", t->async.link.backups);
    for (int k = 0; k < pm_replicas_count(t->replicas.r); k++)
        pm_str_add(&who, "%srank %d (%s)%s", k ? ", " : "", k, pm_replicas_host(t->replicas.r, k),
                   k < workers ? "" : " holds variables");
    PM_INFO("train", "%s: %d %s, each with its own batch of %d; %d %s the variables: %s", how,
            workers, pm_plural(workers, "process trains", "processes train"),
            pm_trainer_batch(t), ranks->owners,
            servers > 0 ? pm_plural(servers, "other holds", "others hold")
                        : pm_plural(workers, "holds", "hold"),
            who.text);
    pm_str_free(&who);
}
