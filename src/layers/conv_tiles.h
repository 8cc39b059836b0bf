/* conv_tiles: the tiled kernels of convolutions, which conv_pick.c arranges as levels. There are
 * two structures. R (shaders/conv2d_r.comp, conv2d_filter_r.comp) is for CPU drivers, S
 * (conv2d_s.comp, conv2d_filter_s.comp) for GPUs. Every tile accepts every shape. This header is
 * private to conv_pick.c, conv_product.c and conv_tiles_*.c. */
#ifndef PM_CONV_TILES_H
#define PM_CONV_TILES_H

#include <pumice/kernel.h>

#include "conv2d.params.h"

/* Sizes of a product: rows x columns, a sum of `terms` per tap (filter: over all pixels). */
struct conv_product {
    const struct conv2d_params *p; /* borrowed */
    bool back, filter;             /* data gradient; filter gradient */
    int terms, columns;            /* of a group */
    size_t rows;                   /* of a phase */
    int phases;                    /* data gradient: stride_h * stride_w, else 1 */
};

struct conv_product pm_conv_product(const struct conv2d_params *p, bool back);
struct conv_product pm_conv_product_filter(const struct conv2d_params *p);

/* Returns the number of weights. */
size_t pm_conv_weights(const struct conv2d_params *p);
/* Returns the number of runs of pixels that a filter gradient is split into, a power of two. There
 * are `wanted` workgroups if possible; groups: their number without a split. Runs have at most
 * `most` pixels, and at most 8192 for the accuracy of the sums. Runs have at least 64 pixels, and
 * partial sums need no more than 64 MiB. */
uint32_t pm_conv_parts(const struct conv_product *m, size_t groups, size_t wanted, size_t most);
/* Adds the dispatch that adds the parts of a filter gradient, and requests their scratch. */
void pm_conv_combine(struct pm_picks *out, const struct conv_product *m, uint32_t parts);

/* ---- structure R ------------------------------------------------------------------------ */

enum { PM_CONV_TABLES_R = 2 };
struct conv_table_r;
/* Fills list with the tables of tiles for the device, best first; returns their number. GPUs have
 * none. */
int pm_conv_tables_r(const struct pm_caps *caps, const struct conv_table_r *list[PM_CONV_TABLES_R]);
/* Sets out to the dispatches of a table; always returns true. */
bool pm_conv_run_r(const struct pm_caps *caps, const struct conv_table_r *table,
                   const struct conv_product *m, struct pm_picks *out);

/* ---- structure S ------------------------------------------------------------------------ */

enum { PM_CONV_TILES_S = 6 }; /* the most tiles that a shape may choose among */
struct conv_tile_s;
/* Fills list with the tiles for the product that fit the device, best first; returns their
 * number. */
int pm_conv_tiles_s(const struct pm_caps *caps, const struct conv_product *m,
                    const struct conv_tile_s *list[PM_CONV_TILES_S]);
/* Sets out to the dispatches of a tile; always returns true. two: a second dispatch adds the parts
 * of a filter gradient, whatever pm_conv_last_s says. */
bool pm_conv_run_s(const struct conv_tile_s *tile, const struct conv_product *m, bool two,
                   struct pm_picks *out);
/* Whether the parts of a filter gradient are added by the workgroup that finishes a tile last
 * (shaders/lib/last.glsl). If so, the tile has a second form, for drivers where that fails. */
bool pm_conv_last_s(const struct conv_tile_s *tile, const struct conv_product *m);

#endif
