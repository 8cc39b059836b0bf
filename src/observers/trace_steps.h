/* trace_steps: a timeline of chosen steps of a run (run.trace_steps): RUN/trace-000100.json for
 * those from step 100 on. Plans take times of single calls only in these steps, so the other steps are as
 * fast as without. A file that cannot be written costs a warning, not the run. */
#ifndef PM_TRACE_STEPS_H
#define PM_TRACE_STEPS_H

#include "observers/run_facts.h"

struct pm_trace_steps {
    bool on;       /* these steps are traced */
    uint64_t from; /* the first of them */
};
/* Whether a trace begins or ends before the next step. Then, with no step under way: does so. */
bool pm_trace_steps_due(const struct pm_trace_steps *t, const struct pm_run_facts *run);
void pm_trace_steps_switch(struct pm_trace_steps *t, const struct pm_run_facts *run);
/* Ends the trace, if one is on, and writes it. */
void pm_trace_steps_end(struct pm_trace_steps *t, const struct pm_run_facts *run);

#endif
