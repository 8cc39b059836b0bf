/* add2: the kernel row that adds two tensors. calls.c uses it to sum the gradients of a value with
 * several readers. */
#ifndef PM_ADD2_H
#define PM_ADD2_H

#include <pumice/kernel.h>

#include "add2.params.h"

/* y = a + b, element by element, "r:a r:b w:y". */
extern const struct pm_kernel pm_row_add2;

#endif
