/* candidates: scores as integers in the floats' order, and a heap of candidates: score above index,
 * so that few of many candidates cost little, and the lowest index comes first among equal
 * scores. Call pm_heap_order() once after all are added. */
#ifndef PUMICE_CANDIDATES_H
#define PUMICE_CANDIDATES_H

#include "layers/vmath.h"

/* Returns the score's place in the floats' order; 0 for NaN. */
PM_INLINE uint32_t pm_score_key(float score)
{
    uint32_t bits, magnitude;

    memcpy(&bits, &score, sizeof bits);
    magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0;
    return bits > 0x80000000u ? 0x80000000u - magnitude : 0x80000000u + magnitude;
}

struct pm_heap {
    uint64_t *v; /* key << 32 | ~index, the largest first */
    size_t count;
};

PM_INLINE void pm_heap_sift(struct pm_heap *h, size_t at)
{
    const uint64_t x = h->v[at];

    for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
        child += child + 1 < h->count && h->v[child + 1] > h->v[child];
        if (h->v[child] < x)
            break;
        h->v[at] = h->v[child];
    }
    h->v[at] = x;
}

PM_INLINE void pm_heap_order(struct pm_heap *h)
{
    for (size_t i = h->count / 2; i-- > 0;)
        pm_heap_sift(h, i);
}

/* Removes the best candidate and returns its index. */
PM_INLINE uint32_t pm_heap_pop(struct pm_heap *h)
{
    const uint64_t top = h->v[0];

    h->v[0] = h->v[--h->count];
    if (h->count > 1)
        pm_heap_sift(h, 0);
    return ~(uint32_t)top;
}

PM_INLINE void pm_heap_add(struct pm_heap *h, uint32_t key, size_t index)
{
    h->v[h->count] = (uint64_t)key << 32 | (uint32_t)~index;
    h->count += key != 0;
}

#endif
