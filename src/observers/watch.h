/* watch: all outputs of a training run: the progress line, metrics.jsonl, TensorBoard's event files
 * (summaries.h), report.html (run_page.h), the metrics on training batches, and the warning of a
 * training that diverges (divergence.h). The trainer reports
 * events to it. A watch never changes a variable. A file that cannot be written costs a warning,
 * not the run. One thread uses a watch. With several processes, each has a watch. Only the chief's
 * writes anything. The others are quiet: they only keep the state, as the chief's does. */
#ifndef PM_WATCH_H
#define PM_WATCH_H

#include "observers/run_facts.h"

#include <pumice/report.h>

struct cJSON;
struct pm_state;

struct pm_watch;
/* slots: most steps under way at once. warmup_steps: of the schedule. Opens no file. */
struct pm_watch *pm_watch_create(const struct pm_experiment *e, int slots, double warmup_steps,
                                 bool quiet);
void pm_watch_destroy(struct pm_watch **w);

/* ---- files ------------------------------------------------------------------------------- */

/* Opens the files and removes their entries of steps beyond run->step; does not start the progress
 * line. Called again after pm_watch_close, when the run resumes from an earlier step. Returns
 * run->evaluated_step or, if that is UINT64_MAX, the last evaluation in metrics.jsonl. */
uint64_t pm_watch_open(struct pm_watch *w, const struct pm_run_facts *run);
void pm_watch_close(struct pm_watch *w, const struct pm_run_facts *run); /* w may be NULL */
/* Starts the progress line, if it is not shown yet, and measures speed from now on. */
void pm_watch_start(struct pm_watch *w, const struct pm_run_facts *run);
/* Ends the progress line, because log lines follow. */
void pm_watch_stop(struct pm_watch *w);
/* Call it before the devices are closed. */
void pm_watch_leave(struct pm_watch *w);
/* Writes the last page: the run ends with err, or was stopped before its last step by a signal or a
 * pause. Does nothing without pm_watch_open, or if w is NULL. */
void pm_watch_end(struct pm_watch *w, const struct pm_run_facts *run, int err, bool stopped);

/* Adds the speeds of the processes to the summary of a run that has ended. */
void pm_watch_summarise(const struct pm_watch *w, const struct pm_run_facts *run,
                        struct cJSON *summary);

/* ---- events ------------------------------------------------------------------------------ */

/* Call it before step run->step runs in the slot with this batch. */
void pm_watch_batch(struct pm_watch *w, const struct pm_run_facts *run, int slot,
                    const struct pm_batch *batch);
/* A collected step: update run->collected. Fails only if another process failed. */
struct pm_watched_step {
    const struct pm_step_result *result;
    int slot;                 /* in which the step ran */
    float lr;
    uint64_t skipped;         /* damaged records up to this step, since the run began */
    bool is_async;            /* asynchronous training; staleness, stalest: mean and largest one of
                               * the updates since the last logged step; NAN: none */
    double staleness, stalest;
    const uint64_t *dropped;  /* [workers]: dropped gradients of each process since the last logged
                               * step; NULL: none are dropped in this mode */
    int workers;
    struct pm_phases *phases; /* the seconds since the last logged step are read from it and
                               * reset */
};
/* Whether the step that has been collected is a logged step. */
bool pm_watch_is_logged(const struct pm_run_facts *run);
int pm_watch_step(struct pm_watch *w, const struct pm_run_facts *run,
                  const struct pm_watched_step *s);
/* Reports an evaluation of run->step over count pictures; detail: the evaluator's, for the page.
 * Writes every file of the evaluation except metrics.jsonl. */
void pm_watch_evaluation(struct pm_watch *w, const struct pm_run_facts *run, uint64_t count,
                         const struct cJSON *metrics, const struct cJSON *detail);
/* Writes the evaluation's line in metrics.jsonl. Call it after pm_watch_evaluation and after the
 * best checkpoint was chosen. pm_watch_open treats an evaluation without this line as not done. */
void pm_watch_evaluated(struct pm_watch *w, const struct pm_run_facts *run,
                        const struct cJSON *metrics);
/* Call it before the state of run->step is saved. Flushes its lines of metrics.jsonl to the disk
 * first, because a resumed run does not write them again. */
void pm_watch_saving(struct pm_watch *w);
/* Call it after the state of a step became a checkpoint. */
void pm_watch_saved(struct pm_watch *w, uint64_t step);
/* Whether histograms and pictures of step run->step, just submitted, are due. The second function
 * writes them, with no step under way; snapshot is the step's state. It fails only if a device
 * fails. */
bool pm_watch_histograms_due(const struct pm_watch *w, const struct pm_run_facts *run);
int pm_watch_histograms(struct pm_watch *w, const struct pm_run_facts *run,
                        const struct pm_state *snapshot);

/* ---- state ------------------------------------------------------------------------------- */

/* Loss averages, sums of losses and the counts of training metrics are part of a checkpoint. Keep
 * copies the current values. Restore returns to the copy. */
void pm_watch_keep(struct pm_watch *w);
void pm_watch_restore(struct pm_watch *w);
/* Appends the copy as members of a JSON object: "loss_averages": {...}, .... Reads such members of
 * `object` (NULL: none) into the copy. */
void pm_watch_print(const struct pm_watch *w, struct pm_str *json);
void pm_watch_read(struct pm_watch *w, const struct cJSON *object);

#endif
