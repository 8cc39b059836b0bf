/* train_metrics: metrics on training batches (run.train_metrics). They compare the classes
 * predicted in the training pass with the labels, for the batches of logged steps. That pass uses
 * batch statistics and dropout. Running metrics count every such batch since the run began, also
 * over resumes. Batch metrics count only the last such batch. The devices only compute the classes,
 * in every step. The host reads them when a step is logged. */
#ifndef PM_TRAIN_METRICS_H
#define PM_TRAIN_METRICS_H

#include "clones/clones.h"
#include "experiment/experiment.h"

struct pm_train_metrics;
struct pm_train_values {
    struct pm_train_output of;
    const double *v; /* in the order of of.metrics; NAN: nothing was counted; valid until the next
                      * step is counted */
};
/* Returns NULL if of.node is NULL. batch: examples of a step. slots: most steps under way at
 * once. */
struct pm_train_metrics *pm_train_metrics_create(struct pm_train_output of, int batch, int slots);
void pm_train_metrics_destroy(struct pm_train_metrics **m);
/* Returns the number of metrics; 0 if m is NULL. */
size_t pm_train_metrics_values(const struct pm_train_metrics *m);
/* Keeps the labels of a batch whose step will be logged. */
void pm_train_metrics_batch(struct pm_train_metrics *m, int slot, const struct pm_batch *batch);
/* Counts the step of that slot, for the clones of this process. Call it while the step is
 * collected. */
void pm_train_metrics_count(struct pm_train_metrics *m, int slot, const struct pm_clones *c);
/* With several processes: pm_train_metrics_pack appends the counts of the step, and sets them to 0.
 * pm_train_metrics_merge adds those of one process. */
struct pm_unpack;
void pm_train_metrics_pack(struct pm_train_metrics *m, struct pm_str *out);
void pm_train_metrics_merge(struct pm_train_metrics *m, struct pm_unpack *u);
/* Adds the counts of the step to the running counts, and computes the metrics. */
void pm_train_metrics_finish(struct pm_train_metrics *m, struct pm_train_values *out);

/* The running counts as part of a run's state; does nothing if m is NULL. Keep copies the current
 * counts. Restore returns to the copy. */
void pm_train_metrics_keep(struct pm_train_metrics *m);
void pm_train_metrics_restore(struct pm_train_metrics *m);
/* pm_train_metrics_print appends the copy as a member of a JSON object, `, "train_confusion": "12 0
 * 3 ..."`. pm_train_metrics_read reads the member's text into the copy. If the text is NULL or has
 * another number of classes, the counts are zero. */
void pm_train_metrics_print(const struct pm_train_metrics *m, struct pm_str *json);
void pm_train_metrics_read(struct pm_train_metrics *m, const char *text);

#endif
