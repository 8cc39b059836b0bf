/* per_class: precision, recall and F1 of each class, from the task's counts per class. For `pumice
 * eval` and for per_class.csv in the folder of an evaluation. */
#ifndef PM_PER_CLASS_H
#define PM_PER_CLASS_H

#include <pumice/base.h>

struct cJSON;

/* Returns a list of { label, name, support, predicted, right, precision, recall, f1 } in the
 * classes' order, or NULL if the task has no counts per class. detail: the evaluator's, with
 * labels, labels_offset and per_class { count, predicted, right, iou }. support: number of units
 * (pm_task_row.unit) of the class; predicted: of units predicted as the class. iou: added if
 * per_class has it. name: null if unknown. A ratio with denominator 0 is null. */
struct cJSON *pm_per_class_rows(const struct cJSON *detail);
/* Writes FOLDER/per_class.csv with these rows of the evaluation of a step; creates the folder.
 * Names are escaped as described at pm_str_csv. */
int pm_per_class_write(const char *folder, uint64_t step, const struct cJSON *rows);

#endif
