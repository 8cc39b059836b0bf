/* confusion: with M[t][p] the number of pixels of class t predicted as p, row_t and col_p its sums,
 *
 *     IoU_c = M_cc / (row_c + col_c - M_cc)
 *     miou  = mean of IoU_c over the classes with row_c + col_c - M_cc > 0
 *
 * A class that is predicted but absent from the ground truth counts as 0 in miou. Its own IoU is
 * not reported, as in DeepLab. If no pixel counts, DeepLab reports a miou of 0; here there is
 * none. */
#include "tasks/confusion.h"

#include <math.h>

void pm_confusion_create(struct pm_confusion *c, size_t classes)
{
    *c = (struct pm_confusion){ .classes = classes,
                                .count = pm_calloc(classes * classes, sizeof *c->count) };
}

void pm_confusion_free(struct pm_confusion *c)
{
    pm_free(c->count);
    *c = (struct pm_confusion){ 0 };
}

struct pm_confusion_added pm_confusion_add(struct pm_confusion *c, const int32_t *labels,
                                           const int32_t *classes, size_t count, int32_t ignore)
{
    struct pm_confusion_added added = { 0 };

    for (size_t i = 0; i < count; i++) {
        if (labels[i] == ignore)
            continue;
        c->count[(size_t)labels[i] * c->classes + (size_t)classes[i]]++;
        added.right += labels[i] == classes[i];
        added.pixels++;
    }
    return added;
}

struct pm_confusion_class pm_confusion_class(const struct pm_confusion *c, size_t k)
{
    struct pm_confusion_class r = { .right = c->count[k * c->classes + k], .iou = NAN };

    for (size_t i = 0; i < c->classes; i++) {
        r.truth += c->count[k * c->classes + i];
        r.predicted += c->count[i * c->classes + k];
    }
    if (r.truth > 0)
        r.iou = (double)r.right / (double)(r.truth + r.predicted - r.right);
    return r;
}

struct pm_confusion_metrics pm_confusion_metrics(const struct pm_confusion *c)
{
    double iou = 0, accuracy = 0, weighted = 0, right = 0;
    uint64_t pixels = 0;
    int seen = 0, present = 0;

    for (size_t k = 0; k < c->classes; k++) {
        const struct pm_confusion_class r = pm_confusion_class(c, k);

        pixels += r.truth;
        right += (double)r.right;
        seen += r.truth + r.predicted > 0;
        if (r.truth == 0)
            continue;
        present++;
        iou += r.iou;
        accuracy += (double)r.right / (double)r.truth;
        weighted += (double)r.truth * r.iou;
    }
    const double all = (double)pixels;
    return (struct pm_confusion_metrics){
        .pixels = pixels,
        .miou = iou / seen,
        .pixel_accuracy = right / all,
        .mean_accuracy = accuracy / present,
        .fw_iou = weighted / all,
    };
}
