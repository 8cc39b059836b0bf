/* exchange_thread: the only thread that calls the transport. While messages are under way it polls
 * and sleeps between polls: 50 us after something moved, then longer, up to 1 ms. After a longer
 * time in which no job moves, it sleeps for up to 1/32 of that time, at most 8 ms. So a wait costs
 * less than 1 % of a core and gets at most 3 % longer. Without a job the thread sleeps for 50 ms,
 * or until a job comes. It does not sleep longer, because other ranks may ask for this rank's
 * state. */
#include "replicas/replicas_private.h"

#include <pumice/config.h>

#include <math.h>
#include <string.h>
#include <time.h>

_Static_assert((int)PM_MOST_PROCESSES == (int)PM_MOST_RANKS, "transport.h includes no header");

static const double shortest_nap = 50e-6, longest_nap = 1e-3; /* seconds */
static const double quiet_nap = 8e-3, idle_nap = 50e-3;       /* seconds */
static const double first_warning = 10, second_warning = 60, later_warnings = 300; /* seconds */
enum { WARNING_STEPS = 20 }; /* no warning before the time of so many steps */

/* ---- failures --------------------------------------------------------------------------- */

void pm_replicas_record(struct pm_replicas *r, int failure, int rank, const char *text)
{
    if (r->failure)
        return;
    r->failure = failure;
    r->failed_rank = rank;
    pm_printable(r->failure_text, sizeof r->failure_text, text); /* as pm_fail does */
    pthread_cond_broadcast(&r->moved);
}

void pm_replicas_record_transport(struct pm_replicas *r)
{
    char text[480];

    snprintf(text, sizeof text,
             "the connection to another rank failed (%s): is its process still running, and its "
             "network up?",
             r->row->error(r->transport));
    pthread_mutex_lock(&r->lock);
    pm_replicas_record(r, PM_EDEVICE, -1, text);
    pthread_mutex_unlock(&r->lock);
}

/* ---- the thread -------------------------------------------------------------------------- */

void pm_replicas_wait(struct pm_replicas *r, pthread_cond_t *condition, double seconds)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    const double end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds;

    t.tv_sec = (time_t)floor(end);
    t.tv_nsec = (long)(1e9 * (end - floor(end)));
    pthread_cond_timedwait(condition, &r->lock, &t);
}

/* Removes finished jobs from the list. The lock is held. */
static void remove_finished(struct pm_replicas *r, const struct pm_job *finished)
{
    for (struct pm_job **at = &r->jobs; *at;)
        if (*at == finished)
            *at = (*at)->next;
        else
            at = &(*at)->next;
}

/* Moves every job once. Only this thread removes jobs, and new ones are appended, so `next` can be
 * followed; it is read under the lock. */
static int move_jobs(struct pm_replicas *r, bool *moved)
{
    struct pm_job *j, *next;

    pthread_mutex_lock(&r->lock);
    j = r->failure ? NULL : r->jobs;
    pthread_mutex_unlock(&r->lock);
    for (; j; j = next) {
        const int done = j->move(r, j, moved);

        if (done < 0)
            return -1;
        pthread_mutex_lock(&r->lock);
        next = r->failure ? NULL : j->next;
        if (done) {
            remove_finished(r, j);
            j->finished = true;
            pthread_cond_broadcast(&r->moved);
        }
        pthread_mutex_unlock(&r->lock);
    }
    return 0;
}

/* Whether nothing can happen until a job comes or states are due. The lock is held. */
static bool is_idle(const struct pm_replicas *r)
{
    return !r->jobs && !r->failure && !r->state_due && !r->own.leaving;
}

/* Returns the nap after one of `pause` seconds. quiet: seconds since a job moved. */
static double next_nap(double pause, double quiet)
{
    return fmin(2 * pause, fmax(longest_nap, fmin(quiet / 32, quiet_nap)));
}

/* After a failure the jobs are dropped, and only states move. */
static void work(struct pm_replicas *r)
{
    double pause = shortest_nap, moved_at = pm_seconds();

    pthread_mutex_lock(&r->lock);
    while (!r->quit) {
        bool moved = false, job_moved = false;
        int polled;

        if (r->failure && r->jobs) {
            r->jobs = NULL;
            pthread_cond_broadcast(&r->moved);
        }
        pthread_mutex_unlock(&r->lock);
        polled = r->row->poll(r->transport);
        if (polled < 0 || pm_rank_states_move(r, &moved) < 0 ||
            move_jobs(r, &job_moved) < 0)
            pm_replicas_record_transport(r);
        pthread_mutex_lock(&r->lock);
        if (job_moved)
            moved_at = pm_seconds();
        if (moved || job_moved || polled > 0) {
            pause = shortest_nap;
        } else if (!r->quit) {
            const double idle = fmax(pause, fmin(pm_rank_states_due(r), idle_nap));

            pm_replicas_wait(r, &r->wake, is_idle(r) ? idle : pause);
            pause = next_nap(pause, pm_seconds() - moved_at);
        }
    }
    pthread_mutex_unlock(&r->lock);
}

static void *run(void *arg)
{
    struct pm_replicas *r = arg;
    char why[480] = "";
    int rank = 0, count = 1;

    r->transport = r->row->open(r->ctx, &rank, &count, why, sizeof why);
    pthread_mutex_lock(&r->lock);
    r->rank = rank;
    r->count = count;
    r->opened = true;
    if (r->transport && count > PM_MOST_RANKS)
        snprintf(why, sizeof why, "%d processes were started, but the most is %d", count,
                 PM_MOST_RANKS);
    if (why[0] || !r->transport) {
        pm_replicas_record(r, PM_ECONFIG, -1, why);
    } else {
        r->ranks = pm_calloc((size_t)count, sizeof *r->ranks);
        for (int i = 0; i < count; i++)
            r->ranks[i].receiving = r->ranks[i].sending = -1, r->ranks[i].heard_at = pm_seconds();
    }
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
    if (!r->transport)
        return NULL;
    if (r->ranks)
        work(r);
    r->row->close(r->transport, r->orderly);
    return NULL;
}

int pm_exchange_thread_start(struct pm_replicas *r)
{
    pthread_condattr_t a;
    int code, err = PM_OK;

    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, &a);
    pthread_cond_init(&r->moved, &a);
    pthread_condattr_destroy(&a);
    code = pthread_create(&r->thread, NULL, run, r);
    if (code != 0)
        return pm_fail(PM_EFAIL, "replicas: the exchange thread cannot be created: %s",
                       strerror(code));
    pthread_mutex_lock(&r->lock);
    while (!r->opened)
        pthread_cond_wait(&r->moved, &r->lock);
    if (r->failure)
        err = pm_fail(r->failure, "replicas: %s", r->failure_text);
    pthread_mutex_unlock(&r->lock);
    return err;
}

void pm_exchange_thread_end(struct pm_replicas *r)
{
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->wake);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->lock);
}

/* ---- jobs, for the trainer's thread ------------------------------------------------------ */

void pm_job_submit(struct pm_replicas *r, struct pm_job *j)
{
    struct pm_job **at;

    j->next = NULL;
    j->finished = false;
    j->submitted = true;
    atomic_store(&j->waiting, -1);
    pthread_mutex_lock(&r->lock);
    for (at = &r->jobs; *at; at = &(*at)->next)
        ;
    *at = j;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

/* The lock is held; it is released while the line is written. */
static void warn(struct pm_replicas *r, int rank)
{
    char text[256];

    if (rank < 0)
        return;
    pm_rank_states_describe(r, rank, text, sizeof text);
    pthread_mutex_unlock(&r->lock);
    PM_WARN("replicas", "waiting for %s", text);
    pthread_mutex_lock(&r->lock);
}

/* A signal asks this process to end, and a launcher kills it soon after. So this process asks the
 * others for their states. A rank that does not answer is lost. A rank that answers may have
 * received the signal, too. Then the step may not end in time, and this process stops waiting. The
 * lock is held. */
static void heed_signal(struct pm_replicas *r, int rank)
{
    const double now = pm_seconds();
    char who[256], text[400];

    if (r->asked_at == 0) {
        r->asked_at = now;
        r->own.asks = r->own.stopping = 1;
        r->state_due = true;
        pthread_cond_broadcast(&r->wake);
    }
    if (rank < 0 || now - r->asked_at < r->stop_seconds)
        return;
    pm_rank_states_describe(r, rank, who, sizeof who);
    if (r->ranks[rank].heard_at < r->asked_at) {
        snprintf(text, sizeof text, "a signal ends the training, and %s does not answer", who);
        pm_replicas_record(r, PM_ELOST, rank, text);
    } else if (r->ranks[rank].state.stopping && now - r->asked_at > 2 * r->stop_seconds) {
        snprintf(text, sizeof text, "a signal ends the training before %s has ended its step", who);
        r->stopped = true;
        pm_replicas_record(r, PM_EFAIL, -1, text);
    }
}

/* Waits until done returns true, or something failed. The lock is held. */
static void wait_until(struct pm_replicas *r, bool (*done)(void *ctx, int *rank), void *ctx)
{
    const double began = pm_seconds();
    double warn_at = fmax(first_warning, WARNING_STEPS * r->step_seconds);
    int rank = -1;

    while (!done(ctx, &rank) && !r->failure) {
        pm_replicas_wait(r, &r->moved, 0.1);
        const bool ended = done(ctx, &rank);

        if (r->stop && *r->stop && !ended)
            heed_signal(r, rank);
        if (pm_seconds() - began < warn_at || ended)
            continue;
        warn(r, rank);
        warn_at = warn_at < second_warning ? second_warning : warn_at + later_warnings;
    }
}

int pm_replicas_until(struct pm_replicas *r, bool (*done)(void *ctx, int *rank), void *ctx)
{
    int rank = -1, err = PM_OK;

    pthread_mutex_lock(&r->lock);
    wait_until(r, done, ctx);
    if (!done(ctx, &rank))
        err = pm_fail(r->failure, "%s", r->failure_text);
    pthread_mutex_unlock(&r->lock);
    return err;
}

static bool job_finished(void *job, int *rank)
{
    const struct pm_job *j = job;

    *rank = atomic_load(&j->waiting);
    return j->finished;
}

int pm_job_wait(struct pm_replicas *r, struct pm_job *j)
{
    int err = PM_OK;

    pthread_mutex_lock(&r->lock);
    wait_until(r, job_finished, j);
    while (!j->finished && r->jobs) /* until the exchange thread has dropped it */
        pm_replicas_wait(r, &r->moved, 0.1);
    j->submitted = false;
    if (!j->finished)
        err = pm_fail(r->failure, "%s", r->failure_text);
    pthread_mutex_unlock(&r->lock);
    return err;
}

void pm_job_abandon(struct pm_replicas *r, struct pm_job *j)
{
    char text[640];

    snprintf(text, sizeof text, "%s", pm_error_text());
    pthread_mutex_lock(&r->lock);
    if (j->submitted && !j->finished)
        pm_replicas_record(r, PM_EFAIL, -1, text);
    while (j->submitted && !j->finished && r->jobs)
        pm_replicas_wait(r, &r->moved, 0.1);
    j->submitted = false;
    pthread_mutex_unlock(&r->lock);
}

void pm_replicas_release(struct pm_replicas *r, void (*release)(void *), void *object)
{
    bool now;

    pthread_mutex_lock(&r->lock);
    now = !r->failure;
    if (!now) {
        PM_GROW(r->kept, r->kept_count, r->kept_capacity);
        r->kept[r->kept_count++] = (struct pm_kept){ release, object };
    }
    pthread_mutex_unlock(&r->lock);
    if (now)
        release(object);
}

void pm_job_free(struct pm_replicas *r, void *memory)
{
    pm_replicas_release(r, pm_free, memory);
}
