/* run_cl: submits a program's commands and waits for them. */
#include "device/opencl/device_cl.h"

#include <string.h>

void *pm_cl_program_in(struct pm_program *base, int slot, size_t i)
{
    struct cl_program *p = (struct cl_program *)base;

    return (char *)p->slots[slot].in.map + p->ins[i].at;
}

const void *pm_cl_program_out(struct pm_program *base, int slot, size_t i)
{
    struct cl_program *p = (struct cl_program *)base;

    return (const char *)p->slots[slot].out.map + p->outs[i].at;
}

const char *pm_cl_program_variant(const struct pm_program *base, size_t i)
{
    return ((const struct cl_program *)base)->names.variants[i];
}

static int blame(struct cl_program *p, const struct cl_slot *s, int err)
{
    struct cl_device *d = p->device;
    uint64_t reached;

    pthread_mutex_lock(&d->queue_lock);
    reached = d->compute.reached;
    pthread_mutex_unlock(&d->queue_lock);
    return pm_blame(err, &p->names, p->segments, p->segment_count, s->value, reached);
}

/* ---- submitting --------------------------------------------------------------------- */

/* The commands of one submission. */
struct batch {
    struct cl_program *p;
    struct cl_slot *s;
    struct cl_device *d;
    cl_event last; /* of the newest command, owned */
};

/* Takes the event of a command that was enqueued with result r. pair, end: see pm_cl_clock_keep. */
static int enqueued(struct batch *b, cl_int r, const char *text, const cl_event *event)
{
    int err = pm_cl_submit_result(b->d, r, text);

    if (err < 0)
        return err;
    if (b->last)
        b->d->cl.ReleaseEvent(b->last);
    b->last = *event;
    return PM_OK;
}

static int run_dispatch(struct batch *b, const struct cl_dispatch *x)
{
    int err = PM_OK;
    struct cl_clock *c = &b->s->clock;
    cl_event event = NULL;

    if (x->kernel) {
        PM_TRY(enqueued(b, b->d->cl.EnqueueNDRangeKernel(b->d->compute.handle, x->kernel, 3, NULL,
                                                         x->global, x->local, 0, NULL, &event),
                        "clEnqueueNDRangeKernel", &event));
        if (x->begins)
            pm_cl_clock_keep(b->p, c, x->call, 0, event);
        if (x->ends)
            pm_cl_clock_keep(b->p, c, x->call, 1, event);
    }
out:
    return err;
}

static int copy_in(struct batch *b)
{
    int err = PM_OK;
    struct cl_program *p = b->p;
    bool first = true;

    for (size_t i = 0; i < p->base.in_count; i++) {
        const struct cl_copy *x = &p->ins[i];
        cl_event event = NULL;

        if (x->size == 0)
            continue;
        PM_TRY(enqueued(b, b->d->cl.EnqueueWriteBuffer(b->d->compute.handle, x->memory, CL_FALSE,
                                                       x->offset, x->size,
                                                       (char *)b->s->in.map + x->at, 0, NULL,
                                                       &event),
                        "clEnqueueWriteBuffer", &event));
        if (first)
            pm_cl_clock_keep(p, &b->s->clock, p->base.calls_count, 0, event);
        pm_cl_clock_keep(p, &b->s->clock, p->base.calls_count, 1, event);
        first = false;
    }
out:
    return err;
}

static int copy_out(struct batch *b, cl_command_queue queue, size_t segment, bool transfer)
{
    int err = PM_OK;
    struct cl_program *p = b->p;

    for (size_t i = 0; i < p->base.out_count; i++) {
        const struct cl_copy *x = &p->outs[i];
        const size_t pair = p->base.calls_count + 1 + i;
        cl_event event = NULL;

        if (x->segment != segment || x->transfer != transfer || x->size == 0)
            continue;
        PM_TRY(enqueued(b, b->d->cl.EnqueueReadBuffer(queue, x->memory, CL_FALSE, x->offset,
                                                      x->size, (char *)b->s->out.map + x->at, 0,
                                                      NULL, &event),
                        "clEnqueueReadBuffer", &event));
        if (!transfer) {
            pm_cl_clock_keep(p, &b->s->clock, pair, 0, event);
            pm_cl_clock_keep(p, &b->s->clock, pair, 1, event);
        }
    }
out:
    return err;
}

/* A run's first command waits for all copies out that were submitted so far. */
static int wait_for_copies(struct batch *b)
{
    struct cl_queue *q = &b->d->transfer;
    cl_event event = NULL;

    if (q->count == 0)
        return PM_OK;
    return enqueued(b, b->d->cl.EnqueueBarrierWithWaitList(b->d->compute.handle, 1,
                                                           &q->events[q->count - 1], &event),
                    "clEnqueueBarrierWithWaitList", &event);
}

/* Submits the copies on the transfer queue. They wait for `after`. */
static int submit_transfer(struct batch *b, size_t segment, cl_event after)
{
    int err = PM_OK;
    struct cl_queue *q = &b->d->transfer;
    struct batch copies = { .p = b->p, .s = b->s, .d = b->d };
    cl_event event = NULL;

    PM_TRY(enqueued(&copies, b->d->cl.EnqueueBarrierWithWaitList(q->handle, 1, &after, &event),
                    "clEnqueueBarrierWithWaitList", &event));
    PM_TRY(copy_out(&copies, q->handle, segment, true));
    err = pm_cl_submitted(b->d, q, copies.last, &b->s->transfer_value[segment]);
    copies.last = NULL; /* the queue has it, also after an error */
    PM_TRY(err);
    b->s->transfer_done = b->s->transfer_value[segment];
out:
    if (copies.last)
        b->d->cl.ReleaseEvent(copies.last);
    return err;
}

static bool has_transfer(const struct cl_program *p, size_t segment)
{
    for (size_t i = 0; i < p->base.out_count; i++)
        if (p->outs[i].segment == segment && p->outs[i].transfer && p->outs[i].size > 0)
            return true;
    return false;
}

/* Submits a segment. Output copies on the compute queue are submitted with the segment they wait
 * for. The caller holds queue_lock. */
static int submit_segment(struct cl_program *p, struct cl_slot *s, size_t i)
{
    int err = PM_OK;
    struct cl_device *d = p->device;
    const struct pm_submission *g = &p->segments[i];
    struct batch b = { .p = p, .s = s, .d = d };
    cl_event event = NULL;

    if (i == 0) {
        PM_TRY(wait_for_copies(&b));
        PM_TRY(copy_in(&b));
    }
    for (size_t k = g->begin; k < g->end; k++)
        PM_TRY(run_dispatch(&b, &p->dispatches[k]));
    PM_TRY(copy_out(&b, d->compute.handle, i, false));
    if (!b.last)
        PM_TRY(enqueued(&b, d->cl.EnqueueMarkerWithWaitList(d->compute.handle, 0, NULL, &event),
                        "clEnqueueMarkerWithWaitList", &event));
    event = b.last;
    d->cl.RetainEvent(event);
    err = pm_cl_submitted(d, &d->compute, b.last, &s->value[i]);
    b.last = NULL; /* the queue has it, also after an error */
    PM_TRY(err);
    s->done = s->value[i];
    if (has_transfer(p, i))
        PM_TRY(submit_transfer(&b, i, event));
    if (i + 1 == p->segment_count)
        s->clock.last = event, event = NULL;
out:
    if (b.last)
        d->cl.ReleaseEvent(b.last);
    if (event)
        d->cl.ReleaseEvent(event);
    return err;
}

int pm_cl_program_submit(struct pm_program *base, int slot)
{
    int err = PM_OK;
    struct cl_program *p = (struct cl_program *)base;
    struct cl_slot *s = &p->slots[slot];
    struct cl_device *d = p->device;

    if (s->busy && (err = pm_cl_program_wait(base, slot)) < 0)
        return err;
    PM_TRY(pm_device_alive(&d->shared.base));
    memset(s->value, 0, p->segment_count * sizeof *s->value);
    s->busy = true;
    s->clock.submitted = pm_seconds();
    pthread_mutex_lock(&d->queue_lock);
    for (size_t i = 0; i < p->segment_count && err == PM_OK; i++)
        err = submit_segment(p, s, i);
    pthread_mutex_unlock(&d->queue_lock);
out:
    return blame(p, s, err);
}

/* ---- waiting ------------------------------------------------------------------------ */

int pm_cl_program_wait_out(struct pm_program *base, int slot, size_t i)
{
    struct cl_program *p = (struct cl_program *)base;
    struct cl_slot *s = &p->slots[slot];
    const struct cl_copy *o = &p->outs[i];
    struct cl_device *d = p->device;

    return blame(p, s, o->transfer ? pm_cl_wait(d, &d->transfer, s->transfer_value[o->segment])
                                   : pm_cl_wait(d, &d->compute, s->value[o->segment]));
}

int pm_cl_program_wait(struct pm_program *base, int slot)
{
    int err = PM_OK;
    struct cl_program *p = (struct cl_program *)base;
    struct cl_slot *s = &p->slots[slot];

    PM_TRY(pm_cl_wait(p->device, &p->device->compute, s->done));
    PM_TRY(pm_cl_wait(p->device, &p->device->transfer, s->transfer_done));
    if (s->busy)
        pm_cl_clock_read(p, &s->clock);
    s->busy = false;
out:
    return blame(p, s, err);
}
