/* Matrix products through oneDNN or OpenBLAS: gemm.h has the contract. */
#include "device/cpu/gemm.h"

#include <cblas.h>
#ifndef PUMICE_NO_OPENMP
#include <omp.h>
#endif
#ifdef PUMICE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif
#include <pthread.h>
#include <stdlib.h>

#include <pumice/thread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pm_library_threads(void)
{
#ifndef PUMICE_NO_OPENMP
    omp_set_num_threads(pm_threads());
#endif
}

bool pm_dnnl_wanted(void)
{
#ifdef PUMICE_DNNL
    const char *no = getenv("PM_NO_DNNL");

    return !no || !*no || *no == '0';
#else
    return false;
#endif
}

/* Multiplies with the library. False: the library is missing or refuses. */
static bool library_gemm(const struct pm_gemm *g, const float *a, const float *b, float *c)
{
#ifdef PUMICE_DNNL
    if (!pm_dnnl_wanted())
        return false;
    pm_library_threads();
    return dnnl_sgemm(g->a_across ? 'T' : 'N', g->b_across ? 'T' : 'N', g->m, g->n, g->k, 1, a,
                      g->lda, b, g->ldb, g->add ? 1 : 0, c, g->ldc) == dnnl_success;
#else
    (void)g, (void)a, (void)b, (void)c;
    return false;
#endif
}

void pm_gemm(const struct pm_gemm *g, const float *a, const float *b, float *c)
{
    static int threads; /* OpenBLAS's thread count as last set here; 0: not yet set */

    if (library_gemm(g, a, b, c))
        return;
    pthread_mutex_lock(&lock);
    pm_library_threads();
#ifdef PUMICE_NO_OPENMP
    const int wanted = 1; /* the thread sanitizer does not know the library's own waits */
#else
    const int wanted = pm_threads();
#endif
    if (threads != wanted)
        openblas_set_num_threads(threads = wanted);
    cblas_sgemm(CblasRowMajor, g->a_across ? CblasTrans : CblasNoTrans,
                g->b_across ? CblasTrans : CblasNoTrans, g->m, g->n, g->k, 1, a, g->lda, b, g->ldb,
                g->add ? 1 : 0, c, g->ldc);
    pthread_mutex_unlock(&lock);
}
