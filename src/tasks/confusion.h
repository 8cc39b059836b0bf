/* confusion: how often pixels of each class were said to be of each, and what follows of it. Counts are
 * whole numbers of 64 bits, so that nothing depends on the order of the pictures. */
#ifndef PM_CONFUSION_H
#define PM_CONFUSION_H

#include <pumice/base.h>

struct pm_confusion {
    size_t classes;
    uint64_t *count; /* [truth][predicted], owned */
};
void pm_confusion_create(struct pm_confusion *c, size_t classes);
void pm_confusion_free(struct pm_confusion *c);

/* Adds pixels, but for those of the label ignore; how many counted, and of how many the class was said. */
struct pm_confusion_added {
    uint64_t pixels, right;
};
struct pm_confusion_added pm_confusion_add(struct pm_confusion *c, const int32_t *labels,
                                           const int32_t *classes, size_t count, int32_t ignore);

struct pm_confusion_metrics {
    uint64_t pixels;       /* all of them; without any the others are NAN */
    double miou;           /* mean over the classes that are or were said to be */
    double pixel_accuracy;
    double mean_accuracy;  /* of the classes that are */
    double fw_iou;         /* IoU of the classes, by their pixels */
};
struct pm_confusion_metrics pm_confusion_metrics(const struct pm_confusion *c);
/* Of one class: pixels that are, that were said to be, and both. */
struct pm_confusion_class {
    uint64_t truth, predicted, right;
    double iou; /* NAN: no pixel is of the class */
};
struct pm_confusion_class pm_confusion_class(const struct pm_confusion *c, size_t k);

#endif
