/* box_shapes: compares detections with true objects by their masks and by their keypoints. */
#ifndef PM_BOX_SHAPES_H
#define PM_BOX_SHAPES_H

#include "tasks/detection/box_lists.h"

/* The overlap of two masks, as pm_runs_overlap; 0 if one is missing. */
double pm_box_mask_overlap(const struct pm_box_detection *d, const struct pm_box_truth *truth,
                           bool crowd);
/* The masks of one class for coco_metrics: the 100 detections with the highest scores. A true
 * object without an annotated mask is ignored. The arrays are the arena's. */
struct pm_coco_picture pm_masks_of_class(const struct pm_boxes_by_class *b, int label,
                                         struct pm_arena *a);

/* The keypoints of a class. */
struct pm_box_points {
    /* [points] borrowed: the standard deviation of annotators at this point, in shares of the
     * square root of the object's area; NAN: objects of the class do not have the point */
    const double *sigma;
    int points;
};
/* COCO's object keypoint similarity: the mean of exp(-d^2 / (2 (2 sigma)^2 area)) over the labelled
 * points of the truth, with d the distance to the detection's point. Without a labelled point, over
 * all points of the class, with d the distance to a box with the truth's centre and three times its
 * height and width. 0 if the detection has no keypoints; a detected point that is not finite adds
 * 0. */
double pm_box_point_similarity(const struct pm_box_detection *d, const struct pm_box_truth *truth,
                               const struct pm_box_points *of);
/* The keypoints of one class for coco_metrics: the 20 detections with the highest scores, each with
 * the area of the box around its points. A true object without a labelled point is ignored. The
 * arrays are the arena's. */
struct pm_coco_picture pm_points_of_class(const struct pm_boxes_by_class *b, int label,
                                          const struct pm_box_points *of, struct pm_arena *a);

/* COCO's deviations for its 17 keypoints of a person, in the order of its annotations: nose, eyes,
 * ears, shoulders, elbows, wrists, hips, knees, ankles. */
enum { PM_COCO_POINTS = 17 };
extern const double pm_coco_sigmas[PM_COCO_POINTS];

#endif
