/* train_metrics: how well the net does on what it trains on (run.train_metrics): of the batches whose
 * steps are logged, the classes said in the training pass, with that pass's batch statistics and dropout,
 * against the labels. The running ones count every such batch since the run began, over resumes too;
 * those of the batch count it alone. Nothing but the classes is made on the devices, in every
 * step; they are read when a step is logged. */
#ifndef PM_TRAIN_METRICS_H
#define PM_TRAIN_METRICS_H

#include "clones/clones.h"
#include "experiment/experiment.h"

struct pm_train_metrics;
struct pm_train_values {
    struct pm_train_output of;
    double v[PM_TRAIN_METRICS]; /* in the order of of.names; NAN: nothing has counted */
};
/* NULL where of.node is. batch: examples of a step. slots: steps under way at once. */
struct pm_train_metrics *pm_train_metrics_create(struct pm_train_output of, int batch, int slots);
void pm_train_metrics_destroy(struct pm_train_metrics **m);
/* Keeps the labels of a batch whose step will be logged. */
void pm_train_metrics_batch(struct pm_train_metrics *m, int slot, const struct pm_batch *batch);
/* The step of that slot being collected: counts it. */
void pm_train_metrics_count(struct pm_train_metrics *m, int slot, const struct pm_clones *c,
                            struct pm_train_values *out);

/* The running counts as part of a run's state; nothing where m is NULL. Keep: as of now. Restore: back
 * to those kept. */
void pm_train_metrics_keep(struct pm_train_metrics *m);
void pm_train_metrics_restore(struct pm_train_metrics *m);
/* Appends those kept as a member of a JSON object, `, "train_confusion": "12 0 3 ..."`; and reads the
 * member's text back. A text that is NULL or has another number of classes counts as zeros. */
void pm_train_metrics_print(const struct pm_train_metrics *m, struct pm_str *json);
void pm_train_metrics_read(struct pm_train_metrics *m, const char *text);

#endif
