/* trace_steps: trace_steps.h has the contract. */
#include "observers/trace_steps.h"

#include "formats/xplane.h"

#include <pumice/trace.h>

/* Whether a step is traced. Step n is the n-th update. */
static bool is_chosen(const struct pm_run_facts *run, uint64_t step)
{
    const struct pm_ints *list = &run->c->run.trace_steps;

    return list->count > 0 && step >= (uint64_t)list->v[0] &&
           step <= (uint64_t)list->v[list->count - 1];
}

bool pm_trace_steps_due(const struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    return is_chosen(run, run->step + 1) != t->on;
}

void pm_trace_steps_switch(struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    if (t->on) {
        pm_trace_steps_end(t, run);
        pm_clones_set_timed(run->clones, false);
        return;
    }
    pm_clones_set_timed(run->clones, true);
    t->on = true;
    t->from = run->step + 1;
    pm_trace_open();
}

static void add_span(void *ctx, const struct pm_trace_event *e)
{
    pm_xplane_span(ctx, e->group, e->lane, e->name, e->detail, e->begin, e->end);
}

/* Writes the same timeline for TensorBoard's profiler. */
static void write_profile(const struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    struct pm_xplane *x = pm_xplane_create();
    char name[32];

    snprintf(name, sizeof name, "step-%06llu", (unsigned long long)t->from);
    pm_trace_each(add_span, x);
    if (pm_xplane_write(x, run->c->run.folder, name) < 0)
        PM_WARN("train", "run.trace_steps: %s", pm_error_text());
    pm_xplane_destroy(&x);
}

void pm_trace_steps_end(struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    char path[4096];

    if (!t->on)
        return;
    t->on = false;
    write_profile(t, run);
    snprintf(path, sizeof path, "%s/trace-%06llu.json", run->c->run.folder,
             (unsigned long long)t->from);
    if (pm_trace_close(path) < 0)
        PM_WARN("train", "run.trace_steps: %s", pm_error_text());
    else
        PM_INFO("train", "steps %llu to %llu: %s", (unsigned long long)t->from,
                (unsigned long long)run->collected, path);
}
