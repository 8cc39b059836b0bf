/* per_class: precision, recall and F1 of each class, from what the task counted by class, for
 * `pumice eval` and as per_class.csv in the folder of an evaluation. */
#ifndef PM_PER_CLASS_H
#define PM_PER_CLASS_H

#include <pumice/base.h>

struct cJSON;

/* detail: the evaluator's, with labels, labels_offset and per_class { count, predicted, right }.
 * Returns a list of { label, name, support, predicted, right, precision, recall, f1 } in the classes'
 * order, NULL where the task counts nothing by class. support: pictures of the class; predicted:
 * pictures said to be of it; where pixels are counted it is these, and iou is there, too; name: null where unknown; a share of none: null. */
struct cJSON *pm_per_class_rows(const struct cJSON *detail);
/* FOLDER/per_class.csv with these rows of the evaluation of a step; the folder is made. Names are
 * escaped as pm_str_csv says. */
int pm_per_class_write(const char *folder, uint64_t step, const struct cJSON *rows);

#endif
