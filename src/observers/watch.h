/* watch: what a training run tells people: the progress line, metrics.jsonl, TensorBoard's event files
 * (summaries.h), report.html (run_page.h), and whatever else is made to be looked at. The trainer says
 * what happened; nothing here changes a value, and a file that cannot be written costs a warning, not
 * the run. */
#ifndef PM_WATCH_H
#define PM_WATCH_H

#include "train/trainer.h"

/* Opens the files, dropping what they say of steps beyond t->step; no progress line yet. Again after
 * pm_watch_close, when the run goes on from an earlier step. Sets t->evaluated_step, where it is
 * UINT64_MAX, to the last evaluation in metrics.jsonl. */
void pm_watch_open(struct pm_trainer *t);
void pm_watch_close(struct pm_trainer *t);
/* The progress line begins, if there is none, and speed is measured from now on. */
void pm_watch_start(struct pm_trainer *t);
/* Before step t->step, whose batch this is. */
void pm_watch_batch(struct pm_trainer *t, const struct pm_batch *batch);
/* Update t->collected was read; r is its result, t->loss its total loss. */
void pm_watch_step(struct pm_trainer *t, const struct pm_step_result *r);
/* t->eval_metrics holds the metrics of an evaluation at t->step over count pictures, detail the rest
 * of what the evaluator found. Writes every file of the evaluation but metrics.jsonl. */
void pm_watch_evaluation(struct pm_trainer *t, uint64_t count, const struct cJSON *detail);
/* After that, and after the best checkpoint was chosen: writes the evaluation's line in metrics.jsonl.
 * pm_watch_open takes an evaluation without this line as not done. */
void pm_watch_evaluated(struct pm_trainer *t);
/* Before the state of t->step is saved: its lines of metrics.jsonl reach the disk first, because a
 * resumed run does not write them again. */
void pm_watch_saving(struct pm_trainer *t);
/* The state of t->step is a checkpoint now. */
void pm_watch_saved(struct pm_trainer *t);
/* Whether step t->step, just submitted, is to be looked at closely; then, nothing being under way and
 * t->snapshot being its state, the look. Fails only where a device does. */
bool pm_watch_due(const struct pm_trainer *t);
int pm_watch_look(struct pm_trainer *t);
/* Before the devices are closed. */
void pm_watch_leave(struct pm_trainer *t);
/* The run ends with err, or by a signal (0: none): before pm_trainer_close. */
void pm_watch_end(struct pm_trainer *t, int err, int signal_number);

#endif
