/* class_detail: what a report shows of a classification's evaluation beside its metrics: counts by
 * class, which classes were taken for each other, and examples to look at. */
#ifndef PM_CLASS_DETAIL_H
#define PM_CLASS_DETAIL_H

#include <pumice/task.h>

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
/* labels, labels_offset, per_class { count, predicted, right }, confusion [ label, predicted, times,
 * ... ]; unanswered: the number of examples without an answer, their logits not being finite, where
 * there are any. Those count as pictures of their label, and as no answer. */
void pm_class_detail_report(const struct pm_class_detail *d, struct cJSON *object);
/* The first two of these alone, of any task. */
void pm_class_detail_labels(const struct pm_task_facts *s, struct cJSON *object);
/* "  disc 97.1 %", of a class in a prediction's JSON; member holds the share. */
void pm_class_detail_print(const struct cJSON *row, const char *member, struct pm_str *out);
/* The most wrong ones first, then right ones chosen by their records' hashes: two thirds to one
 * third where there are enough of both. */
int pm_class_detail_samples(const struct pm_class_detail *d,
                            struct pm_class_example list[PM_MAX_SAMPLES]);

#endif
