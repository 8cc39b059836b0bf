/* region_loss: adds the losses of the regions of a detector's second stage. mask_loss and
 * keypoint_loss share it.
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

/* Appends the call. losses and used, the weights: [images * per]. loss: a scalar; factors:
 * [images], for the backward pass. */
void pm_region_loss_sum(struct pm_calls *c, const struct region_loss_sum_params *p,
                        struct pm_tensor losses, struct pm_tensor used, struct pm_tensor loss,
                        struct pm_tensor factors);

#endif
