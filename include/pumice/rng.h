/* rng: counter-based random numbers (Philox4x32-10, Salmon et al. 2011).
 *
 * Every draw is a function of (seed, stream, step, example, element), never of order or thread:
 * the same on every device and after a resume. shaders/lib/philox.glsl is the twin. */
#ifndef PUMICE_RNG_H
#define PUMICE_RNG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ten rounds. counter and key are read, out gets four uniform 32-bit words. */
void pm_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* A sequential reader of one stream, for host code. Counter words: {block, example, step, hash high
 * word of the stream}; key: {seed low ^ stream low, seed high}. */
struct pm_rng {
    uint32_t counter[4], key[2], word[4];
    int used; /* words taken of the current block, 4 = none left */
};
/* stream: pm_hash of a name. */
struct pm_rng pm_rng_make(uint64_t seed, uint64_t stream, uint32_t step, uint32_t example);
uint32_t pm_rng_u32(struct pm_rng *r);
double pm_rng_uniform(struct pm_rng *r);               /* [0, 1), multiple of 2^-24: exact as float */
int64_t pm_rng_int(struct pm_rng *r, int64_t lo, int64_t hi); /* lo..hi inclusive, unbiased */
double pm_rng_normal(struct pm_rng *r);                /* Box-Muller, two uniforms a value */
double pm_rng_truncated(struct pm_rng *r);             /* normal, redrawn while |z| >= 2 */

/* A keyed permutation of 0..n-1: where index i lands. n in 1..2^62. Cycle-walking Feistel network,
 * so an epoch's order needs no table. */
uint64_t pm_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);

#ifdef __cplusplus
}
#endif

#endif
