/* trace_steps: a timeline of selected steps of a run (run.trace_steps). RUN/trace-000100.json holds
 * the steps from step 100 on, RUN/plugins/profile/step-000100 the same for TensorBoard's profiler.
 * Plans measure single calls only in these steps, so other steps run at full speed. A file that
 * cannot be written costs a warning, not the run. With several processes, all record, and the chief
 * writes the spans of all, with the rank in the names of their groups. */
#ifndef PM_TRACE_STEPS_H
#define PM_TRACE_STEPS_H

#include "observers/run_facts.h"

struct pm_trace_steps {
    bool on;       /* a trace is being recorded */
    uint64_t from; /* its first step */
    double opened_at; /* pm_seconds */
};
/* The functions fail only if another process failed. All processes must call them.
 *
 * pm_trace_steps_due: whether a trace begins or ends before the next step. pm_trace_steps_switch
 * begins or ends it; no step may be under way. */
bool pm_trace_steps_due(const struct pm_trace_steps *t, const struct pm_run_facts *run);
int pm_trace_steps_switch(struct pm_trace_steps *t, const struct pm_run_facts *run);
/* Ends and writes the trace, if one is being recorded. */
int pm_trace_steps_end(struct pm_trace_steps *t, const struct pm_run_facts *run);
/* The same after a failure: without the spans of other processes. Needs no other process. */
void pm_trace_steps_close(struct pm_trace_steps *t, const struct pm_run_facts *run);

#endif
