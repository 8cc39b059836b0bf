/* study_worker: a process that trains one run of a study. It is this program's train command, in a
 * process group of its own, so that a Ctrl-C of the terminal reaches only the study. Not
 * thread-safe. */
#ifndef PM_STUDY_WORKER_H
#define PM_STUDY_WORKER_H

#include "report/curves.h"
#include "study/study_results.h"

#include <sys/types.h>

struct pm_study_process {
    pid_t pid;                /* 0: none, or not yet */
    int point, repeat;
    int64_t step;             /* to which it trains; 0: to the end by run.epochs */
    double began, read_at;    /* pm_seconds; read_at: of its metrics */
    int restarts;             /* after it was killed */
    bool waits;               /* for the end of an earlier process in the run folder */
    bool asked;               /* to stop */
    const char *name, *run;   /* of the run and its folder, in the study's arena; NULL: the worker
                               * is free */
    struct pm_curves curves;  /* of the run's metrics.jsonl; owned */
};
enum pm_study_end {
    PM_STUDY_RUNS,            /* the process has not ended */
    PM_STUDY_DONE,            /* it has trained to its step: value is set */
    PM_STUDY_FAILED,          /* message is set */
    PM_STUDY_STOPPED,         /* it was asked to stop, and has saved */
};

/* Adds what a worker needs to the overrides of the command line: its devices and threads. Returns
 * their number. *out is in the study's arena and has room for one more. */
size_t pm_study_worker_overrides(const struct pm_study *s, const struct pm_study_worker *w,
                                 const char *const *overrides, size_t n, const char ***out);
/* Starts training this run on the worker's devices. The config is written to FOLDER/configs/, what
 * the process prints to FOLDER/logs/. If a process of an earlier start still saves in the run
 * folder, pm_study_poll starts this one later. PM_EFAIL; PM_ECONFIG: the config does not fit the
 * devices. */
int pm_study_start(const struct pm_study *s, const struct pm_study_worker *w, int point, int repeat,
                   int64_t step, const char *const *overrides, size_t n,
                   const struct pm_open_sections *open, struct pm_study_process *p);
/* Reads the newest numbers of the run, and whether the process has ended; *out then has the result.
 * A process that was killed is started again, up to three times. message lies in the study's
 * arena. */
enum pm_study_end pm_study_poll(const struct pm_study *s, struct pm_study_process *p,
                                struct pm_study_result *out);
/* Asks the process to stop after a checkpoint. */
void pm_study_stop(struct pm_study_process *p);
void pm_study_forget(struct pm_study_process *p);

#endif
