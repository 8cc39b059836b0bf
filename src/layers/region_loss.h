/* region_loss: adds the losses of the regions of a detector's second stage, and checks the inputs
 * of these losses. mask_loss and keypoint_loss share it.
 *
 *     loss   = sum over examples of factor * (sum of its losses)
 *     factor = scale / max(pixels * (sum of the weights), 1)
 *
 * The weights are those of the example, or with `together` of all examples: then all have one
 * factor. If the loss is not finite, it and all factors are NaN, so the step is rejected. */
#ifndef PUMICE_REGION_LOSS_H
#define PUMICE_REGION_LOSS_H

#include <pumice/layer.h>

#include "region_loss.params.h"

/* Checks the inputs 0 to 2 of both layers: logits [n * R, h, w, numbers], boxes [n, R, 4] and
 * matches [n, R]. numbers, need: as in pm_need_box_maps. Returns PM_ECONFIG with one line. */
int pm_region_loss_check(const struct pm_node *n, const char *numbers, const char *need);
/* Appends the call. It sets p.scale: the weight of the loss times this plan's share of the batch,
 * divided by the number of examples unless all are added together. losses and used, the weights of
 * the losses: [images * per]. loss: a scalar; factors: [images], for the backward pass. */
void pm_region_loss_sum(struct pm_calls *c, struct region_loss_sum_params p, float weight,
                        struct pm_tensor losses, struct pm_tensor used, struct pm_tensor loss,
                        struct pm_tensor factors);

#endif
