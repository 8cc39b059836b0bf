/* vector: macros for vectorised loops in plain C.
 *
 * PM_CLONES before a function makes the compiler build it for AVX-512, AVX2 and the oldest x86-64,
 * and choose at load time. It is off under sanitizers (PUMICE_NO_CLONES) and on other processors
 * than x86, whose base instruction set already has vectors.
 *
 * PM_SIMD before a loop tells the compiler that its iterations are independent of each other. The
 * compiler cannot see that itself in kernels that may run in place (y == x).
 *
 * PM_INLINE is for functions that are instantiated with constant arguments. */
#ifndef PM_VECTOR_H
#define PM_VECTOR_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(PUMICE_NO_CLONES)
#define PM_CLONES __attribute__((target_clones("avx512f","arch=haswell", "default")))
#else
#define PM_CLONES
#endif
#ifdef __clang__
#define PM_SIMD _Pragma("clang loop vectorize(assume_safety)")
#else
#define PM_SIMD _Pragma("GCC ivdep")
#endif
#define PM_INLINE static inline __attribute__((always_inline))

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the floats between a row of `c` floats and the one to prefetch, about 8 KiB later. */
static inline size_t pm_row_ahead(size_t c)
{
    return (2048 / c + 1) * c;
}

/* Fetches `count` floats at p into the cache before a loop reads (write = 0) or writes (1) them. p
 * may be outside of the buffer. A core's own prefetching follows too few lines ahead to use
 * the memory's full rate. */
PM_INLINE void pm_prefetch(const float *p, int count, const int write)
{
    for (int k = 0; k < count; k += 16) {
        if (write)
            __builtin_prefetch(p + k, 1);
        else
            __builtin_prefetch(p + k, 0);
    }
}

/* Copies `count` floats to memory that is not read soon, past the cache: the processor need not
 * read the lines that it overwrites. Call pm_copied_past_cache before another thread reads them. */
PM_INLINE void pm_copy_past_cache(float *to, const float *from, int count)
{
#ifdef __SSE2__
    if (((uintptr_t)to | (uintptr_t)count * sizeof(float)) % 16 == 0) {
        for (int k = 0; k < count; k += 4)
            _mm_stream_ps(to + k, _mm_loadu_ps(from + k));
        return;
    }
#endif
    memcpy(to, from, (size_t)count * sizeof(float));
}

PM_INLINE void pm_copied_past_cache(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

#endif
