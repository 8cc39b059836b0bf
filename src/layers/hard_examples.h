/* hard_examples: chooses the anchors of each image that count in a detector's loss, as TensorFlow's
 * HardExampleMiner. Anchors are taken by falling loss; an anchor is left out if its predicted box
 * overlaps that of an anchor already taken by more than iou_threshold. With a ratio, P of the taken
 * anchors are matched. A taken anchor then counts if it is matched, or if the number of unmatched
 * taken anchors up to it is at most max(min_negatives, floor(ratio P)). Ignored anchors are thus
 * kept while the number is within the limit; they have no loss. */
#ifndef PUMICE_HARD_EXAMPLES_H
#define PUMICE_HARD_EXAMPLES_H

#include <pumice/layer.h>

struct pm_hard_examples {
    int most;                   /* anchors of an image that are taken; 0: all */
    float iou_threshold;        /* 0..1 */
    float loc_weight, cls_weight; /* the loss that orders anchors; of cls alone if loc_weight is 0,
                                   * of loc alone if cls_weight is 0 */
    float ratio;                /* 0: every taken anchor counts */
    int min_negatives;
};

/* Values of an option for the loss that orders anchors. */
enum { PM_HARD_BOTH, PM_HARD_CLASSIFICATION, PM_HARD_LOCALIZATION };
#define PM_HARD_LOSS_TYPES "both|classification|localization"
/* Sets h's loc_weight and cls_weight for such a value. loc, cls: the weights of PM_HARD_BOTH. */
void pm_hard_examples_order(struct pm_hard_examples *h, int loss_type, float loc, float cls);

/* The choice, F32, written by the calls. */
struct pm_mined {
    struct pm_tensor kept;      /* [n, N]: 1 for anchors that count, else 0 */
    struct pm_tensor positives; /* [n]: number of matched anchors that count, of each image */
    struct pm_tensor negatives; /* [n]: of unmatched ones; without ignored anchors */
};

/* Makes the choice's values for a loss layer. kept is n->saved[i]; the other two are outputs of the
 * plan, NAME/mined_positives and NAME/mined_negatives. images, anchors: n, N. */
struct pm_mined pm_mined_make(struct pm_calls *c, struct pm_node *n, int i, int images,
                              int anchors);

/* Appends the calls. loc, cls [n, N]: losses of the anchors. boxes [n, N, 4]: their predicted
 * boxes. matches I32 [n, N]. */
void pm_hard_examples(struct pm_calls *c, struct pm_hard_examples h, struct pm_tensor loc,
                      struct pm_tensor cls, struct pm_tensor boxes, struct pm_tensor matches,
                      const struct pm_mined *out);

#endif
