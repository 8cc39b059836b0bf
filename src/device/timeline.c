/* timeline: adds a device's work to the trace: its runs in a lane "steps", and the calls and copies
 * of timed programs. Spans are added when a caller waits for a run. Nothing is stored while no
 * trace is recorded. */
#include "device/backend.h"

#include <pumice/trace.h>

#include <math.h>

struct pm_timeline {
    int steps, calls, copies; /* lanes */
};
struct pm_timeline_names {
    char *run;
    char **label, **kernel; /* per call; timed programs */
    size_t calls;
    double *begin, *end;    /* room for the times of calls, then of copies */
    atomic_bool *under_way; /* per slot: submitted, and its spans not yet added */
};

void pm_timeline_device(struct pm_device *d)
{
    const char *group = d->options.trace ? d->options.trace : d->info.address;

    d->timeline = pm_calloc(1, sizeof *d->timeline);
    d->timeline->steps = pm_trace_lane(group, "steps");
    d->timeline->calls = pm_trace_lane(group, "calls");
    d->timeline->copies = pm_trace_lane(group, "copies");
    d->options.trace = NULL;
}

void pm_timeline_close(struct pm_device *d)
{
    pm_free(d->timeline);
    d->timeline = NULL;
}

void pm_timeline_program(struct pm_program *p, const struct pm_program_desc *desc)
{
    struct pm_timeline_names *n = pm_calloc(1, sizeof *n);
    size_t room = 1 + (desc->calls_count > desc->out_count ? desc->calls_count : desc->out_count);

    p->names = n;
    n->run = pm_strdup(desc->name ? desc->name : "run");
    n->under_way = pm_calloc((size_t)desc->slots, sizeof *n->under_way);
    if (!desc->timed)
        return;
    n->calls = desc->calls_count;
    n->begin = pm_calloc(2 * room, sizeof *n->begin);
    n->end = n->begin + room;
    n->label = pm_calloc(n->calls + 1, sizeof *n->label);
    n->kernel = pm_calloc(n->calls + 1, sizeof *n->kernel);
    for (size_t i = 0; i < n->calls; i++) {
        n->label[i] = pm_strdup(desc->calls[i].label ? desc->calls[i].label : "");
        n->kernel[i] = pm_strdup(desc->calls[i].kernel->name);
    }
}

void pm_timeline_destroy(struct pm_program *p)
{
    struct pm_timeline_names *n = p->names;

    if (!n)
        return;
    for (size_t i = 0; i < n->calls; i++) {
        pm_free(n->label[i]);
        pm_free(n->kernel[i]);
    }
    pm_free(n->label);
    pm_free(n->kernel);
    pm_free(n->begin);
    pm_free(n->under_way);
    pm_free(n->run);
    pm_free(n);
    p->names = NULL;
}

void pm_timeline_submit(struct pm_program *p, int slot)
{
    atomic_store(&p->names->under_way[slot], true);
}

static void tell_calls(struct pm_program *p, int slot, double start)
{
    struct pm_timeline_names *n = p->names;

    if (p->device->ops->program_call_times(p, slot, n->begin, n->end) == PM_OK)
        for (size_t i = 0; i < n->calls; i++)
            pm_trace_span(p->device->timeline->calls, n->label[i], n->kernel[i],
                          start + n->begin[i], start + n->end[i]);
    if (p->device->ops->program_copy_times(p, slot, n->begin, n->end) == PM_OK)
        for (size_t i = 0; i < 1 + p->out_count; i++)
            if (!isnan(n->begin[i]))
                pm_trace_span(p->device->timeline->copies, i ? "copy out" : "copy in", n->run,
                              start + n->begin[i], start + n->end[i]);
}

void pm_timeline_wait(struct pm_program *p, int slot)
{
    double start;

    if (!atomic_exchange(&p->names->under_way[slot], false) || !pm_trace_on())
        return;
    start = p->device->ops->program_begun(p, slot);
    pm_trace_span(p->device->timeline->steps, p->names->run, NULL, start,
                  start + p->device->ops->program_seconds(p, slot));
    if (p->timed)
        tell_calls(p, slot, start);
}
