/* transposed: shaders of data gradients read weights as [taps][k][c], but variables are
 * [taps][c][k]. The first call of a step transposes all variables that the plan's data gradients
 * (and the forward pass of conv2d_transpose) need, and the copies serve all micro-batches. Calls
 * whose weights are computed in the step, or are too large to be kept, transpose them into their
 * own scratch. */
#ifndef PM_TRANSPOSED_H
#define PM_TRANSPOSED_H

#include <pumice/kernel.h>

struct pm_calls;
/* Returns the copy [taps][columns][rows] of the weights [taps][rows][columns], for the call that k,
 * params and count describe. PM_NO_TENSOR: the call shall use w, because
 * - the device runs no shaders, or the first variant of the call on this device needs no copy;
 * - w is no variable, or too large;
 * - the plan saves memory. */
struct pm_tensor pm_calls_transposed(struct pm_calls *c, const struct pm_kernel *k,
                                     const void *params, size_t count, struct pm_tensor w,
                                     int taps, int rows, int columns);
/* Puts the call that makes the copies at the front of the finished list, if there are copies. */
void pm_calls_transpose(struct pm_calls *c);

/* t [taps][columns][rows] = w [taps][rows][columns], on the host. */
void pm_transpose_taps(const float *w, int taps, int rows, int columns, float *t);

#endif
