/* queue_cl: the queues of a device: what was submitted to them, and waiting for it.
 *
 * clFinish and clWaitForEvents have no time limit, so waits ask for the status of events. */
#include "device/opencl/device_cl.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* ---- submitting --------------------------------------------------------------------- */

int pm_cl_queue_create(struct cl_device *d, struct cl_queue *q)
{
    cl_int r;

    q->handle = d->cl.CreateCommandQueue(d->context, d->physical.device, CL_QUEUE_PROFILING_ENABLE,
                                         &r);
    return pm_cl_result(r, "CreateCommandQueue");
}

void pm_cl_queue_destroy(struct cl_device *d, struct cl_queue *q, bool idle)
{
    for (size_t i = 0; i < q->count && idle; i++)
        d->cl.ReleaseEvent(q->events[i]);
    pm_free(q->events);
    if (q->handle && idle)
        d->cl.ReleaseCommandQueue(q->handle);
}

int pm_cl_submit_result(struct cl_device *d, cl_int r, const char *text)
{
    char why[200];

    if (r == CL_SUCCESS)
        return PM_OK;
    snprintf(why, sizeof why, "%s returned %s (%d)", text, pm_cl_result_name(r), r);
    return pm_shader_device_lose(&d->shared, why);
}

int pm_cl_submitted(struct cl_device *d, struct cl_queue *q, cl_event last, uint64_t *value)
{
    PM_GROW(q->events, q->count, q->capacity);
    q->events[q->count++] = last;
    *value = ++q->submitted;
    return pm_cl_submit_result(d, d->cl.Flush(q->handle), "clFlush");
}

/* ---- waiting ------------------------------------------------------------------------ */

static cl_int status_of(struct cl_device *d, cl_event event)
{
    cl_int status = CL_QUEUED;
    cl_int r = d->cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                                  NULL);

    return r == CL_SUCCESS ? status : r;
}

/* Releases the events of ended submissions. The caller holds queue_lock. */
static int poll_queue(struct cl_device *d, struct cl_queue *q)
{
    cl_int status = CL_COMPLETE;
    size_t ended = 0;

    while (ended < q->count && (status = status_of(d, q->events[ended])) == CL_COMPLETE)
        d->cl.ReleaseEvent(q->events[ended++]);
    q->count -= ended;
    q->reached += ended;
    if (ended > 0)
        memmove(q->events, q->events + ended, q->count * sizeof *q->events);
    return status < 0 ? pm_cl_submit_result(d, status, "a command") : PM_OK;
}

/* Copies out wait for the compute queue's work, so the progress of both counts. */
static int poll_both(struct cl_device *d, uint64_t *progress)
{
    int err;

    pthread_mutex_lock(&d->queue_lock);
    err = poll_queue(d, &d->compute);
    if (err == PM_OK)
        err = poll_queue(d, &d->transfer);
    *progress = d->compute.reached + d->transfer.reached;
    pthread_mutex_unlock(&d->queue_lock);
    return err;
}

/* Sleeps between two questions: short at first, because a short run should not wait long, then for
 * half a millisecond. */
static void nap(double *seconds)
{
    struct timespec t = { .tv_nsec = (long)(1e9 * *seconds) };

    nanosleep(&t, NULL);
    *seconds = fmin(*seconds * 1.5, 5e-4);
}

/* Waits until ended(d, ctx) holds, which is asked after each look at the queues. */
static int await(struct cl_device *d, bool (*ended)(struct cl_device *d, void *ctx), void *ctx)
{
    const double limit = pm_hang_limit(&d->shared.base);
    double pause = 2e-5;
    uint64_t progress = 0;
    struct pm_timeout timeout;

    pm_timeout_start(&timeout, 0);
    for (;;) {
        const int err = poll_both(d, &progress);

        if (ended(d, ctx))
            return PM_OK;
        if (err < 0)
            return err;
        if (pm_timeout_passed(&timeout, limit, progress))
            return pm_shader_device_hang(&d->shared, timeout.idle);
        nap(&pause);
    }
}

struct awaited {
    const struct cl_queue *queue;
    uint64_t value;
};

static bool has_reached(struct cl_device *d, void *ctx)
{
    const struct awaited *a = ctx;
    bool yes;

    pthread_mutex_lock(&d->queue_lock);
    yes = a->queue->reached >= a->value;
    pthread_mutex_unlock(&d->queue_lock);
    return yes;
}

int pm_cl_wait(struct cl_device *d, struct cl_queue *q, uint64_t value)
{
    int err = PM_OK;

    if (value == 0)
        return PM_OK;
    PM_TRY(pm_device_alive(&d->shared.base));
    PM_TRY(await(d, has_reached, &(struct awaited){ q, value }));
out:
    return err;
}

struct awaited_event {
    cl_event event;
    cl_int *status;
};

static bool has_ended(struct cl_device *d, void *ctx)
{
    const struct awaited_event *a = ctx;

    *a->status = status_of(d, a->event);
    return *a->status <= CL_COMPLETE;
}

int pm_cl_wait_event(struct cl_device *d, cl_event event, cl_int *status)
{
    const int err = await(d, has_ended, &(struct awaited_event){ event, status });

    if (!atomic_load(&d->shared.base.hung))
        d->cl.ReleaseEvent(event);
    return err;
}

/* ---- the end ------------------------------------------------------------------------ */

struct finishing {
    __typeof__(clFinish) *finish;
    cl_command_queue queue[2];
};

static void finish(void *ctx)
{
    const struct finishing *f = ctx;

    for (size_t i = 0; i < PM_COUNT(f->queue); i++)
        f->finish(f->queue[i]);
}

static bool settles(struct cl_device *d)
{
    struct finishing *f = pm_calloc(1, sizeof *f);

    *f = (struct finishing){ d->cl.Finish, { d->compute.handle, d->transfer.handle } };
    return pm_settles(finish, f, d->settle_seconds);
}

bool pm_cl_idle(struct cl_device *d)
{
    struct pm_device *base = &d->shared.base;

    if (!atomic_load(&base->lost)) {
        pm_cl_wait(d, &d->compute, d->compute.submitted);
        pm_cl_wait(d, &d->transfer, d->transfer.submitted);
    }
    if (atomic_load(&base->lost) && !atomic_load(&base->hung) && !d->settled) {
        d->settled = !d->transfer.handle || settles(d);
        if (!d->settled)
            atomic_store(&base->hung, true);
    }
    return !atomic_load(&base->hung);
}
