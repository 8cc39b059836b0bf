/* rank_states: each rank sends its state to every other rank once a second, also while its trainer
 * computes, evaluates or saves. It sends a failure at once. A rank that sends nothing for
 * run.hang_seconds is lost. */
#include "replicas/replicas_private.h"

#include <math.h>
#include <string.h>

static const double interval = 1; /* seconds */

static const char *phase_text(int phase)
{
    static const char *const texts[] = {
        [PM_REPLICA_START] = "starting", [PM_REPLICA_TRAINING] = "training",
        [PM_REPLICA_EVALUATION] = "in evaluation", [PM_REPLICA_SAVING] = "saving",
    };

    return phase >= 0 && phase < (int)PM_COUNT(texts) ? texts[phase] : "busy";
}

void pm_rank_states_describe(const struct pm_replicas *r, int rank, char *out, size_t size)
{
    const struct rank *k = &r->ranks[rank];
    const double now = pm_seconds(), silent = now - k->heard_at;
    int n = snprintf(out, size, "rank %d (%s): step %llu, %s since %.0f s", rank, k->host,
                     (unsigned long long)k->state.step, phase_text(k->state.phase),
                     k->state.since + silent);

    if (silent > 3 * interval && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, "; nothing was received from it for %.0f s", silent);
}

double pm_rank_states_due(const struct pm_replicas *r)
{
    return r->state_at + interval - pm_seconds();
}

/* Takes a state that has arrived. */
static void take(struct pm_replicas *r, int i)
{
    struct rank *k = &r->ranks[i];
    char text[640];

    pthread_mutex_lock(&r->lock);
    k->state = k->incoming;
    k->state.text[sizeof k->state.text - 1] = '\0';
    k->heard_at = pm_seconds();
    r->state_due |= k->state.asks != 0;
    if (k->state.failure < 0 && !r->failure) {
        snprintf(text, sizeof text, "rank %d (%s): %s", i, k->host, k->state.text);
        pm_replicas_record(r, k->state.failure, i, text);
    }
    pthread_mutex_unlock(&r->lock);
}

static int receive(struct pm_replicas *r, int i, bool *moved)
{
    struct rank *k = &r->ranks[i];

    if (k->receiving >= 0) {
        if (!r->row->finished(r->transport, k->receiving))
            return 0;
        k->receiving = -1;
        take(r, i);
        *moved = true;
    }
    k->receiving = r->row->receive(r->transport, i, TAG_STATE, &k->incoming, sizeof k->incoming);
    return k->receiving < 0 ? -1 : 0;
}

/* Sends the state to a rank, unless the former one is still under way to it. */
static int send(struct pm_replicas *r, int i)
{
    struct rank *k = &r->ranks[i];

    if (k->sending >= 0) {
        if (!r->row->finished(r->transport, k->sending))
            return 0;
        k->sending = -1;
        pthread_mutex_lock(&r->lock);
        k->knows = k->outgoing.leaving != 0;
        pthread_mutex_unlock(&r->lock);
    }
    if (!k->due || k->knows)
        return 0;
    pthread_mutex_lock(&r->lock);
    k->outgoing = r->own;
    k->outgoing.since = pm_seconds() - r->phase_at;
    k->outgoing.asks = k->asks;
    pthread_mutex_unlock(&r->lock);
    k->due = k->asks = false;
    k->sending = pm_transfer_send(r, i, TAG_STATE, &k->outgoing, sizeof k->outgoing);
    return k->sending < 0 ? -1 : 0;
}

/* Records the loss of a rank that has sent nothing for too long. Time in which this process itself
 * was paused, for example by Ctrl-Z, does not count. */
static void check_silence(struct pm_replicas *r)
{
    const double now = pm_seconds(), pause = now - r->checked_at - interval;
    char who[256], text[480];

    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < r->count && r->checked_at > 0 && pause > interval; i++)
        r->ranks[i].heard_at = fmin(now, r->ranks[i].heard_at + pause);
    r->checked_at = now;
    for (int i = 0; i < r->count && r->hang_seconds > 0; i++)
        if (i != r->rank && now - r->ranks[i].heard_at > r->hang_seconds) {
            pm_rank_states_describe(r, i, who, sizeof who);
            snprintf(text, sizeof text,
                     "%s (run.hang_seconds): its process, its host or the network is down", who);
            pm_replicas_record(r, PM_ELOST, i, text);
        }
    pthread_mutex_unlock(&r->lock);
}

int pm_rank_states_move(struct pm_replicas *r, bool *moved)
{
    bool due, asks;

    pthread_mutex_lock(&r->lock);
    due = r->state_due || pm_rank_states_due(r) <= 0;
    asks = r->own.asks != 0;
    r->state_due = false;
    r->own.asks = 0;
    if (due)
        r->state_at = pm_seconds();
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->count; i++) {
        if (i == r->rank)
            continue;
        r->ranks[i].due |= due;
        r->ranks[i].asks |= asks;
        if (receive(r, i, moved) < 0 || send(r, i) < 0)
            return -1;
    }
    if (due)
        check_silence(r);
    return 0;
}

/* ---- for the trainer's thread ------------------------------------------------------------ */

void pm_replicas_note(struct pm_replicas *r, enum pm_replica_phase phase, uint64_t step)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    if (r->own.phase != (int32_t)phase)
        r->phase_at = pm_seconds();
    r->own.phase = (int32_t)phase;
    r->own.step = step;
    pthread_mutex_unlock(&r->lock);
}

void pm_replicas_limits(struct pm_replicas *r, double hang_seconds, double step_seconds)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->hang_seconds = hang_seconds;
    r->step_seconds = step_seconds;
    pthread_mutex_unlock(&r->lock);
}

void pm_replicas_stop_flag(struct pm_replicas *r, const volatile sig_atomic_t *stop,
                           double seconds)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = stop;
    r->stop_seconds = seconds;
    pthread_mutex_unlock(&r->lock);
}
