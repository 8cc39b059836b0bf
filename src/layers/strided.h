/* strided: tensors with other axes: permuted, repeated, reduced. An axis has a size and, for one or
 * two other tensors, the stride of its index in memory. */
#ifndef PUMICE_STRIDED_H
#define PUMICE_STRIDED_H

#include <pumice/layer.h>

#include "strided.params.h"

/* Slowest axis first. Unused leading axes have size 1, stride 0. */
struct pm_axes {
    int size[PM_MAX_RANK], a[PM_MAX_RANK], b[PM_MAX_RANK];
};
/* Reduces axes 0..rank-1 of sizes and strides to the fewest that reach the same places in the same
 * order. Axes of size 1 are removed. Neighbours that form one line in the memory of all tensors are
 * merged. b may be NULL. */
struct pm_axes pm_axes_make(int rank, const int *size, const int *a, const int *b);
/* Fills the strides of a row-major tensor; 0 for axes of size 1. */
void pm_axes_strides(struct pm_shape s, int stride[PM_MAX_RANK]);
/* Whether vectors of four work along the last axis. Its size must be a multiple of 4 and its stride
 * 1; the other axes' strides must be multiples of 4. */
bool pm_axes_four(const int size[PM_MAX_RANK], const int stride[PM_MAX_RANK]);
/* Returns the number of axes from the first that is not 1 to the last, at least 1. */
uint32_t pm_axes_rank(const int size[PM_MAX_RANK]);

/* Returns the place of element i of a row-major tensor of these sizes. */
static inline size_t pm_axes_place(const int size[PM_MAX_RANK], const int stride[PM_MAX_RANK],
                                   size_t i)
{
    size_t at = 0;

    for (int k = PM_MAX_RANK - 1; k > 0; k--) {
        at += i % (size_t)size[k] * (size_t)stride[k];
        i /= (size_t)size[k];
    }
    return at + i * (size_t)stride[0];
}
/* Returns the number of elements from `begin` to the end of its line along the last axis, or to
 * `end`. */
static inline size_t pm_axes_run(const int size[PM_MAX_RANK], size_t begin, size_t end)
{
    const size_t left = (size_t)size[PM_MAX_RANK - 1] - begin % (size_t)size[PM_MAX_RANK - 1];

    return left < end - begin ? left : end - begin;
}

/* y = scale x, element by element of y. x's axes have the strides a. */
extern const struct pm_kernel pm_row_strided_copy;
void pm_strided_copy(struct pm_calls *c, const struct pm_axes *axes, float scale,
                     struct pm_tensor x, struct pm_tensor y);

#endif
