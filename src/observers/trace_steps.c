/* trace_steps: a timeline of chosen steps of a run, RUN/trace-000100.json for those from step 100 on.
 * Only while they run do plans take times of single calls: the other steps are as fast as without. A
 * file that cannot be written costs a warning, not the run. */
#include "train/trainer.h"

#include <pumice/trace.h>

/* Step n is the update that makes n of them. */
static bool is_chosen(const struct pm_trainer *t, uint64_t step)
{
    const struct pm_ints *list = &t->c->run.trace_steps;

    return list->count > 0 && step >= (uint64_t)list->v[0] &&
           step <= (uint64_t)list->v[list->count - 1];
}

bool pm_trace_steps_due(const struct pm_trainer *t)
{
    return is_chosen(t, t->step + 1) != t->tracing;
}

void pm_trace_steps_switch(struct pm_trainer *t)
{
    if (t->tracing) {
        pm_trace_steps_end(t);
        pm_clones_set_timed(t->clones, false);
        return;
    }
    pm_clones_set_timed(t->clones, true);
    t->tracing = true;
    t->traced_from = t->step + 1;
    pm_trace_open();
}

void pm_trace_steps_end(struct pm_trainer *t)
{
    char path[4096];

    if (!t->tracing)
        return;
    t->tracing = false;
    snprintf(path, sizeof path, "%s/trace-%06llu.json", t->c->run.folder,
             (unsigned long long)t->traced_from);
    if (pm_trace_close(path) < 0)
        PM_WARN("train", "run.trace_steps: %s", pm_error_text());
    else
        PM_INFO("train", "steps %llu to %llu: %s", (unsigned long long)t->traced_from,
                (unsigned long long)t->collected, path);
}
