/* import_fold, for its files: what computes the current node, whose inputs are all constants. */
#ifndef PM_ONNX_IMPORT_FOLD_H
#define PM_ONNX_IMPORT_FOLD_H

#include "onnx/import_private.h"

enum { FOLD_LARGEST = 1 << 24 }; /* elements of a computed constant */

/* The integer, within +-2^40. */
int64_t import_within(double v);
/* Numbers for a constant of this shape, and their count; NULL when it is refused. */
double *import_fold_allocate(struct import *m, int rank, const int64_t *dim, size_t *count);

int import_fold_gather(struct import *m);
int import_fold_gather_nd(struct import *m);
int import_fold_scatter(struct import *m);
int import_fold_concat(struct import *m);
int import_fold_slice(struct import *m);

#endif
