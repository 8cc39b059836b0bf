/* clock_cl: measures how long a run and its calls took on the device: from the begin of the run's
 * first command to the end of its last, by their events. If the stamps are unusable, the host
 * measures from submission to the wait's return. */
#include "device/opencl/device_cl.h"

#include <math.h>

void pm_cl_clock_keep(struct cl_program *p, struct cl_clock *c, size_t pair, int end,
                      cl_event event)
{
    struct cl_device *d = p->device;

    if (!c->first) {
        d->cl.RetainEvent(event);
        c->first = event;
    }
    if (p->pairs == 0)
        return;
    cl_event *at = &c->events[2 * pair + (size_t)end];
    if (*at)
        d->cl.ReleaseEvent(*at);
    d->cl.RetainEvent(event);
    *at = event;
}

void pm_cl_clock_release(struct cl_program *p, struct cl_clock *c)
{
    struct cl_device *d = p->device;

    if (c->first)
        d->cl.ReleaseEvent(c->first);
    if (c->last)
        d->cl.ReleaseEvent(c->last);
    c->first = c->last = NULL;
    for (size_t i = 0; i < 2 * p->pairs; i++) {
        if (c->events[i])
            d->cl.ReleaseEvent(c->events[i]);
        c->events[i] = NULL;
    }
}

/* ---- reading ------------------------------------------------------------------------ */

/* Returns a stamp in nanoseconds, or 0. */
static uint64_t stamp(struct cl_device *d, cl_event event, cl_profiling_info what)
{
    cl_ulong t = 0;

    if (!event ||
        d->cl.GetEventProfilingInfo(event, what, sizeof t, &t, NULL) != CL_SUCCESS)
        return 0;
    return t;
}

void pm_cl_clock_read(struct cl_program *p, struct cl_clock *c)
{
    struct cl_device *d = p->device;
    const double now = pm_seconds();
    const uint64_t start = stamp(d, c->first ? c->first : c->last, CL_PROFILING_COMMAND_START);
    const uint64_t end = stamp(d, c->last, CL_PROFILING_COMMAND_END);

    c->seconds = now - c->submitted;
    c->begun = c->submitted;
    c->start = 0;
    if (start > 0 && end >= start) {
        c->start = start;
        c->seconds = 1e-9 * (double)(end - start);
        pthread_mutex_lock(&d->queue_lock);
        c->begun = pm_fit_clock(&d->fit, 1e-9 * (double)(int64_t)(start - d->fit.stamp), c->seconds,
                                end, c->submitted, now);
        pthread_mutex_unlock(&d->queue_lock);
    }
    for (size_t i = 0; i < p->pairs; i++) {
        c->stamps[2 * i] = stamp(d, c->events[2 * i], CL_PROFILING_COMMAND_START);
        c->stamps[2 * i + 1] = stamp(d, c->events[2 * i + 1], CL_PROFILING_COMMAND_END);
    }
    pm_cl_clock_release(p, c);
}

double pm_cl_program_seconds(struct pm_program *base, int slot)
{
    return ((struct cl_program *)base)->slots[slot].clock.seconds;
}

double pm_cl_program_begun(struct pm_program *base, int slot)
{
    return ((struct cl_program *)base)->slots[slot].clock.begun;
}

static double since(const struct cl_clock *c, uint64_t t)
{
    return 1e-9 * (double)(int64_t)(t - c->start);
}

static int need_stamps(const struct cl_program *p, const struct cl_clock *c)
{
    const struct pm_device_info *i = &p->device->shared.base.info;

    return c->start ? PM_OK : pm_fail(PM_EDEVICE,
                                      "%s (%s): its driver has no times of commands, so single "
                                      "calls cannot be timed", i->address, i->name);
}

/* A call without dispatches begins and ends with the call before it. */
int pm_cl_program_call_times(struct pm_program *base, int slot, double *begin, double *end)
{
    struct cl_program *p = (struct cl_program *)base;
    const struct cl_clock *c = &p->slots[slot].clock;
    double last = 0;
    int err = PM_OK;

    if (base->calls_count == 0)
        return PM_OK;
    PM_TRY(need_stamps(p, c));
    for (size_t i = 0; i < base->calls_count; i++) {
        const uint64_t *t = &c->stamps[2 * i];

        begin[i] = t[0] ? since(c, t[0]) : last;
        end[i] = t[1] ? since(c, t[1]) : last;
        last = end[i];
    }
out:
    return err;
}

int pm_cl_program_copy_times(struct pm_program *base, int slot, double *begin, double *end)
{
    struct cl_program *p = (struct cl_program *)base;
    const struct cl_clock *c = &p->slots[slot].clock;
    int err = PM_OK;

    for (size_t i = 0; i <= base->out_count; i++)
        begin[i] = end[i] = NAN;
    if (base->in_count == 0 && base->out_count == 0)
        return PM_OK;
    PM_TRY(need_stamps(p, c));
    for (size_t i = 0; i <= base->out_count; i++) {
        const uint64_t *t = &c->stamps[2 * (base->calls_count + i)];

        if (t[0] && t[1]) {
            begin[i] = since(c, t[0]);
            end[i] = since(c, t[1]);
        }
    }
out:
    return err;
}
