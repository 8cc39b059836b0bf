/* cross_entropy: what losses of rows have in common. */
#ifndef PUMICE_CROSS_ENTROPY_H
#define PUMICE_CROSS_ENTROPY_H

#include <pumice/layer.h>

/* loss = factor x sum of losses, factor = scale / count of weights that are not 0, or 0 when none is.
 * NaN, both, when the sum is not finite. losses and weights are [rows]. */
void pm_rows_mean(struct pm_calls *c, struct pm_tensor losses, struct pm_tensor weights, float scale,
                  struct pm_tensor loss, struct pm_tensor factor);

#endif
