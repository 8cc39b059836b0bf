/* step_numbers: what the line of a logged step has besides losses and speeds: metrics of the
 * classes that the training net predicts (train_metrics.h), and the task's numbers of the batch
 * (pm_task_row.batch_metrics). With several processes each counts its own part of the batch, and
 * all get the numbers of the whole batch. */
#ifndef PM_STEP_NUMBERS_H
#define PM_STEP_NUMBERS_H

#include "observers/run_facts.h"
#include "observers/train_metrics.h"

struct pm_step_numbers;
struct pm_batch_number {
    const struct pm_batch_metric *of; /* borrowed */
    double value;
};
struct pm_step_values {
    struct pm_train_values train; /* of.metric_count is 0 if there are none */
    const struct pm_batch_number *batch; /* [count], valid until the next step is counted */
    int count;
};
/* slots: most steps under way at once. */
struct pm_step_numbers *pm_step_numbers_create(const struct pm_experiment *e, int slots);
void pm_step_numbers_destroy(struct pm_step_numbers **n);
/* Most values of a step. */
size_t pm_step_numbers_most(const struct pm_step_numbers *n);
/* Call it before a logged step runs in the slot with this batch. */
void pm_step_numbers_batch(struct pm_step_numbers *n, const struct pm_run_facts *run, int slot,
                           const struct pm_batch *batch);
/* Counts that step. Call it while the step is collected, in all processes. Fails if another process
 * failed. */
int pm_step_numbers_count(struct pm_step_numbers *n, const struct pm_run_facts *run, int slot,
                          struct pm_step_values *out);
/* Part of a run's state; NULL: none. See pm_train_metrics_keep and the functions after it. */
struct pm_train_metrics *pm_step_numbers_train(struct pm_step_numbers *n);

#endif
