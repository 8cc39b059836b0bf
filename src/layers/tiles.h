/* tiles: rows of few values (a pixel's classes) taken PM_TILE at a time, so that vectors run across the
 * rows instead of along them. A tile holds [value][row]. PM_TILE is larger than 16 because loops of so
 * few turns are unrolled before the compiler looks for vectors. */
#ifndef PUMICE_TILES_H
#define PUMICE_TILES_H

#include "layers/vmath.h"

enum { PM_TILE = 32, PM_TILE_VALUES = 64 };

/* Values 0..count-1 of PM_TILE rows that begin every `stride` values; to and from the tile. */
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
