/* strided: tensors seen with other axes: permuted, repeated, reduced. An axis is a size and what an
 * index along it counts for in the memory of one or two other tensors. */
#ifndef PUMICE_STRIDED_H
#define PUMICE_STRIDED_H

#include <pumice/layer.h>

#include "strided.params.h"

/* Six axes at least, slowest first; those in front that are not needed have size 1, stride 0. */
struct pm_axes {
    int size[PM_MAX_RANK], a[PM_MAX_RANK], b[PM_MAX_RANK];
    int used; /* axes at the end, at least 1 */
};
/* Axes 0..rank-1 of sizes and strides, brought to the fewest that reach the same places in the same
 * order: those of size 1 go, neighbours that are one line of memory in all become one. b may be
 * NULL. */
struct pm_axes pm_axes_make(int rank, const int *size, const int *a, const int *b);
/* Strides of a row-major tensor; 0 for axes of size 1. */
void pm_axes_strides(struct pm_shape s, int stride[PM_MAX_RANK]);
/* Whether vectors of four along the last axis serve: it is a multiple of 4 and one line in memory
 * (stride 1), the other axes' strides are multiples of 4. flat: stride 0 along it will do, too. */
bool pm_axes_four(int rank, const int *size, const int *stride, bool flat);

/* y = scale x, element by element of y; x's axes have the strides a. */
extern const struct pm_kernel pm_row_strided_copy;
void pm_strided_copy(struct pm_calls *c, const struct pm_axes *axes, float scale,
                     struct pm_tensor x, struct pm_tensor y);

#endif
