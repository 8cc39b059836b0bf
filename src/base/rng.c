/* Philox4x32-10 and the functions built on it. */
#include <pumice/rng.h>

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/angles.h"

void pm_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53 * c0, p1 = (uint64_t)0xcd9e8d57 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

struct pm_rng pm_rng_make(uint64_t seed, uint64_t stream, uint32_t step, uint32_t example)
{
    return (struct pm_rng){
        .counter = { 0, example, step, (uint32_t)(stream >> 32) },
        .key = { (uint32_t)seed ^ (uint32_t)stream, (uint32_t)(seed >> 32) },
        .used = 4,
    };
}

uint32_t pm_rng_u32(struct pm_rng *r)
{
    if (r->used == 4) {
        pm_philox(r->counter, r->key, r->word);
        r->counter[0]++;
        r->used = 0;
    }
    return r->word[r->used++];
}

double pm_rng_uniform(struct pm_rng *r)
{
    return (pm_rng_u32(r) >> 8) * 0x1p-24;
}

static uint64_t draw(struct pm_rng *r, bool wide)
{
    uint64_t low = pm_rng_u32(r);

    return wide ? low | (uint64_t)pm_rng_u32(r) << 32 : low;
}

int64_t pm_rng_int(struct pm_rng *r, int64_t lo, int64_t hi)
{
    assert(lo <= hi);
    uint64_t range = (uint64_t)hi - (uint64_t)lo + 1; /* 0: all 2^64 */
    bool wide = range == 0 || range > UINT64_C(1) << 32;
    uint64_t x = draw(r, wide);

    if (range == 0)
        return (int64_t)x;
    /* The first 2^w mod range draws are rejected, so every remainder is equally frequent. */
    uint64_t refused = wide ? -range % range : (UINT64_C(1) << 32) % range;
    while (x < refused)
        x = draw(r, wide);
    return (int64_t)((uint64_t)lo + x % range);
}

double pm_rng_normal(struct pm_rng *r)
{
    double u = 1 - pm_rng_uniform(r); /* (0, 1]: its logarithm is finite */
    double v = pm_rng_uniform(r);

    return sqrt(-2 * log(u)) * cos(2 * PM_PI * v);
}

double pm_rng_truncated(struct pm_rng *r)
{
    double z = pm_rng_normal(r);

    while (fabs(z) >= 2)
        z = pm_rng_normal(r);
    return z;
}

/* A balanced Feistel network permutes 0..4^h-1, the smallest such domain that holds n. A result of
 * n or more is fed in again until it is below n (at most 4 times on average). */
uint64_t pm_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i)
{
    assert(n >= 1 && n <= UINT64_C(1) << 62 && i < n);
    int half = 1;

    while (half < 31 && UINT64_C(1) << 2 * half < n)
        half++;
    const uint32_t mask = (uint32_t)((UINT64_C(1) << half) - 1);
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };

    do {
        uint32_t left = (uint32_t)(i >> half), right = (uint32_t)i & mask;
        for (uint32_t round = 0; round < 8; round++) {
            const uint32_t counter[4] = { right, round, (uint32_t)epoch, (uint32_t)(epoch >> 32) };
            uint32_t word[4];
            pm_philox(counter, key, word);
            uint32_t mixed = left ^ (word[0] & mask);
            left = right;
            right = mixed;
        }
        i = (uint64_t)left << half | right;
    } while (i >= n);
    return i;
}
