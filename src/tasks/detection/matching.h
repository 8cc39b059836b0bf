/* matching: decides for each anchor which true box it learns, by the matchers and similarities of
 * TensorFlow's Object Detection API (matchers/, core/region_similarity_calculator.py and
 * core/box_list_ops.py of tf-object-detection 0.0.3).
 *
 * Loader threads match on the host: matching needs boxes and anchors only, and one int32 for each
 * anchor is all that the device needs. There is no matrix of overlaps. Anchors are indexed once in
 * blocks of neighbours with a hull; blocks whose overlaps cannot matter are skipped. Skipping never
 * changes a result, whatever the order of the anchors is. */
#ifndef PM_MATCHING_H
#define PM_MATCHING_H

#include <pumice/options.h>

/* Values of an anchor's match; from 0 on, the index of the true box. */
enum pm_match_value { PM_NEGATIVE = -1, PM_IGNORED = -2 };

/* Boxes are ymin, xmin, ymax, xmax, or rotated: cy, cx, h, w, angle, with y from 0 to 1 and x in
 * the same unit (layers/rotated_overlap.h). The similarity of a true box and an anchor:
 *   PM_IOU              area of the intersection over area of the union; 0 without intersection
 *   PM_IOA              area of the intersection over the anchor's area; 0 for an anchor without
 *                       area (the API: NaN)
 *   PM_NEG_SQ_DIST      minus the sum of the four squared differences (the API takes the same from
 *                       a product of matrices, which loses digits)
 *   PM_THRESHOLDED_IOU  the true box's score where the IoU is above iou_threshold, otherwise 0
 * All are computed in float32, in the API's order of operations and without fused multiply-add, so
 * overlaps on a threshold fall on the same side. Rotated boxes have no PM_NEG_SQ_DIST. */
enum pm_similarity { PM_IOU, PM_IOA, PM_NEG_SQ_DIST, PM_THRESHOLDED_IOU };

enum pm_matcher_type { PM_MATCHER_ARGMAX, PM_MATCHER_BIPARTITE };

/* PM_MATCHER_ARGMAX: an anchor takes the true box with the highest similarity v, the first of
 * equals. It is matched if v >= matched_threshold, negative if v < unmatched_threshold, and ignored
 * between the two. Without negatives_lower_than_unmatched negative and ignored change places. With
 * ignore_thresholds every anchor is matched.
 * With force_match_for_each_row each true box with a weight above 0 then claims the anchor with the
 * highest similarity, the first of equals. Where several claim one anchor, the first of them gets
 * it.
 * PM_MATCHER_BIPARTITE: of all pairs of a true box with a weight above 0 and an anchor, the most
 * similar pair is matched and both are removed, until no true box is left. Of equally similar pairs
 * the first box's comes first, then the first anchor's. All other anchors are negative. Only
 * `similarity`, `iou_threshold` and `strict` count. (In the API, boxes with weight 0 shift the
 * indices of later boxes; here they do not.)
 * far_angles, for rotated boxes: a pair whose angles differ by more than a quarter of a turn has
 * the similarity -1 (matching_rotated.h). PM_MATCHER_ARGMAX then ignores anchors that have such a
 * pair, overlap no other true box, and have one with a near angle, as RBox-CNN does.
 * ignore_outside, as in keras-retinanet: anchors whose centre is not above and left of (1, 1), the
 * input's lower right corner, are ignored after all that.
 * A true box that overlaps no anchor (similarity 0) claims none: the codes of such a pair mean
 * nothing. strict does what the API of 2017 did: the last of several claims gets the anchor, and a
 * box without overlap claims the first anchor (bipartite: the first free one). */
struct pm_matcher {
    int type;                  /* enum pm_matcher_type */
    int similarity;            /* enum pm_similarity */
    float matched_threshold;   /* not below unmatched_threshold */
    float unmatched_threshold;
    float iou_threshold;       /* of PM_THRESHOLDED_IOU */
    bool ignore_thresholds, negatives_lower_than_unmatched, force_match_for_each_row, strict;
    bool ignore_outside;
    bool far_angles;           /* no option: training of rotated boxes sets it */
};
/* The options of struct pm_matcher, by the API's names. */
extern const struct pm_opt pm_matcher_opts[];
/* Returns 0, or PM_ECONFIG if the thresholds contradict each other. where: the object's place, as
 * for pm_opts_parse. */
int pm_matcher_check(const struct pm_matcher *m, const char *where);

/* An index of anchors: a constant, which any number of threads may use at once. */
struct pm_anchor_index;
/* anchors: [count][4], copied; coordinates are finite, ymin <= ymax and xmin <= xmax. */
struct pm_anchor_index *pm_anchor_index_create(const float *anchors, int count);
/* The same for rotated anchors [count][5] with finite numbers and sides not below 0. width: the
 * right border of the image, its width over its height; the lower border is 1. */
struct pm_anchor_index *pm_anchor_index_create_rotated(const float *anchors, int count,
                                                       float width);
/* Prunes the anchors that are not wholly inside 0..1 (rotated ones: with a corner outside of the
 * image), as Faster R-CNN's training does: their match
 * is PM_IGNORED, and no box claims them. Anchors that touch the border stay. Returns the number of
 * anchors left. Call it before the index is used. */
int pm_anchor_index_prune(struct pm_anchor_index *index);
void pm_anchor_index_destroy(struct pm_anchor_index **index);
int pm_anchor_index_count(const struct pm_anchor_index *index);
/* Numbers of an anchor and of a true box: 4, or 5 of rotated ones. */
int pm_anchor_index_numbers(const struct pm_anchor_index *index);
/* The anchor's four coordinates, or the five numbers of a rotated anchor. */
void pm_anchor_index_box(const struct pm_anchor_index *index, int anchor, float *box);

/* The true boxes of one picture. All pointers are borrowed. */
struct pm_truths {
    int count;
    const float *boxes;   /* [count][4], in the anchors' units, under the same conditions;
                           * [count][5] for rotated anchors */
    const float *weights; /* [count]; NULL: all 1. A box with weight 0 claims no anchor, but anchors
                           * take it if it is the most similar one: nothing is learnt there */
    const float *scores;  /* [count] 0 to 1, for PM_THRESHOLDED_IOU; NULL: all 1 */
};

/* A true box's most similar anchor, the first of equals; -1 if there is none or all overlaps
 * are 0. */
struct pm_truth_best { int anchor; float similarity; };

/* Writes each anchor's match to out [anchors]: the index of a true box, or enum pm_match_value. If
 * best is not NULL, writes each true box's most similar anchor to best [truths->count]; this costs
 * little more. Any thread may call it. */
void pm_match(const struct pm_matcher *m, const struct pm_anchor_index *index,
              const struct pm_truths *truths, int32_t *out, struct pm_truth_best *best);

#endif
