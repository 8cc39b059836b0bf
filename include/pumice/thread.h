/* thread: parallel loops and the few primitives the clones and the loader need. */
#ifndef PUMICE_THREAD_H
#define PUMICE_THREAD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls fn(ctx, begin, end) over disjoint ranges that cover 0..count-1, from up to
 * pm_threads() threads; ranges are multiples of grain (>= 1) but for the last. The split depends on
 * the number of threads: a reduction must use blocks of its own with a fixed size. */
void pm_parallel(size_t count, size_t grain, void (*fn)(void *ctx, size_t begin, size_t end),
                 void *ctx);
/* Threads this thread's parallel loops use; at first the number of cores (OMP_NUM_THREADS). */
int pm_threads(void);
void pm_threads_set(int count);

#ifdef __cplusplus
}
#endif

#endif
