/* rng: counter-based random numbers (Philox4x32-10, Salmon et al. 2011).
 *
 * Every number is a function of (seed, stream, step, example, element), not of order or thread. It
 * is therefore the same on every device and after a resume. shaders/lib/philox.glsl is the GLSL
 * version. */
#ifndef PUMICE_RNG_H
#define PUMICE_RNG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ten rounds of Philox. out receives four uniform 32-bit words. */
void pm_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Sequential access to one stream, for host code. Counter words: {block, example, step, high
 * word of the stream's hash}; key: {low word of the seed ^ low word of the hash, high word of
 * the seed}. */
struct pm_rng {
    uint32_t counter[4], key[2], word[4];
    int used; /* words used of the current block; 4 = all */
};
/* stream: pm_hash of a name. */
struct pm_rng pm_rng_make(uint64_t seed, uint64_t stream, uint32_t step, uint32_t example);
uint32_t pm_rng_u32(struct pm_rng *r);
double pm_rng_uniform(struct pm_rng *r);             /* [0, 1), multiple of 2^-24: exact as float */
int64_t pm_rng_int(struct pm_rng *r, int64_t lo, int64_t hi); /* lo..hi inclusive, unbiased */
double pm_rng_normal(struct pm_rng *r);                /* Box-Muller, two uniforms a value */
double pm_rng_truncated(struct pm_rng *r);             /* normal, redrawn while |z| >= 2 */

/* A keyed permutation of 0..n-1: returns the position of index i. n in 1..2^62. It is a
 * cycle-walking Feistel network, so the order of an epoch needs no table. */
uint64_t pm_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);

#ifdef __cplusplus
}
#endif

#endif
