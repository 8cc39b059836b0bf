/* study_show: what a person sees while a study trains. On a terminal, a table below the log that is
 * rewritten: a line for the study and one for each run that trains. Elsewhere, a log line for each
 * result. Not thread-safe. */
#ifndef PM_STUDY_SHOW_H
#define PM_STUDY_SHOW_H

#include "study/study_worker.h"

struct pm_study_show;
/* processes: those of the workers, `count` of them; borrowed, as s and r. */
void pm_study_show_start(const struct pm_study *s, const struct pm_study_results *r,
                         const struct pm_study_process *processes, int count,
                         struct pm_study_show **out);
/* Tells how many runs the present rung has, and to which step they train. */
void pm_study_show_rung(struct pm_study_show *w, int runs, int64_t step);
/* Call it after a result was added. */
void pm_study_show_result(struct pm_study_show *w, const struct pm_study_result *one);
/* Draws the table again, at most five times a second. */
void pm_study_show_now(struct pm_study_show *w);
void pm_study_show_end(struct pm_study_show **w);

#endif
