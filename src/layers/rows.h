/* rows: kernel rows that belong to no single layer. */
#ifndef PM_ROWS_H
#define PM_ROWS_H

#include <pumice/kernel.h>

#include "add2.params.h"

/* y = a + b, "r:a r:b w:y": sums the gradients of a value with several readers. */
extern const struct pm_kernel pm_row_add2;

#endif
