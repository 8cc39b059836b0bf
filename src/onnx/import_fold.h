/* import_fold, shared by its files: computes the current node if all inputs are constants. */
#ifndef PM_ONNX_IMPORT_FOLD_H
#define PM_ONNX_IMPORT_FOLD_H

#include "onnx/import_private.h"

enum { FOLD_LARGEST = 1 << 24 }; /* limit of elements in a computed constant */

/* Converts to an integer, clamped to +-2^40. */
int64_t import_within(double v);
/* Allocates numbers for a constant of this shape and returns their count; NULL if the size is
 * refused. */
double *import_fold_allocate(struct import *m, int rank, const int64_t *dim, size_t *count);

int import_fold_gather(struct import *m);
int import_fold_gather_nd(struct import *m);
int import_fold_scatter(struct import *m);
int import_fold_concat(struct import *m);
int import_fold_slice(struct import *m);

#endif
