/* conv_pick: see conv_pick.h. There are two structures of tiled kernels, R and S
 * (shaders/conv2d_r.comp, conv2d_s.comp and their filter twins), and a naive shader per row. The
 * levels of a row are in the order that the device class prefers. Every level accepts every shape,
 * so parity tests run all levels on every device. */
#include "conv_pick.h"

#include "dispatches.h"

#include "conv2d.params.h"

static size_t filter_count(const struct conv2d_params *p)
{
    return (size_t)p->kh * p->kw * (p->c / p->groups) * p->k;
}

static bool is_plain(const struct conv2d_params *p)
{
    return p->kh == 1 && p->kw == 1 && p->stride_h == 1 && p->stride_w == 1 && p->top == 0
        && p->left == 0 && p->oh == p->h && p->ow == p->w;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Sizes of a product: rows x columns, a sum of `terms` per tap (filter: over all pixels). */
struct product {
    const struct conv2d_params *p;
    bool back, filter;
    int terms, columns;
    size_t rows;
    int phases;
};

static struct product product_of(const struct conv2d_params *p, bool back)
{
    return (struct product){
        .p = p,
        .back = back,
        .terms = (back ? p->k : p->c) / p->groups,
        .columns = (back ? p->c : p->k) / p->groups,
        .rows = (size_t)p->n * (back ? pm_ceil_div(p->h, p->stride_h) : (uint32_t)p->oh)
              * (back ? pm_ceil_div(p->w, p->stride_w) : (uint32_t)p->ow),
        .phases = back ? p->stride_h * p->stride_w : 1,
    };
}

static struct product filter_of(const struct conv2d_params *p)
{
    return (struct product){
        .p = p,
        .filter = true,
        .terms = p->c / p->groups,
        .columns = p->k / p->groups,
        .rows = (size_t)p->kh * p->kw * (p->c / p->groups),
        .phases = 1,
    };
}

/* Returns the number of runs of pixels that a filter gradient is split into, a power of two. There
 * are enough workgroups for the device, and runs have at most `most` pixels, and at most 8192 for
 * the accuracy of the sums. Runs have at least 64 pixels, and partial sums need no more than 64
 * MiB. */
static uint32_t parts_of(const struct product *m, size_t groups, size_t wanted, size_t most)
{
    const struct conv2d_params *p = m->p;
    size_t pixels = (size_t)p->n * p->oh * p->ow, bytes = filter_count(p) * sizeof(float);
    uint32_t parts = 1;

    most = min_size(most, 8192);
    while (parts < 1024 && (groups * parts < wanted || pixels / parts > most)
           && pixels / (2 * parts) >= 64 && 2 * parts * bytes <= (size_t)64 << 20)
        parts *= 2;
    return parts;
}

static void combine(struct pm_picks *out, const struct product *m, uint32_t parts)
{
    if (parts == 1)
        return;
    pm_pick_constant(pm_pick_items(out, "conv2d_combine", filter_count(m->p)), parts);
    out->scratch[2] = filter_count(m->p) * sizeof(float) * parts;
}

/* ---- structure R ----------------------------------------------------------------------- */

/* A tile, and the shader with this tile built in. NULL: the shader with specialization
 * constants. */
struct tile_r {
    int tm, tn;
    const char *shader;
};

/* Tiles of a device class, by falling width. The first tile that fits into the columns makes the
 * whole tiles. The narrowest tile that covers the remaining columns makes the rest. scalar is for
 * channels that are not a multiple of 4. */
struct table_r {
    const char *name;
    bool pair; /* used if the device has 64-bit integers */
    struct tile_r product[4], filter[4];
    struct tile_r product_scalar, filter_scalar;
    /* Limit in bytes for the first tile's columns of the right matrix. Above it a product uses the
     * second tile. That tile has more rows, which share data that exceeds a core's own cache. 0: no
     * limit. */
    size_t panel;
};

static const struct table_r lavapipe_r = {
    "r", true, { { 12, 16 }, { 24, 8 }, { 24, 4 }, { 24, 2 } },
    { { 12, 16 }, { 16, 8 }, { 16, 4 }, { 16, 2 } }, .panel = 2 << 20,
};
static const struct table_r small_r = { "r-small", false, { { 8, 4 } }, { { 8, 4 } } };
/* SwiftShader does not unroll loops over specialization constants. */
static const struct table_r swiftshader_r = {
    "r-built-in", false, { { 8, 8, "conv2d_r_8x8" }, { 4, 4, "conv2d_r_4x4" } },
    { { 8, 4, "conv2d_filter_r_8x4" } }, { 8, 4, "conv2d_r_8x4_scalar" },
    { 4, 4, "conv2d_filter_r_4x4" },
};

/* Returns the rows of a tile, at most the rows of the product. */
static int rows_of(const struct product *m, const struct tile_r *tile)
{
    int tm = tile->tm;

    if (tile->shader)
        return tm;
    if (m->filter && m->terms % 4 != 0) {
        tm = 1;
        while (tm < m->terms && tm < 8)
            tm++;
        return tm;
    }
    while (m->filter && tm > 4 && m->terms % tm != 0 && m->terms % (tm - 4) == 0)
        tm -= 4;
    size_t most = m->filter ? (size_t)m->terms : m->rows;
    return (int)min_size(tm, (most + 3) / 4 * 4);
}

/* Adds one dispatch over tiles x (a tile's width) columns of each group. parts: filter
 * gradients. */
static void dispatch_r(const struct pm_caps *caps, const struct table_r *table,
                       const struct product *m, struct tile_r tile, bool edge, int before,
                       uint32_t tiles, uint32_t parts, struct pm_picks *out)
{
    const struct conv2d_params *p = m->p;
    int tm = rows_of(m, &tile);
    bool vec = m->terms % 4 == 0;
    bool pair = table->pair && caps->int64 && !edge && m->columns % 2 == 0 && tile.tn % 2 == 0;
    const char *shader = tile.shader ? tile.shader
                       : m->filter   ? pair ? "conv2d_filter_r_pair" : "conv2d_filter_r"
                       : pair        ? "conv2d_r_pair" : "conv2d_r";
    struct pm_dispatch *d = pm_pick_add(out, shader, caps->subgroup_size, 1);

    if (m->filter) {
        pm_pick_constant(d, parts);
        pm_pick_constant(d, is_plain(p));
    } else {
        pm_pick_constant(d, m->back);
    }
    pm_pick_constant(d, edge);
    pm_pick_constant(d, (uint32_t)before);
    pm_pick_constant(d, (uint32_t)tm);
    pm_pick_constant(d, (uint32_t)tile.tn);
    pm_pick_constant(d, vec);
    if (m->filter) {
        d->groups[0] = tiles * p->groups;
        d->groups[1] = pm_ceil_div(m->terms, tm) * p->kh * p->kw;
        d->groups[2] = parts;
        return;
    }
    uint32_t row_tiles = pm_ceil_div(m->rows, tm);
    d->groups[0] = row_tiles > PM_GRID_MAX ? PM_GRID_MAX : row_tiles;
    d->groups[1] = tiles * p->groups;
    d->groups[2] = pm_ceil_div(row_tiles, PM_GRID_MAX) * m->phases;
}

/* Runs the whole tiles, then the rest of the columns. */
static bool run_r(const struct pm_caps *caps, const struct table_r *table, const struct product *m,
                  struct pm_picks *out)
{
    const struct conv2d_params *p = m->p;
    const struct tile_r *tiles = m->filter ? table->filter : table->product;
    const struct tile_r *scalar = m->filter ? &table->filter_scalar : &table->product_scalar;
    int lanes = (int)caps->subgroup_size, count = 0, main = 0;

    while (count < 4 && tiles[count].tm)
        count++;
    if (m->terms % 4 != 0 && scalar->tm)
        tiles = scalar, count = 1;
    while (main + 1 < count && tiles[main].tn * lanes > m->columns)
        main++;
    if (main == 0 && count > 1 && !m->filter && table->panel &&
        (size_t)p->kh * p->kw * m->terms * tiles[0].tn * lanes * sizeof(float) > table->panel)
        main = 1;
    int width = tiles[main].tn * lanes, whole = m->columns / width, rest = m->columns % width;
    int narrow = main;
    while (narrow + 1 < count && tiles[narrow + 1].tn * lanes >= rest)
        narrow++;
    int narrow_width = tiles[narrow].tn * lanes;
    uint32_t parts = 1;

    if (m->filter) {
        size_t groups = (size_t)(whole + 1) * p->groups * p->kh * p->kw
                      * pm_ceil_div(m->terms, rows_of(m, &tiles[main]));
        /* A run of both images is read once per tile and fits a cache of 1 MiB. */
        size_t most = ((size_t)1 << 18) / ((size_t)p->c + p->k);
        parts = parts_of(m, groups, 16, most < 256 ? 256 : most);
        parts = (uint32_t)min_size(parts, is_plain(p) ? SIZE_MAX : (size_t)p->n * p->oh);
    }
    if (m->back) {
        struct pm_dispatch *d = pm_pick_add(out, "conv2d_transpose_r", caps->subgroup_size, 1);
        d->groups[0] = pm_ceil_div(m->columns, lanes);
        d->groups[1] = pm_ceil_div(p->k, 16);
        d->groups[2] = p->kh * p->kw;
        out->scratch[2] = filter_count(p) * sizeof(float);
    }
    if (whole > 0)
        dispatch_r(caps, table, m, tiles[main], false, 0, whole, parts, out);
    if (rest > 0)
        dispatch_r(caps, table, m, tiles[narrow], rest % narrow_width != 0, whole ? width : 0,
                   pm_ceil_div(rest, narrow_width), parts, out);
    if (m->filter)
        combine(out, m, parts);
    out->variant = table->name;
    return true;
}

/* ---- structure S ----------------------------------------------------------------------- */

/* The workgroup has bm / tm * bn / tn invocations. bm * bk and bn * bk are multiples of four times
 * that, and tm and tn are multiples of 4. Otherwise parts of a tile are never fetched. */
struct tile_s {
    const char *name;
    int bm, bn, bk, tm, tn;
};
static const struct tile_s s128x128 = { "s128x128x8", 128, 128, 8, 8, 8 };
static const struct tile_s s128x64 = { "s128x64x16", 128, 64, 16, 8, 4 };
static const struct tile_s s128x32 = { "s128x32x16", 128, 32, 16, 8, 4 };
static const struct tile_s s64x64 = { "s64x64x16", 64, 64, 16, 4, 4 };
/* By falling size: the tiles that a GPU may try besides the best one. */
static const struct tile_s *const tiles_s[] = { &s128x128, &s128x64, &s128x32, &s64x64 };

enum { TRANSPOSE = 16 * 16 }; /* invocations per workgroup of conv2d_transpose */

static bool fits_s(const struct pm_caps *caps, const struct tile_s *tile)
{
    uint32_t size = (uint32_t)(tile->bm / tile->tm * tile->bn / tile->tn);
    uint32_t left = tile->bm * (tile->bk + 4), right = tile->bn * tile->bk;

    if (size < TRANSPOSE)
        size = TRANSPOSE;
    return size <= caps->max_workgroup_invocations && size <= caps->max_workgroup_size[0]
        && (left + right) * sizeof(float) <= caps->shared_bytes;
}

static bool run_s(const struct tile_s *tile, const struct product *m, struct pm_picks *out)
{
    const struct conv2d_params *p = m->p;
    uint32_t size = (uint32_t)(tile->bm / tile->tm * tile->bn / tile->tn);
    uint32_t column_tiles = pm_ceil_div(m->columns, tile->bn) * p->groups;
    uint32_t row_tiles = pm_ceil_div(m->rows, tile->bm), parts = 1;
    bool vec_a = m->terms % 4 == 0, vec_b = m->columns % 4 == 0;

    if (m->back) {
        struct pm_dispatch *d = pm_pick_add(out, "conv2d_transpose", 16, 16);
        d->groups[0] = pm_ceil_div(p->k, 16);
        d->groups[1] = pm_ceil_div(m->columns, 16);
        d->groups[2] = p->kh * p->kw;
        out->scratch[2] = filter_count(p) * sizeof(float);
    }
    struct pm_dispatch *d = pm_pick_add(out, m->filter ? "conv2d_filter_s" : "conv2d_s", size, 1);
    d->groups[0] = column_tiles;
    if (m->filter) {
        parts = parts_of(m, (size_t)column_tiles * row_tiles, 512, SIZE_MAX);
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
        combine(out, m, parts);
    out->variant = tile->name;
    return true;
}

/* Returns the tile for a shape: a large tile if it still gives work to `busy` workgroups. */
static const struct tile_s *best_s(enum pm_class class, const struct product *m)
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

/* ---- the levels of a product ----------------------------------------------------------- */

/* Whether a tile gets its own level in addition to the best tile. It does not if half of its
 * columns would be idle. CPU drivers run S only for testing, so they get only the last tile. */
static bool is_candidate(const struct pm_caps *caps, const struct product *m,
                         const struct tile_s *tile, const struct tile_s *best, bool on_cpu)
{
    return tile != best && fits_s(caps, tile)
        && (tile == &s64x64 || (!on_cpu && tile->bn / 2 < m->columns));
}

/* CPU drivers start with their R and a small R. GPUs start with the best S, then the others. The
 * naive shader is last on both. */
static bool product_pick(const struct pm_caps *caps, const struct product *m, int level,
                         const char *simple, size_t items, struct pm_picks *out)
{
    const struct tile_s *best = best_s(caps->device_class, m);
    bool on_cpu =
        caps->device_class == PM_CLASS_LAVAPIPE || caps->device_class == PM_CLASS_SWIFTSHADER;

    *out = (struct pm_picks){ 0 };
    if (caps->device_class == PM_CLASS_LAVAPIPE && level-- == 0)
        return run_r(caps, &lavapipe_r, m, out);
    if (caps->device_class == PM_CLASS_SWIFTSHADER && level-- == 0)
        return run_r(caps, &swiftshader_r, m, out);
    if (on_cpu && level-- == 0)
        return run_r(caps, &small_r, m, out);
    if (fits_s(caps, best) && level-- == 0)
        return run_s(best, m, out);
    for (size_t i = 0; i < PM_COUNT(tiles_s); i++)
        if (is_candidate(caps, m, tiles_s[i], best, on_cpu) && level-- == 0)
            return run_s(tiles_s[i], m, out);
    return level == 0 && pm_pick_naive(out, simple, items);
}

bool pm_conv2d_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const struct conv2d_params *p = params;
    const struct product m = product_of(p, false);

    (void)count;
    return product_pick(caps, &m, level, "conv2d_fwd_naive", (size_t)p->n * p->oh * p->ow * p->k,
                        out);
}

bool pm_conv2d_bwd_data_pick(const struct pm_caps *caps, const void *params, size_t count,
                             int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;
    const struct product m = product_of(p, true);

    (void)count;
    return product_pick(caps, &m, level, "conv2d_bwd_data_naive", (size_t)p->n * p->h * p->w * p->c,
                        out);
}

bool pm_conv2d_bwd_filter_pick(const struct pm_caps *caps, const void *params, size_t count,
                               int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;
    const struct product m = filter_of(p);

    (void)count;
    return product_pick(caps, &m, level, "conv2d_bwd_filter_naive", filter_count(p), out);
}
