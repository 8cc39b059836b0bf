/* Shared by the references of random layers: Philox4x32-10 as published (constants of the paper,
 * 64-bit products), keyed by FNV-1a of the layer's name. */
#ifndef RANDOM_REF_H
#define RANDOM_REF_H

#include "check.h"

static inline uint64_t ref_fnv1a(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* Word `element` of the stream of one example; examples are counted in the whole batch. */
static inline uint32_t ref_word(uint32_t example, uint32_t element)
{
    const uint64_t stream = ref_fnv1a(CHECK_NAME);
    uint32_t c[4] = { element / 4, example, CHECK_STEP, (uint32_t)(stream >> 32) };
    uint32_t k[2] = { (uint32_t)(CHECK_SEED ^ stream), (uint32_t)(CHECK_SEED >> 32) };

    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
        const uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
                                   (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a };
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return c[element % 4];
}

#endif
