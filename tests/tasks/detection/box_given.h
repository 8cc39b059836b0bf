/* box_given: boxes for the tests of metrics. */
#ifndef PM_BOX_GIVEN_H
#define PM_BOX_GIVEN_H

#include "tasks/detection/box_metrics.h"

/* Adds a picture whose file has no name. */
static inline void add_boxes(struct pm_box_metrics *m, uint64_t record, int truths,
                             const struct pm_box_truth *truth, int detections,
                             const struct pm_box_detection *detection)
{
    pm_box_metrics_add(m, &(struct pm_box_picture){ .record = record, .truth = truth,
                                                    .truths = truths, .detection = detection,
                                                    .detections = detections });
}

static inline struct pm_box_metrics *rotated_metrics(int classes)
{
    return pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = classes, .recall_upper = 1, .rotated = true });
}

/* A rotated detection; its upright box is what surrounds it. */
static inline struct pm_box_detection rotated_found(int label, double score, double cy, double cx,
                                                    double h, double w, double angle)
{
    struct pm_box_detection d = { .score = score, .label = label,
                                  .rotated = { cy, cx, h, w, angle } };

    pm_box_rotated.bounds(d.rotated, &d.box);
    return d;
}

#endif
