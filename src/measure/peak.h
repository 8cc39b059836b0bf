/* peak: measured peak rates of a device: multiply-adds that use only registers, and a copy too
 * large for its caches. */
#ifndef PM_PEAK_H
#define PM_PEAK_H

#include <pumice/device.h>

/* "w:y": value i is the sum of params.chains chains of x = x * a + b. The chains begin at i % 16 +
 * 0, 1, 2, .... struct fma_peak_params. */
extern const struct pm_kernel pm_fma_peak;
/* "r:x w:y": copies params.count times four floats. struct copy_peak_params. */
extern const struct pm_kernel pm_copy_peak;

#endif
