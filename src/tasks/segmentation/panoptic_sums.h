/* panoptic_sums: the running sums of panoptic_metrics, for the files that add to them, pack them
 * and merge them. */
#ifndef PM_PANOPTIC_SUMS_H
#define PM_PANOPTIC_SUMS_H

#include "tasks/segmentation/panoptic_metrics.h"

enum { PM_PANOPTIC_THRESHOLDS = 10 };

struct pm_panoptic_judged {
    double score;
    bool right;
};
/* Predicted instances of a class at a threshold. */
struct pm_panoptic_verdicts {
    struct pm_panoptic_judged *list; /* owned */
    size_t count, capacity;
    uint64_t missed;
};
struct pm_panoptic_class {
    bool thing, said, is; /* said, is: the class was predicted, or is in the ground truth; only
                           * instances that average precision counts */
    uint64_t matched, wrong, missed;
    double iou; /* sum over the matched segments */
    double covered, area;
    struct pm_panoptic_verdicts at[PM_PANOPTIC_THRESHOLDS];
};
/* What a true segment adds to the sums of its class. */
struct pm_panoptic_term {
    int label;
    bool matched;
    double area;    /* pixels, or the share of the picture */
    double covered; /* largest IoU with a predicted segment of its class */
};
struct pm_panoptic_metrics {
    struct pm_panoptic_metrics_options o;
    int *things;                  /* copy of o.things; owned */
    struct pm_panoptic_class *of; /* [classes], owned */
    int *slot;                    /* [classes * label_divisor], owned: 1 + index of a segment in the
                                   * current picture */
    struct pm_coco_metrics *coco; /* of instances, owned; NULL: not wanted */
    uint64_t pictures;            /* number of those added to it */
    /* In the order in which they were added, which decides the last bits of the sums; owned. */
    struct pm_panoptic_term *term;
    size_t term_count, term_capacity;
};

/* Adds to the sums of the class, and keeps the term. */
void pm_panoptic_metrics_add_term(struct pm_panoptic_metrics *m,
                                  const struct pm_panoptic_term *term);

#endif
