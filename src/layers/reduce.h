/* reduce: sums, maxima and minima over axes, as calls for layers that need them beside their own
 * rows: the gradient of what was repeated along axes is a sum over them. */
#ifndef PUMICE_REDUCE_H
#define PUMICE_REDUCE_H

#include <pumice/layer.h>

enum pm_reduce { PM_REDUCE_SUM, PM_REDUCE_MAX, PM_REDUCE_MIN };

/* y = scale * the sum of x over the axes in which `with_ones`, of x's rank, has 1 where x has more.
 * y's own shape may be any of as many values. */
void pm_reduce_sum(struct pm_calls *c, struct pm_tensor x, struct pm_shape with_ones, float scale,
                   struct pm_tensor y);

#endif
