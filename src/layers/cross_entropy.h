/* cross_entropy: helpers shared by losses over rows. */
#ifndef PUMICE_CROSS_ENTROPY_H
#define PUMICE_CROSS_ENTROPY_H

#include <pumice/layer.h>

/* Computes loss = factor x sum of losses. factor = scale / count of weights that are not 0, or 0 if
 * all are 0. Both are NaN if the sum is not finite. losses and weights are [rows]. */
void pm_rows_mean(struct pm_calls *c, struct pm_tensor losses, struct pm_tensor weights,
                  float scale, struct pm_tensor loss, struct pm_tensor factor);

#endif
