/* study_run: trains the runs of a study, several at a time. Not thread-safe. */
#ifndef PM_STUDY_RUN_H
#define PM_STUDY_RUN_H

#include "study/study_results.h"

#include <signal.h>

/* Lists the rungs of successive halving (Jamieson and Talwalkar, 2016) and returns their number. A
 * rung is a step: the runs are trained to it, and the best ones go on to the next rung. The last
 * rung is the whole run. Without halving it is the only one. Its step is run.steps; 0 stands for
 * runs that end by run.epochs or have different steps. */
enum { PM_STUDY_RUNGS = 64 };
int pm_study_rungs(const struct pm_study *s, int64_t steps[PM_STUDY_RUNGS]);
/* Which points are trained on rung `rung`: alive[points]. All on rung 0; then the better ones of
 * the rung below, by the mean of their repeats, at least one, of equal ones the first. Points whose
 * runs have all failed are left out. Returns their number. Depends on the results only. */
int pm_study_survivors(const struct pm_study *s, const struct pm_study_results *r, int rung,
                       bool *alive);
/* The point with the best mean on the highest rung that has results; -1: none. *rung: that rung. */
int pm_study_best(const struct pm_study *s, const struct pm_study_results *r, int *rung);

struct pm_study_run_options {
    const char *const *overrides; /* of the command line; borrowed */
    size_t overrides_count;
    const struct pm_open_sections *open;
    bool stop_on_error;
    /* The signal that ends the study; 0: none. It may change to 0 and to a signal again, which
     * asks the processes once more. */
    volatile sig_atomic_t *signal;
};
/* Trains all runs that have no result yet, and writes FOLDER/best.json, the config of the best
 * point, and FOLDER/report.html, the latter also once a minute. *stopped: the signal that ended it;
 * 0: none. PM_EFAIL: with stop_on_error, a run has failed, or all runs have. */
int pm_study_run(const struct pm_study *s, struct pm_study_results *r,
                 const struct pm_study_run_options *o, int *stopped);

#endif
