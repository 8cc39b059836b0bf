/* settle: waits for a lost device's work to end. A driver's function for this has no time limit,
 * and in some drivers it never returns after a loss. So a separate thread calls it, which may be
 * left behind. */
#include "device/pipelines.h"

#include <math.h>
#include <time.h>

struct settling {
    void (*wait)(void *ctx);
    void *ctx; /* owned */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int holders; /* threads that still use it; the last one frees it */
    bool done;
};

static void release(struct settling *s) /* Call it with the lock held. */
{
    bool last = --s->holders == 0;

    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    pm_free(s->ctx);
    pm_free(s);
}

static void *settle(void *ctx)
{
    struct settling *s = ctx;

    s->wait(s->ctx);
    pthread_mutex_lock(&s->lock);
    s->done = true;
    pthread_cond_broadcast(&s->changed);
    release(s);
    return NULL;
}

static struct timespec in_seconds(double seconds)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)(1e9 * (seconds - floor(seconds)));
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

bool pm_settles(void (*wait)(void *ctx), void *ctx, double seconds)
{
    struct settling *s = pm_calloc(1, sizeof *s);
    struct timespec until = in_seconds(seconds);
    pthread_t thread;
    bool done;

    *s = (struct settling){ .wait = wait, .ctx = ctx, .holders = 2 };
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    pthread_mutex_lock(&s->lock);
    if (pthread_create(&thread, NULL, settle, s) != 0) {
        s->holders = 1;
        release(s);
        return false;
    }
    pthread_detach(thread);
    while (!s->done && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0)
        ;
    done = s->done;
    release(s);
    return done;
}
