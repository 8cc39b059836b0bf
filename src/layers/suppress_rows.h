/* suppress_rows: greedy suppression of overlapping boxes (non-maximum suppression), for detections,
 * proposals and the choice of hard examples. It is exact: all devices keep the same boxes, because
 * scores are compared as integers in the floats' order, and overlaps are compared with the
 * threshold as correctly rounded float32 quotients. Soft suppression multiplies scores by
 * exponentials, so there devices may differ by rounding.
 *
 * A list is a class of an image. Its candidates are the boxes whose score is above score_threshold
 * (a NaN never is). The best candidate is kept; candidates whose intersection over union with it is
 * above iou_threshold are dropped; then the best of the rest is kept, and so on. Among equal scores
 * the box with the lowest index comes first. Boxes without area neither suppress nor are
 * suppressed. The corners of a box may be in any order. These are the rules of TensorFlow's
 * NonMaxSuppression and ONNX's.
 *
 * Boxes may be rotated: five numbers, cy, cx, h, w, angle, instead of four (rotated_overlap.h). */
#ifndef PUMICE_SUPPRESS_ROWS_H
#define PUMICE_SUPPRESS_ROWS_H

#include <pumice/layer.h>

struct pm_suppress {
    float score_threshold; /* -INFINITY: every number is a candidate */
    float iou_threshold;   /* 0..1 */
    /* > 0: soft suppression (Bodla et al. 2017). Overlapping candidates stay. A kept box multiplies
     * their scores by exp(-iou^2 / (2 sigma)) if the overlap is at most iou_threshold, else by 0.
     * Those not above score_threshold then are dropped. 0: hard. */
    float sigma;
};
/* Appends the calls. boxes: ymin, xmin, ymax, xmax, [n,N,4] the same for all classes, or [n,N,K,4];
 * [n,N,5] or [n,N,K,5] for rotated boxes.
 * scores [n,N,K], or any shape with n N K elements. valid I32 [n]: the number of candidates of each
 * image; later boxes are not. PM_NO_TENSOR: all N. kept I32 [n,K,M]: indices 0..N-1 of the kept
 * boxes of each list, the best first, then -1. kept_scores F32 [n,K,M]: their scores, then 0. M,
 * the most boxes of a list, is the last axis of kept. No gradient. */
void pm_suppress(struct pm_calls *c, struct pm_suppress s, struct pm_tensor boxes,
                 struct pm_tensor scores, struct pm_tensor valid, struct pm_tensor kept,
                 struct pm_tensor kept_scores);

/* Appends: best [n,N] = the largest of the K scores of a box. NaN only if all are NaN. */
void pm_suppress_best(struct pm_calls *c, struct pm_tensor scores, struct pm_tensor best);
/* Appends: the best `each` classes of each kept box [n,M] above score_threshold, with their scores.
 * entry_scores F32 and entry_classes I32 are [n,M,each], classes -1 for absent entries. The first
 * score is that of kept_scores. */
void pm_suppress_classes(struct pm_calls *c, float score_threshold, struct pm_tensor scores,
                         struct pm_tensor kept, struct pm_tensor kept_scores,
                         struct pm_tensor entry_scores, struct pm_tensor entry_classes);
/* Appends: the best D entries of each image after clipping, all classes together; equal scores in
 * the order of the entries. Entries whose box has no area in the window are dropped.
 *   kept [n,K,M], entry_scores [n,K,M] and no entry_classes: the entry's class is its list.
 *   kept [n,M], entry_scores and entry_classes [n,M,each]: from pm_suppress_classes.
 * boxes: as for pm_suppress; [n,N,K,4] only in the first case. windows [n,4] or PM_NO_TENSOR for
 * 0, 0, 1, 1. Rotated boxes have no windows and are not clipped. change_frame: boxes become
 * relative to the window. out[0..4]: boxes [n,D,4] or [n,D,5], scores [n,D], classes I32 [n,D],
 * count I32 [n], indices I32 [n,D]; 0 after the last. */
void pm_suppress_merge(struct pm_calls *c, struct pm_tensor boxes, struct pm_tensor kept,
                       struct pm_tensor entry_scores, struct pm_tensor entry_classes,
                       struct pm_tensor windows, bool change_frame,
                       const struct pm_tensor out[5]);

#endif
