/* tiles: processes rows of few values (a pixel's classes) PM_TILE at a time. So vectors run across
 * the rows instead of along them. A tile holds [value][row]. PM_TILE is larger than 16 because the
 * compiler unrolls shorter loops before it vectorises. */
#ifndef PUMICE_TILES_H
#define PUMICE_TILES_H

#include "layers/vmath.h"

enum { PM_TILE = 32, PM_TILE_VALUES = 64 };

/* Copies values 0..count-1 of PM_TILE rows, which begin every `stride` values, to and from the
 * tile. */
PM_INLINE void pm_tile_take(const float *x, size_t stride, int count, float *tile)
{
    for (int r = 0; r < PM_TILE; r++)
        for (int i = 0; i < count; i++)
            tile[i * PM_TILE + r] = x[(size_t)r * stride + (size_t)i];
}

PM_INLINE void pm_tile_put(const float *tile, size_t stride, int count, float *y)
{
    for (int r = 0; r < PM_TILE; r++)
        for (int i = 0; i < count; i++)
            y[(size_t)r * stride + (size_t)i] = tile[i * PM_TILE + r];
}

#endif
