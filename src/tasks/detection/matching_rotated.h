/* matching_rotated: the overlaps of rotated anchors and true boxes for matching.c, which decides
 * what they mean. A constant after it is made; any number of threads may use it at once.
 *
 * An anchor and a true box whose angles differ by more than a quarter of a turn have the overlap
 * PM_FAR_ANGLE if the matcher asks for it. The code of such a pair would be large although a
 * rectangle is the same after half a turn. This is a rule of training, as in RBox-CNN; overlaps of
 * suppression and of metrics do not know it. */
#ifndef PM_MATCHING_ROTATED_H
#define PM_MATCHING_ROTATED_H

#include <stdint.h>

#include "layers/rotated_overlap.h"

#define PM_FAR_ANGLE (-1.0f)
enum { PM_ROTATED_BLOCK = 64 }; /* the largest block */

struct pm_rotated_index;
/* A true box. */
struct pm_rotated_truth {
    struct pm_rotated_one one;
    float area, angle, reach;
};

/* anchors: [count][5], finite, sides not below 0. Blocks are `block` <= PM_ROTATED_BLOCK anchors in
 * their order. */
struct pm_rotated_index *pm_rotated_index_create(const float *anchors, int count, int block);
void pm_rotated_index_destroy(struct pm_rotated_index **index);
struct pm_rotated_truth pm_rotated_truth_of(const float box[PM_ROTATED_BOX]);

/* Writes for each block an IoU that none of its anchors exceeds, 0 only if all are 0. */
void pm_rotated_index_limits(const struct pm_rotated_index *index,
                             const struct pm_rotated_truth *t, float *limit);
/* Writes to v [n], n <= PM_ROTATED_BLOCK, the IoU, or with over_anchor the intersection over the
 * anchor's area, of t and n anchors from `first` on. far: pairs with far angles have PM_FAR_ANGLE.
 * A value that is below `needed` may be replaced by 0, if needed is above 0. */
void pm_rotated_index_overlaps(const struct pm_rotated_index *index, int first, int n,
                               const struct pm_rotated_truth *t, bool over_anchor, bool far,
                               float needed, float *v);
/* The rule of far angles. open [anchors]: true for anchors that may overlap no true box [count].
 * Stays true for those that have a far angle to one of the boxes and a near one to another, and
 * overlap none of the latter; becomes false for the others. */
void pm_rotated_index_only_far(const struct pm_rotated_index *index,
                               const struct pm_rotated_truth *truths, int count, bool *open);
/* Whether a corner of an anchor is outside of 0..1 and 0..width by more than `border`. */
bool pm_rotated_index_outside(const struct pm_rotated_index *index, int anchor, float width,
                              float border);
/* Whether the centre of an anchor is not above 1 and left of width. */
bool pm_rotated_index_beyond(const struct pm_rotated_index *index, int anchor, float width);
/* The anchor's five numbers. */
void pm_rotated_index_box(const struct pm_rotated_index *index, int anchor,
                          float box[PM_ROTATED_BOX]);

#endif
