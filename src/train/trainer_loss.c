/* trainer_loss: continues training after a device is lost. A step's random numbers and batches
 * depend only on its number. The steps since the last host snapshot are therefore repeated, and are
 * bit-identical if the same devices compute them.
 *
 * A device is opened again with submissions half as long, because the driver's watchdog causes most
 * losses.
 *
 * With several processes, each has the values of the last whole step in host memory. So no step is
 * repeated. All save it, make their clones again, and share the batch anew.
 *
 * With several devices, a device is left out if it is lost a second time within LAPSE steps, if it
 * hangs, or if it cannot be opened again. The others share the whole batch, so the schedule does
 * not change.
 *
 * A single device has MOST_LOSSES tries, with pauses for it to recover. If it hangs before any
 * program ran on it, it is opened only once more. If a thread is caught in it, it is not opened
 * again. */
#include "train/trainer.h"

#include <string.h>
#include <unistd.h>

enum { MOST_LOSSES = 3, MOST_FIRST_HANGS = 1, LAPSE = 1000 };

/* The number of devices of all processes. */
static int count_devices(const struct pm_trainer *t)
{
    return t->replicas.r ? t->replicas.count : t->run.spec_count;
}

static void add_lost(struct pm_trainer *t, const struct pm_clone_spec *s)
{
    size_t n = strlen(t->losses.text);

    snprintf(t->losses.text + n, sizeof t->losses.text - n, "%sdevices[%d] (%s) at step %llu",
             n ? ", " : "", s->place, s->info.address, (unsigned long long)t->run.step);
}

/* Removes device i. The shares of the others keep their ratios. An unfinished measurement of shares
 * starts again. */
static void leave_out(struct pm_trainer *t, int i, const char *why)
{
    const int others = count_devices(t) - 1;

    PM_WARN("train", "%s; devices[%d], %s (%s), is left out from now on: %d device%s from step "
            "%llu with the whole batch; the next start tries all of them again", why,
            t->run.specs[i].place, t->run.specs[i].info.address, t->run.specs[i].info.name,
            others, others == 1 ? " resumes" : "s resume", (unsigned long long)t->snapshot.step);
    add_lost(t, &t->run.specs[i]);
    t->run.spec_count--;
    memmove(&t->run.specs[i], &t->run.specs[i + 1],
            (size_t)(t->run.spec_count - i) * sizeof *t->run.specs);
    if (!t->replicas.r) /* else pm_trainer_share_devices does it, in all processes */
        pm_trainer_measure_again(t);
}

static unsigned long long saved_up_to(const struct pm_trainer *t)
{
    return t->run.saved_step == UINT64_MAX ? 0 : t->run.saved_step;
}

static int open_again(struct pm_trainer *t, struct pm_clone_spec *s, bool refused, const char *why)
{
    if (s->first_hangs > MOST_FIRST_HANGS)
        return pm_fail(PM_ELOST, "%s; %s (%s) hung %d times before anything ran on it: try another "
                       "version of its driver, a smaller run.segment_ms, or another device; a slow "
                       "one needs a larger run.hang_seconds. The run is saved up to step %llu", why,
                       s->info.address, s->info.name, s->first_hangs, saved_up_to(t));
    if (s->losses > MOST_LOSSES)
        return pm_fail(PM_ELOST,
                       "%s; this was loss number %d of %s (%s), with submissions down to %g ms: is "
                       "the driver or the card broken? The run is saved up to step %llu",
                       why, s->losses, s->info.address, s->info.name, s->segment_ms,
                       saved_up_to(t));
    s->segment_ms = (s->segment_ms > 0 ? s->segment_ms : t->run.c->run.segment_ms) / 2;
    PM_WARN("train",
            "%s; opening devices[%d], %s, again, from step %llu, with submissions of %g ms", why,
            s->place, s->info.address, (unsigned long long)t->snapshot.step, s->segment_ms);
    if (refused) /* a card that resets itself needs seconds */
        sleep((unsigned)s->losses);
    return PM_OK;
}

/* Decides how to recover from a failure; why: its message. */
static int decide(struct pm_trainer *t, const char *why)
{
    struct pm_clone_failure f = t->run.clones ? pm_clones_lost(t->run.clones) : t->losses.failed;
    struct pm_clone_spec *s = &t->run.specs[f.clone < 0 ? 0 : f.clone];
    bool refused = !t->run.clones, several = t->run.spec_count > 1;

    if (f.clone < 0)
        return pm_fail(PM_ELOST,
                       "%s; only this device had the values that all devices need: run the same "
                       "command to resume from the newest checkpoint",
                       why);
    if (s->losses > 0 && t->run.step >= s->lost_at + LAPSE)
        s->losses = 0;
    s->losses++;
    s->first_hangs += f.hung && !f.ran;
    s->lost_at = t->run.step;
    if (several && (f.hung || s->losses > 1))
        leave_out(t, f.clone, why);
    else if (f.caught)
        return pm_fail(PM_ELOST,
                       "%s; the thread that waits for it cannot be ended: run the same command to "
                       "resume from the newest checkpoint",
                       why);
    else
        return open_again(t, s, refused, why);
    return PM_OK;
}

/* Whether another try is needed: a device is lost, or was lost and cannot be opened again. The loss
 * of another process is none. */
static bool is_loss(const struct pm_trainer *t, int err)
{
    int rank;

    if (pm_replicas_failed(t->replicas.r, &rank))
        return false;
    if (err == PM_ELOST)
        return true;
    return (err == PM_EDEVICE || err == PM_EMEMORY) && !t->run.clones &&
           t->losses.failed.clone >= 0 && t->run.specs[t->losses.failed.clone].losses > 0;
}

static void say_parts(const struct pm_trainer *t)
{
    struct pm_str parts = { 0 };

    if (t->replicas.r) {
        if (pm_trainer_is_chief(t))
            pm_trainer_say_replicas(t);
        return;
    }
    for (int i = 0; i < t->run.spec_count; i++)
        pm_str_add(&parts, "%s%s (%d)", i ? ", " : "", t->run.specs[i].info.name,
                   pm_clones_examples(t->run.clones, i));
    PM_WARN("train", "the batch of %d is now on %s", t->run.c->run.batch_size, parts.text);
    pm_str_free(&parts);
}

bool pm_trainer_rewinds(const struct pm_trainer *t)
{
    return !t->replicas.r || (!t->async.on && t->run.clones &&
                              (t->replicas.rewinds || pm_clones_lost_rank(t->run.clones) >= 0));
}

const char *pm_trainer_lost(const struct pm_trainer *t)
{
    return t->replicas.lost ? t->replicas.lost : t->losses.text;
}

/* Whether a device of this process failed, not only one of another process. */
static bool failed_here(const struct pm_trainer *t)
{
    if (!t->replicas.r)
        return true;
    return t->run.clones ? pm_clones_lost(t->run.clones).clone >= 0 : t->losses.failed.clone >= 0;
}

int pm_trainer_vote(struct pm_trainer *t, int err)
{
    struct pm_replicas *r = t->replicas.r;
    const int own = err;
    int *all;
    char why[1024];

    if (!r || (own < 0 && !is_loss(t, own)))
        return own;
    snprintf(why, sizeof why, "%s", pm_error_text());
    all = pm_calloc((size_t)pm_replicas_count(r), sizeof *all);
    PM_TRY(pm_replicas_allgather(r, &own, sizeof own, all));
    if (own < 0)
        PM_TRY(pm_fail(own, "%s", why));
    for (int k = 0; k < pm_replicas_count(r) && err == PM_OK; k++)
        if (all[k] < 0)
            err = pm_fail(PM_ELOST, "rank %d (%s) opens its devices again", k,
                          pm_replicas_host(r, k));
    if (err < 0)
        pm_clones_destroy(&t->run.clones);
out:
    pm_free(all);
    return err;
}

int pm_trainer_recover(struct pm_trainer *t, int (*again)(struct pm_trainer *t))
{
    char why[1024];
    const int before = count_devices(t);
    int err = PM_OK;

    do {
        snprintf(why, sizeof why, "%s", pm_error_text());
        t->replicas.rewinds = false;
        if (t->replicas.r && t->run.clones)
            PM_TRY(pm_trainer_save(t));
        PM_TRY(pm_trainer_wait_written(t)); /* while the watch is open */
        if (failed_here(t))
            PM_TRY(decide(t, why));
        else if (pm_trainer_is_chief(t))
            PM_WARN("train", "%s; all processes wait until it has opened its devices again", why);
        pm_loader_destroy(&t->run.loader);
        pm_watch_leave(t->watch);
        pm_watch_close(t->watch, &t->run);
        pm_evaluator_destroy(&t->saving.evaluator);
        pm_clones_destroy(&t->run.clones);
        err = again(t);
    } while (is_loss(t, err));
    PM_TRY(err);
    if (count_devices(t) < before)
        say_parts(t);
out:
    return err;
}
