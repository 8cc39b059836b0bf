/* bfloat16: the upper half of a float, rounded to nearest, ties to even. NaN stays NaN. */
#ifndef PM_BFLOAT16_H
#define PM_BFLOAT16_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void pm_bfloat16_from(uint16_t *restrict to, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t u;

        memcpy(&u, &from[i], sizeof u);
        const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        const uint32_t quiet = u >> 16 | 0x40;

        to[i] = (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
    }
}

static inline void pm_bfloat16_to(float *restrict to, const uint16_t *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t u = (uint32_t)from[i] << 16;

        memcpy(&to[i], &u, sizeof u);
    }
}

#endif
