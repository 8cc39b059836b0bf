/* compile_pipelines: compiles pipelines, several at a time.
 *
 * A driver's compiler has no time limit and cannot be interrupted. So separate threads call it, and
 * the waiting thread gives up if no pipeline finished for options.compile_seconds. Then the device
 * counts as lost. The threads stuck in the driver, and all memory that they may use, remain until
 * the process ends. */
#include "device/pipelines.h"

#include <pumice/thread.h>

#include <math.h>
#include <string.h>
#include <time.h>

/* ---- one pipeline ------------------------------------------------------------------- */

/* Returns what the device lacks for the module, or NULL. Drivers do not report it: they
 * misbehave. */
static const char *lacks(const struct pm_shader_device *d, const struct pm_module_info *m)
{
    const struct pm_caps *c = &d->base.info.caps;

    for (int i = 0; i < 3; i++)
        if (m->local[i] > c->max_workgroup_size[i])
            return "workgroups of that size";
    return (uint64_t)m->local[0] * m->local[1] * m->local[2] > c->max_workgroup_invocations
               ? "workgroups of that size"
         : m->shared_bytes > c->shared_bytes               ? "so much shared memory"
         : m->int64 && !c->int64                           ? "64-bit integers"
         : m->float64                                      ? "64-bit floats"
         : m->float16 && !c->float16                       ? "16-bit floats"
         : m->storage16 && !c->storage16                   ? "16-bit storage"
         : m->subgroup_arithmetic && !c->subgroup_arithmetic ? "subgroup arithmetic"
         : m->coopmat && c->coopmat.m == 0                 ? "cooperative matrices"
         : d->pipelines.ops->lacks                         ? d->pipelines.ops->lacks(d, m)
                                                           : NULL;
}

static int compile(struct pm_shader_device *d, struct pm_pipeline *p)
{
    int err = PM_OK;
    uint32_t *words = NULL;
    size_t count;
    const char *missing;
    const struct pm_module_info *m = &p->module;

    PM_TRY(pm_spirv_freeze(p->shader->words, p->shader->bytes / 4, p->spec, p->specs, p->present,
                           &words, &count, &p->module));
    if (m->push_bytes && m->push_bytes != p->push_bytes)
        PM_TRY(pm_fail(PM_EFAIL, "its push block has %u bytes, the row's buffers and params %u",
                       m->push_bytes, p->push_bytes));
    if ((missing = lacks(d, m)))
        PM_TRY(pm_fail(PM_EDEVICE, "the device lacks %s (workgroup %ux%ux%u, %u bytes shared)",
                       missing, m->local[0], m->local[1], m->local[2], m->shared_bytes));
    PM_TRY(d->pipelines.ops->compile(d, p, words, count));
    p->compiled = true;
out:
    pm_free(words);
    return err;
}

/* ---- several, with a limit ---------------------------------------------------------- */

/* Data that the threads share. Freed when all of them have ended; otherwise it is kept with the
 * device. */
struct pm_compiling {
    struct pm_shader_device *d;
    struct pm_pipeline **list;
    bool *ready;
    size_t count, next, done; /* these and ready: under the lock */
    bool stop;                /* start no further pipeline */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void compile_one(struct pm_shader_device *d, struct pm_pipeline *p)
{
    double start = pm_seconds();

    p->failed = compile(d, p);
    if (p->failed < 0)
        snprintf(p->why, sizeof p->why, "%s", pm_error_text());
    PM_TRACE(d->pipelines.ops->log, "compiled %s in %.1f ms", p->shader->name,
             1000 * (pm_seconds() - start));
}

static void *compile_some(void *ctx)
{
    struct pm_compiling *c = ctx;

    pthread_mutex_lock(&c->lock);
    while (c->next < c->count && !c->stop) {
        size_t i = c->next++;

        pthread_mutex_unlock(&c->lock);
        compile_one(c->d, c->list[i]);
        pthread_mutex_lock(&c->lock);
        c->ready[i] = true;
        c->done++;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static struct pm_compiling *start(struct pm_shader_device *d)
{
    struct pm_pipelines *all = &d->pipelines;
    struct pm_compiling *c = pm_calloc(1, sizeof *c);
    pthread_condattr_t clock;

    c->d = d;
    c->list = pm_calloc(all->count + 1, sizeof *c->list);
    c->ready = pm_calloc(all->count + 1, sizeof *c->ready);
    for (size_t i = 0; i < all->count; i++)
        if (!all->list[i]->compiled && !all->list[i]->failed)
            c->list[c->count++] = all->list[i];
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &clock);
    pthread_condattr_destroy(&clock);
    return c;
}

static void finish(struct pm_compiling *c)
{
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    pm_free(c->ready);
    pm_free(c->list);
    pm_free(c);
}

/* Returns the name of the first pipeline that is being compiled. */
static const char *under_way(const struct pm_compiling *c)
{
    for (size_t i = 0; i < c->next; i++)
        if (!c->ready[i])
            return c->list[i]->shader->name;
    return "none";
}

static int give_up(struct pm_compiling *c, double idle, double limit)
{
    struct pm_shader_device *d = c->d;
    char why[300];

    c->stop = true;
    pm_device_catch(&d->base);
    snprintf(why, sizeof why, "its driver finished no shader for %.3g seconds, %zu of %zu are "
             "compiled and %s is not (run.compile_seconds=%g; raise it if the driver is only slow, "
             "else try another version of the driver)", idle, c->done, c->count, under_way(c),
             limit);
    return pm_shader_device_lose(d, why);
}

/* Waits until all are compiled, or until none was finished for too long. The caller holds the
 * lock. */
static int await(struct pm_compiling *c)
{
    const struct pm_device *d = &c->d->base;
    double limit = d->options.compile_seconds > 0 ? d->options.compile_seconds : 600;
    double begun = pm_seconds(), every = fmin(10, limit / 4), next = begun + every;
    struct pm_timeout timeout;
    struct timespec until;

    pm_timeout_start(&timeout, c->done);
    while (c->done < c->count) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(1e9 * fmin(0.2, every));
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&c->changed, &c->lock, &until);
        if (pm_timeout_passed(&timeout, limit, c->done) && c->done < c->count)
            return give_up(c, timeout.idle, limit);
        if (pm_seconds() < next)
            continue;
        PM_INFO(c->d->pipelines.ops->log,
                "%s compiles shaders: %zu of %zu are ready after %.3g s, the last %.3g s "
                "ago (run.compile_seconds=%g)",
                d->info.address, c->done, c->count, pm_seconds() - begun, timeout.idle, limit);
        next += every;
    }
    return PM_OK;
}

int pm_compile_new(struct pm_shader_device *d)
{
    enum { MOST_THREADS = 64 };
    struct pm_compiling *c = start(d);
    pthread_t thread[MOST_THREADS];
    size_t threads = 0, wanted = (size_t)pm_threads();
    double begun = pm_seconds();
    int err = PM_OK;

    while (threads < wanted && threads < c->count && threads < MOST_THREADS &&
           pthread_create(&thread[threads], NULL, compile_some, c) == 0)
        threads++;
    if (threads == 0) /* no thread could be created: compile here, without a limit */
        compile_some(c);
    pthread_mutex_lock(&c->lock);
    err = await(c);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < threads; i++)
        err < 0 ? pthread_detach(thread[i]) : pthread_join(thread[i], NULL);
    if (err < 0) {
        d->pipelines.left = c;
        return err;
    }
    if (c->count > 0)
        PM_DEBUG(d->pipelines.ops->log, "%s: compiled %zu pipelines in %.2f s",
                 d->base.info.address, c->count, pm_seconds() - begun);
    finish(c);
    return PM_OK;
}
