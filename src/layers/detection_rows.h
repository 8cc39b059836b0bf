/* detection_rows: the kernel calls of the layer detection_loss (detection_loss.c). The calls of a
 * level read its map of codes or scores, [n, h, w, anchors x numbers], and give a loss for each
 * anchor, or the map's gradient. */
#ifndef PUMICE_DETECTION_ROWS_H
#define PUMICE_DETECTION_ROWS_H

#include <pumice/layer.h>

#include "detection_loss.params.h"

/* The ground truth of a batch of n examples; see detection_loss.c. */
struct pm_detection_truth {
    struct pm_tensor anchors;  /* [N, 4] */
    struct pm_tensor matches;  /* I32 [n, N] */
    struct pm_tensor boxes;    /* [n, M, 4] */
    struct pm_tensor classes;  /* I32 [n, M] or F32 [n, M, labels] */
    struct pm_tensor weights;  /* [n, M] */
};

/* The localization losses of a level's anchors: losses [n, per], not yet divided. */
void pm_detection_loc(struct pm_calls *c, const struct detection_loc_params *p,
                      struct pm_tensor codes, const struct pm_detection_truth *t,
                      struct pm_tensor losses);
/* Their gradient: factors[0] times that of each anchor. kept: F32 [n, N], a factor of each anchor,
 * or PM_NO_TENSOR. */
void pm_detection_loc_back(struct pm_calls *c, const struct detection_loc_params *p,
                           struct pm_tensor codes, const struct pm_detection_truth *t,
                           struct pm_tensor kept, struct pm_tensor factors,
                           struct pm_tensor dcodes);

/* The classification losses of a level's anchors: losses [n, per]. lse [n, per]: the logarithm of
 * the sum of exponentials of the softmax, for the gradient; PM_NO_TENSOR for other losses. */
void pm_detection_cls(struct pm_calls *c, const struct detection_cls_params *p,
                      struct pm_tensor logits, const struct pm_detection_truth *t,
                      struct pm_tensor losses, struct pm_tensor lse);
/* Their gradient: factors[1] times that of each anchor. */
void pm_detection_cls_back(struct pm_calls *c, const struct detection_cls_params *p,
                           struct pm_tensor logits, const struct pm_detection_truth *t,
                           struct pm_tensor lse, struct pm_tensor kept, struct pm_tensor factors,
                           struct pm_tensor dlogits);

#endif
