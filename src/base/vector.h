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

#endif
