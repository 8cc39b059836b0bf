/* picture_tiles, internal to data/, tasks/ and jobs/: windows of one size that cover a picture.
 *
 * On each axis tile k begins at k * (tile - overlap). The last one is moved back so that it ends
 * with the picture; nothing is padded. A picture that is smaller than a tile on an axis has one
 * tile of its own size there. So every stretch of at most `overlap` pixels of an axis is whole in
 * one tile: if it begins at a, in the last tile that begins at or before a. */
#ifndef PUMICE_DATA_PICTURE_TILES_H
#define PUMICE_DATA_PICTURE_TILES_H

#include <stdbool.h>
#include <stddef.h>

/* The options: height, width in pixels. */
struct pm_tiling {
    int side[2];    /* of a tile; 0, 0: pictures are not cut */
    int overlap[2]; /* of neighbouring tiles, at least; 0 .. side - 1 */
};
/* The tiles of a picture, row by row. */
struct pm_tile_grid {
    int size[2];  /* of the picture */
    int side[2];  /* of every tile */
    int step[2];  /* between the beginnings of tiles, but the last */
    int count[2]; /* rows, columns */
};
struct pm_tile { int y, x, height, width; };

enum { PM_MOST_TILES = 1 << 20 }; /* of a picture */
/* Sets the tiles of a picture. Without sides it is one tile. PM_ECONFIG if there are more than
 * PM_MOST_TILES. where: the picture's name for messages. */
int pm_tile_grid_of(const struct pm_tiling *t, int height, int width, const char *where,
                    struct pm_tile_grid *out);
size_t pm_tile_count(const struct pm_tile_grid *g);
/* Returns tile i, in pixels of the picture. i < pm_tile_count(g). */
struct pm_tile pm_tile_at(const struct pm_tile_grid *g, size_t i);
/* Sets the rows or columns first .. end - 1 (axis 0 or 1) whose tiles have a pixel in common with
 * row or column k, which is one of them. */
void pm_tile_neighbours(const struct pm_tile_grid *g, int axis, int k, int *first, int *end);

#endif
