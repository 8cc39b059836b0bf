/* row_moments: on the CPU, the moments of chunks of an image's rows. */
#ifndef PM_ROW_MOMENTS_H
#define PM_ROW_MOMENTS_H

#include <pumice/kernel.h>

/* Writes part [chunks][2][channels] of x [rows][channels]: for each chunk of `length` rows (the
 * last may be shorter) the mean of each channel, and the sum of squared distances from it. Runs on
 * all threads of the caller (pm_parallel). */
void pm_row_moments(const float *x, struct pm_rows size, int length, float *part);
/* The same for one chunk of `rows` rows, at least one; part [2][c]. */
void pm_chunk_moments(const float *x, int rows, int c, float *part);

#endif
