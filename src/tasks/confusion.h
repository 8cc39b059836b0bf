/* confusion: the confusion matrix of pixels and the metrics computed from it. Counts are 64-bit
 * integers, so that nothing depends on the order of the pictures. */
#ifndef PM_CONFUSION_H
#define PM_CONFUSION_H

#include <pumice/base.h>

struct pm_confusion {
    size_t classes;
    uint64_t *count; /* [truth][predicted], owned */
};
void pm_confusion_create(struct pm_confusion *c, size_t classes);
void pm_confusion_free(struct pm_confusion *c);

/* Adds pixels, except those of the label ignore. Returns the number of counted pixels, and how many
 * of them are correct. */
struct pm_confusion_added {
    uint64_t pixels, right;
};
struct pm_confusion_added pm_confusion_add(struct pm_confusion *c, const int32_t *labels,
                                           const int32_t *classes, size_t count, int32_t ignore);

struct pm_confusion_metrics {
    uint64_t pixels;       /* number of counted pixels; if 0 the others are NAN */
    double miou;           /* mean over classes in the ground truth or predicted */
    double pixel_accuracy;
    double mean_accuracy;  /* over classes in the ground truth */
    double fw_iou;         /* mean IoU, weighted by the classes' pixels */
};
struct pm_confusion_metrics pm_confusion_metrics(const struct pm_confusion *c);
/* One class: pixels in the ground truth, predicted pixels, and correct pixels. */
struct pm_confusion_class {
    uint64_t truth, predicted, right;
    double iou; /* NAN: the ground truth has no pixel of the class */
};
struct pm_confusion_class pm_confusion_class(const struct pm_confusion *c, size_t k);

#endif
