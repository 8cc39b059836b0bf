/* evaluator: runs the net without its loss, on one device, over one pass of the evaluation
 * split. */
#ifndef PM_EVALUATOR_H
#define PM_EVALUATOR_H

#include "experiment/experiment.h"

struct pm_evaluator;
struct pm_replicas;
/* v: values on d, borrowed (of a training clone, or loaded from a checkpoint). */
int pm_evaluator_create(struct pm_experiment *e, struct pm_device *d, struct pm_variables *v,
                        struct pm_evaluator **out);
void pm_evaluator_destroy(struct pm_evaluator **ev);
/* Later runs also write the task's files with predictions (pm_task_row.score_write) into this
 * folder, which they create. The path is copied. */
void pm_evaluator_write_to(struct pm_evaluator *ev, const char *folder);
/* Later runs share the pass with the other processes of r (borrowed), which must all run it. Only
 * rank 0 has results; they are those of one process. */
void pm_evaluator_share(struct pm_evaluator *ev, struct pm_replicas *r);
/* Runs exactly one pass (or eval.max_batches). Writes the metrics into metrics, the number of
 * examples into count, and the number of damaged records that were skipped (data.on_corrupt) into
 * skipped. detail (may be NULL) receives the other content of report.html, for example sample
 * pictures. */
int pm_evaluator_run(struct pm_evaluator *ev, struct cJSON *metrics, struct cJSON *detail,
                     uint64_t *count, uint64_t *skipped);

#endif
