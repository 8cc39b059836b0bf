/* class_detail: the details of a classification's evaluation in a report: counts by class, confused
 * classes, and example pictures. */
#ifndef PM_CLASS_DETAIL_H
#define PM_CLASS_DETAIL_H

#include <pumice/task.h>

struct pm_unpack;

struct pm_class_example {
    uint64_t record;
    int label, predicted;
    bool right;
    double probability;       /* of the predicted class; NAN: the logits were not finite */
    double label_probability;
};

struct pm_class_detail;
struct pm_class_detail *pm_class_detail_create(const struct pm_task_facts *s);
void pm_class_detail_destroy(struct pm_class_detail **d);
void pm_class_detail_add(struct pm_class_detail *d, const struct pm_class_example *e);
/* Appends everything that was added, for pm_class_detail_merge. */
void pm_class_detail_pack(const struct pm_class_detail *d, struct pm_str *out);
/* Adds what was packed by a detail of as many classes. If u->damaged is set, a part may have been
 * added. */
void pm_class_detail_merge(struct pm_class_detail *d, struct pm_unpack *u);
/* Adds labels, labels_offset, per_class { count, predicted, right }, confusion [ label, predicted,
 * times, ... ]. unanswered: the number of examples without a prediction, because their logits were
 * not finite; only if there are any. Such an example counts as a picture of its label, but not as a
 * prediction. */
void pm_class_detail_report(const struct pm_class_detail *d, struct cJSON *object);
/* Adds only labels and labels_offset, for any task. */
void pm_class_detail_labels(const struct pm_task_facts *s, struct cJSON *object);
/* Appends " disc 97.1 %" for a class in a prediction's JSON; member holds the share. */
void pm_class_detail_print(const struct cJSON *row, const char *member, struct pm_str *out);
/* Lists the most wrong examples first, then right ones selected by their records' hashes: two
 * thirds and one third if there are enough of both. */
int pm_class_detail_samples(const struct pm_class_detail *d,
                            struct pm_class_example list[PM_MAX_SAMPLES]);

#endif
