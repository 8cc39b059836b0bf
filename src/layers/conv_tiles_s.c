/* conv_tiles_s: structure S, tiles in shared memory, for GPUs (shaders/conv2d_s.comp and
 * conv2d_filter_s.comp), and the choice of the tile; see conv_tiles.h. */
#include "conv_tiles.h"

#include "dispatches.h"

/* The workgroup has bm / tm * bn / tn invocations. bm * bk and bn * bk are multiples of four times
 * that, and tm and tn are multiples of 4. Otherwise parts of a tile are never fetched. */
struct conv_tile_s {
    const char *name, *two; /* of the form with two dispatches */
    int bm, bn, bk, tm, tn;
};
static const struct conv_tile_s s128x128 = { "s128x128x8", "s128x128x8_two", 128, 128, 8, 8, 8 };
static const struct conv_tile_s s128x64 = { "s128x64x16", "s128x64x16_two", 128, 64, 16, 8, 4 };
static const struct conv_tile_s s128x32 = { "s128x32x16", "s128x32x16_two", 128, 32, 16, 8, 4 };
static const struct conv_tile_s s64x64 = { "s64x64x16", "s64x64x16_two", 64, 64, 16, 4, 4 };
/* By falling size: the tiles that a GPU may try besides the best one. */
static const struct conv_tile_s *const tiles_s[] = { &s128x128, &s128x64, &s128x32, &s64x64 };

enum { TRANSPOSE = 16 * 16 }; /* invocations per workgroup of conv2d_transpose */

static bool fits_s(const struct pm_caps *caps, const struct conv_tile_s *tile)
{
    uint32_t size = (uint32_t)(tile->bm / tile->tm * tile->bn / tile->tn);
    uint32_t left = tile->bm * (tile->bk + 4), right = tile->bn * tile->bk;

    if (size < TRANSPOSE)
        size = TRANSPOSE;
    return size <= caps->max_workgroup_invocations && size <= caps->max_workgroup_size[0]
        && (left + right) * sizeof(float) <= caps->shared_bytes;
}

/* conv2d_bwd_data reads the weights as [kh][kw][k][c]. */
static void transpose(const struct conv_product *m, struct pm_picks *out)
{
    const struct conv2d_params *p = m->p;
    struct pm_dispatch *d = pm_pick_add(out, "conv2d_transpose", 16, 16);

    d->groups[0] = pm_ceil_div(p->k, 16);
    d->groups[1] = pm_ceil_div(m->columns, 16);
    d->groups[2] = p->kh * p->kw;
    out->scratch[2] = pm_conv_weights(p) * sizeof(float);
}

static uint32_t parts_of(const struct conv_tile_s *tile, const struct conv_product *m)
{
    const uint32_t tiles = pm_ceil_div(m->columns, tile->bn) * m->p->groups *
                           pm_ceil_div(m->rows, tile->bm);

    return pm_conv_parts(m, tiles, 512, SIZE_MAX);
}

/* One workgroup reads all parts of its tile. More than 2 MiB would keep it busy for longer than a
 * dispatch of its own takes. */
bool pm_conv_last_s(const struct conv_tile_s *tile, const struct conv_product *m)
{
    const size_t parts = m->filter ? parts_of(tile, m) : 1;

    return parts > 1 && parts * tile->bm * tile->bn * sizeof(float) <= (size_t)2 << 20;
}

bool pm_conv_run_s(const struct conv_tile_s *tile, const struct conv_product *m, bool two,
                   struct pm_picks *out)
{
    const bool last = !two && pm_conv_last_s(tile, m);
    const struct conv2d_params *p = m->p;
    uint32_t size = (uint32_t)(tile->bm / tile->tm * tile->bn / tile->tn);
    uint32_t column_tiles = pm_ceil_div(m->columns, tile->bn) * p->groups;
    uint32_t row_tiles = pm_ceil_div(m->rows, tile->bm), parts = 1;
    bool vec_a = m->terms % 4 == 0, vec_b = m->columns % 4 == 0;

    if (m->back && !p->transposed)
        transpose(m, out);
    struct pm_dispatch *d = pm_pick_add(out, m->filter ? "conv2d_filter_s" : "conv2d_s", size, 1);
    d->groups[0] = column_tiles;
    if (m->filter) {
        parts = parts_of(tile, m);
        pm_pick_constant(d, parts);
        pm_pick_constant(d, vec_a);
        pm_pick_constant(d, vec_b);
        pm_pick_constant(d, p->oh);
        pm_pick_constant(d, p->ow);
        d->groups[1] = row_tiles;
        d->groups[2] = parts;
    } else {
        bool flat = !m->back && !vec_a;
        pm_pick_constant(d, m->back);
        pm_pick_constant(d, flat);
        pm_pick_constant(d, vec_a);
        pm_pick_constant(d, vec_b);
        pm_pick_constant(d, flat ? p->kw : 1);
        pm_pick_constant(d, flat ? m->terms : 1);
        d->groups[1] = row_tiles > PM_GRID_MAX ? PM_GRID_MAX : row_tiles;
        d->groups[2] = pm_ceil_div(row_tiles, PM_GRID_MAX) * m->phases;
    }
    pm_pick_constant(d, tile->bm);
    pm_pick_constant(d, tile->bn);
    pm_pick_constant(d, tile->bk);
    pm_pick_constant(d, tile->tm);
    pm_pick_constant(d, tile->tn);
    if (m->filter)
        pm_pick_constant(d, last);
    if (m->filter && !last)
        pm_conv_combine(out, m, parts);
    if (last) {
        out->scratch[2] = pm_conv_weights(p) * sizeof(float) * parts;
        out->scratch[4] = (size_t)column_tiles * row_tiles * sizeof(uint32_t);
    }
    out->variant = two ? tile->two : tile->name;
    return true;
}

/* Returns the tile for a shape: a large tile if it still gives work to `busy` workgroups. */
static const struct conv_tile_s *best_s(enum pm_class class, const struct conv_product *m)
{
    size_t rows = m->filter ? m->rows * 8 : m->rows * m->phases; /* filters are split into parts */
    size_t busy = 96;

    if (m->columns <= 32)
        return &s128x32;
    if (class != PM_CLASS_AMD_GCN && m->columns > 64
        && pm_ceil_div(rows, 128) * (size_t)pm_ceil_div(m->columns, 128) * m->p->groups >= busy)
        return &s128x128;
    if (pm_ceil_div(rows, 128) * (size_t)pm_ceil_div(m->columns, 64) * m->p->groups >= busy)
        return &s128x64;
    return &s64x64;
}

/* Whether a tile is offered in addition to the best tile. It is not if half of its columns would be
 * idle. CPU drivers run S only for testing, so they get only the last tile. */
static bool is_candidate(const struct pm_caps *caps, const struct conv_product *m,
                         const struct conv_tile_s *tile, const struct conv_tile_s *best)
{
    bool on_cpu =
        caps->device_class == PM_CLASS_LAVAPIPE || caps->device_class == PM_CLASS_SWIFTSHADER;

    return tile != best && fits_s(caps, tile)
        && (tile == &s64x64 || (!on_cpu && tile->bn / 2 < m->columns));
}

int pm_conv_tiles_s(const struct pm_caps *caps, const struct conv_product *m,
                    const struct conv_tile_s *list[PM_CONV_TILES_S])
{
    const struct conv_tile_s *best = best_s(caps->device_class, m);
    int count = 0;

    if (fits_s(caps, best))
        list[count++] = best;
    for (size_t i = 0; i < PM_COUNT(tiles_s); i++)
        if (is_candidate(caps, m, tiles_s[i], best))
            list[count++] = tiles_s[i];
    return count;
}
