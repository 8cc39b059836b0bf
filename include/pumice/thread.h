/* thread: parallel loops. */
#ifndef PUMICE_THREAD_H
#define PUMICE_THREAD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls fn(ctx, begin, end) for disjoint ranges that cover 0..count-1, from up to pm_threads()
 * threads. All ranges except the last are multiples of grain (>= 1). The ranges depend on the
 * number of threads, so a reduction must use blocks of a fixed size. */
void pm_parallel(size_t count, size_t grain, void (*fn)(void *ctx, size_t begin, size_t end),
                 void *ctx);
/* Number of threads for the parallel loops of this thread; initially the number of cores
 * (OMP_NUM_THREADS). */
int pm_threads(void);
void pm_threads_set(int count);

#ifdef __cplusplus
}
#endif

#endif
