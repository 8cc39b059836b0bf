/* study_results: the results of a study's runs, in FOLDER/study.jsonl: one line for each run and
 * each step to which it was trained. A line is written at once and synced, so a study whose process
 * dies loses no result. Not thread-safe. */
#ifndef PM_STUDY_RESULTS_H
#define PM_STUDY_RESULTS_H

#include "study/study.h"

#include <pumice/checkpoint.h>

struct pm_study_result {
    int point, repeat;
    int64_t step;          /* to which the run was to be trained; 0: its end by run.epochs */
    double value;          /* of the metric; NAN: the run failed */
    double seconds;        /* of its process */
    const char *message;   /* why it failed; NULL: it did not */
};
struct pm_study_results {
    struct pm_study_result *list; /* owned; by time */
    size_t count, capacity;
    struct pm_arena *arena;       /* owned: the messages */
    int fd;
    char *path;                   /* owned */
    struct pm_run_lock *lock;     /* owned: of the folder */
};

/* Opens the study's folder, which is created, and locks it. PM_EFAIL: another process has it.
 * Writes study.json, or compares it: PM_ECONFIG if the folder has another study. Reads the
 * results of earlier starts; an incomplete last line is removed. retry: failed runs are
 * forgotten. PM_EDATA: a line is not a result of this study. */
int pm_study_results_open(const struct pm_study *s, bool retry, struct pm_study_results *out);
void pm_study_results_close(struct pm_study_results *r);
/* Appends a result; the message is copied. PM_EFAIL. */
int pm_study_results_add(struct pm_study_results *r, const struct pm_study *s,
                         const struct pm_study_result *one);
/* Finds the result of a run at a step; NULL: there is none. Valid until the next add. */
const struct pm_study_result *pm_study_results_find(const struct pm_study_results *r, int point,
                                                    int repeat, int64_t step);

/* Mean and standard deviation (0 for one run) of a point's runs at a step, without failed ones.
 * Returns the number of runs; 0: both are NAN. */
int pm_study_mean(const struct pm_study *s, const struct pm_study_results *r, int point,
                  int64_t step, double *mean, double *spread);

#endif
