/* gemm: c[m][n] = a[m][k] b[k][n] + (add ? c : 0), row-major float32. Runs through oneDNN if it is
 * built in, else OpenBLAS. oneDNN is twice as fast on CPUs that Debian 12's OpenBLAS does not know.
 *
 * OpenBLAS has one thread count and one pool for the process. A lock keeps clones apart, and the
 * caller's pm_threads() is set under it. Same shapes and threads give the same bits. */
#ifndef PM_GEMM_H
#define PM_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/* Row lengths are in floats as stored. a_across: a is stored [k][m]; b_across: b is stored
 * [n][k]. */
struct pm_gemm {
    int m, n, k;
    bool a_across, b_across, add;
    int lda, ldb, ldc;
};
void pm_gemm(const struct pm_gemm *g, const float *a, const float *b, float *c);
/* Whether oneDNN is built in and not switched off by PM_NO_DNNL=1. */
bool pm_dnnl_wanted(void);
/* Sets the thread count of this thread's OpenMP libraries (OpenBLAS, oneDNN) to its
 * pm_threads(). */
void pm_library_threads(void);

#endif
