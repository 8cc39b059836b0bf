/* watch: what a training run tells people: the progress line, metrics.jsonl, and whatever else is
 * made to be looked at. The trainer says what happened; nothing here changes a value, and a file that
 * cannot be written costs a warning, not the run. */
#ifndef PM_WATCH_H
#define PM_WATCH_H

#include "train/trainer.h"

/* Opens the files, dropping what they say of steps beyond t->step; no progress line yet. Again after
 * pm_watch_close, when the run goes on from an earlier step. */
int pm_watch_open(struct pm_trainer *t);
void pm_watch_close(struct pm_trainer *t);
/* The progress line begins, if there is none, and speed is measured from now on. */
void pm_watch_start(struct pm_trainer *t);
/* Update t->collected was read; r is its result, t->loss its total loss. */
void pm_watch_step(struct pm_trainer *t, const struct pm_step_result *r);
/* t->eval_metrics holds the metrics of an evaluation at t->step over count pictures. */
void pm_watch_evaluation(struct pm_trainer *t, uint64_t count);

#endif
