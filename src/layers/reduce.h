/* reduce: sums, maxima and minima over axes, as calls for other layers. For example, the gradient
 * of a value that is repeated along axes is a sum over them. */
#ifndef PUMICE_REDUCE_H
#define PUMICE_REDUCE_H

#include <pumice/layer.h>

enum pm_reduce { PM_REDUCE_SUM, PM_REDUCE_MAX, PM_REDUCE_MIN };

/* y = scale * the sum of x. It sums over the axes in which `with_ones`, of x's rank, has 1 and x
 * has more. y may have any shape with the same number of values. */
void pm_reduce_sum(struct pm_calls *c, struct pm_tensor x, struct pm_shape with_ones, float scale,
                   struct pm_tensor y);

#endif
