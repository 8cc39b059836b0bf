/* classification: this task's object, for its source file and its tests. */
#ifndef PM_CLASSIFICATION_H
#define PM_CLASSIFICATION_H

#include <pumice/task.h>

/* Options of the config's sections that classification adds. */
struct pm_classification_data {
    int labels_offset; /* subtracted from labels and from the number of classes */
};
struct pm_classification_loss {
    float aux_weight;  /* NAN = the net's */
};
enum pm_export_output { PM_EXPORT_LOGITS, PM_EXPORT_PROBABILITIES };
struct pm_classification_export {
    int output;        /* enum pm_export_output */
};
struct pm_task {
    struct pm_task_facts facts;
    struct pm_classification_loss loss;
    struct pm_classification_export export;
    float label_smoothing;
};
/* Returns PM_ECONFIG if the facts contradict each other. */
int pm_classification_check(const struct pm_task *t);

#endif
