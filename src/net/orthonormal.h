/* orthonormal: makes vectors orthonormal, for initial values (PM_INIT_ORTHOGONAL). */
#ifndef PM_ORTHONORMAL_H
#define PM_ORTHONORMAL_H

#include <stddef.h>

/* Replaces `count` vectors of this length, count <= length, by orthonormal ones that span the same
 * spaces in order. Vectors of normal numbers give a matrix that is uniform among all orthonormal
 * ones: it is the Q of their QR factors, with a positive diagonal of R. The bits do not depend on
 * the number of threads. */
void pm_orthonormalise(double *vectors, size_t count, size_t length);

#endif
