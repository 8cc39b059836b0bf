/* picture_tiles: windows of one size that cover a picture. */
#include "data/picture_tiles.h"

#include <pumice/base.h>

int pm_tile_grid_of(const struct pm_tiling *t, int height, int width, const char *where,
                    struct pm_tile_grid *out)
{
    *out = (struct pm_tile_grid){ .size = { height, width } };
    for (int k = 0; k < 2; k++) {
        const int size = out->size[k];
        const bool cut = t->side[k] > 0 && t->side[k] < size;

        out->side[k] = cut ? t->side[k] : size;
        out->step[k] = cut ? t->side[k] - t->overlap[k] : size;
        /* Further tiles until the last one reaches the picture's end. */
        out->count[k] = 1 + (size - out->side[k] + out->step[k] - 1) / out->step[k];
    }
    if (pm_tile_count(out) > PM_MOST_TILES)
        return pm_fail(PM_ECONFIG, "%s: tiles of %d x %d pixels, %d and %d pixels apart, would cut "
                       "%d x %d pixels into %zu; at most %d are allowed: set a larger "
                       "predict.tile, or a smaller predict.overlap", where, out->side[0],
                       out->side[1], out->step[0], out->step[1], height, width, pm_tile_count(out),
                       (int)PM_MOST_TILES);
    return PM_OK;
}

size_t pm_tile_count(const struct pm_tile_grid *g)
{
    return (size_t)g->count[0] * (size_t)g->count[1];
}

/* The first pixel of row or column k. */
static int begin_of(const struct pm_tile_grid *g, int axis, int k)
{
    return k == g->count[axis] - 1 ? g->size[axis] - g->side[axis] : k * g->step[axis];
}

struct pm_tile pm_tile_at(const struct pm_tile_grid *g, size_t i)
{
    const size_t columns = (size_t)g->count[1];

    return (struct pm_tile){ begin_of(g, 0, (int)(i / columns)), begin_of(g, 1, (int)(i % columns)),
                             g->side[0], g->side[1] };
}

void pm_tile_neighbours(const struct pm_tile_grid *g, int axis, int k, int *first, int *end)
{
    const int begin = begin_of(g, axis, k), side = g->side[axis];

    for (*first = k; *first > 0 && begin_of(g, axis, *first - 1) > begin - side;)
        --*first;
    for (*end = k + 1; *end < g->count[axis] && begin_of(g, axis, *end) < begin + side;)
        ++*end;
}
