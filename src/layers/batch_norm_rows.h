/* batch_norm_rows: the kernel rows of batch_norm (batch_norm.c makes the calls). r = rstd =
 * 1 / sqrt(var + epsilon), z = (x - mean) r gamma + beta + residual, y = act(z), g = dy act'(z). */
#ifndef PUMICE_BATCH_NORM_ROWS_H
#define PUMICE_BATCH_NORM_ROWS_H

#include <pumice/kernel.h>

#include "batch_norm.params.h"

/* Mean and population variance of each channel, from x or from its moments (kernel.h).
 * "r?:x r?:moments t:part w:mean w:rstd w:var" */
extern const struct pm_kernel pm_row_batch_norm_stats;
/* The same of the valid rows only (valid_rows.h). With `unbiased`, var is divided by the number of
 * values - 1 if there are two or more; rstd is always that of the population variance. Without any
 * values mean is 0, rstd that of the variance 0, and var -1.
 * "r:x r:count t:part w:mean w:rstd w:var" */
extern const struct pm_kernel pm_row_batch_norm_valid_stats;
/* rstd of a given variance. Uses struct batch_norm_stats_params without rows. "r:var w:rstd" */
extern const struct pm_kernel pm_row_batch_norm_rstd;
/* Computes y. With count, y of padded rows is 0 and their x is not read; likewise dx and dresidual
 * of pm_row_batch_norm_dx. "r:x r:mean r:rstd r?:gamma r?:beta r?:residual w:y r?:count" */
extern const struct pm_kernel pm_row_batch_norm_apply;
/* sums [2][c]: sum of g, sum of g (x - mean) r. The same sums go to dbeta and dgamma. If y is
 * absent, z is computed from x and residual; pm_row_batch_norm_dx does the same.
 * "r:x r?:y r:dy r?:residual r:mean r:rstd r?:gamma r?:beta t:part w:sums u?:dbeta u?:dgamma
 * z:done" */
extern const struct pm_kernel pm_row_batch_norm_sums;
/* dbeta and dgamma of the valid rows only. sums is divided by the number of their values, so
 * pm_row_batch_norm_dx needs inv_count = 1. Without any values all are 0.
 * "r:x r?:y r:dy r?:residual r:mean r:rstd r?:gamma r?:beta r:count t:part w:sums u?:dbeta
 * u?:dgamma" */
extern const struct pm_kernel pm_row_batch_norm_valid_sums;
/* dx = gamma r (g - (sums[0] + (x - mean) r sums[1]) inv_count), dresidual = g.
 * "r:x r?:y r:dy r?:residual r:mean r:rstd r?:gamma r?:beta r?:sums w?:dx w?:dresidual
 * r?:count" */
extern const struct pm_kernel pm_row_batch_norm_dx;

/* Whether the backward rows get y (and not the residual). They need it for sigmoid, tanh and
 * hard_sigmoid. For relu, relu6 and leaky_relu z serves as well, and without a residual it costs
 * less than reading y. hard_swish needs z. */
bool pm_batch_norm_reads_y(int act, bool residual);

/* Returns the number of chunks for batch_norm_sums. */
int pm_batch_norm_chunks(int rows, int c);
/* Returns the rows of a chunk for batch_norm_stats. */
int pm_batch_norm_length(int rows, int c);
/* Picks two dispatches: a lane per chunk and channel (shader `one`) or four channels (`four`), then
 * a workgroup per channel (`combine`). */
bool pm_batch_norm_pick_two(const char *four, const char *one, const char *combine, int c,
                            int chunks, int level, struct pm_picks *out);

#endif
