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

enum {
    PM_CONV_RUN = 8192,             /* most pixels in a run of a filter gradient, for accuracy */
    PM_CONV_PARTS_BYTES = 64 << 20, /* most memory for the partial sums of a call */
};

/* Returns the bytes of the product's result. */
size_t pm_conv_result_bytes(const struct conv_product *m);
/* Adds the dispatch that adds the parts of the result, and requests scratch for them, behind the
 * scratch requested so far. Does nothing for one part. */
void pm_conv_combine(struct pm_picks *out, const struct conv_product *m, uint32_t parts);

/* Adds the dispatch that computes the moments of the written image, if the call hands them over. */
void pm_conv_moments(struct pm_picks *out, const struct conv_product *m);

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

struct conv_tile_s;
/* A way to compute a product: the tile, and the number of parts that the terms (filter: the
 * pixels) are cut into. */
struct conv_way_s {
    const struct conv_tile_s *tile;
    uint32_t parts;
    /* A second dispatch adds the parts of a filter gradient. Otherwise the workgroup that finishes
     * a tile last does, if there are few (shaders/lib/last.glsl); drivers may fail at that. */
    bool two;
};
enum { PM_CONV_WAYS_S = 6 }; /* the most ways that a shape may choose among */
/* Fills list with the ways that fit the device, best first; returns their number. They depend on
 * caps and the product's sizes alone. */
int pm_conv_ways_s(const struct pm_caps *caps, const struct conv_product *m,
                   struct conv_way_s list[PM_CONV_WAYS_S]);
/* Sets out to the dispatches of a way; always returns true. */
bool pm_conv_run_s(const struct conv_way_s *way, const struct conv_product *m,
                   struct pm_picks *out);
#endif
