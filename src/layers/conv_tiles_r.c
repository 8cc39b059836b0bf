/* conv_tiles_r: structure R, tiles in registers, for CPU drivers (shaders/conv2d_r.comp and
 * conv2d_filter_r.comp); see conv_tiles.h. */
#include "conv_tiles.h"

#include "dispatches.h"

static bool is_plain(const struct conv2d_params *p)
{
    return p->kh == 1 && p->kw == 1 && p->stride_h == 1 && p->stride_w == 1 && p->top == 0
        && p->left == 0 && p->oh == p->h && p->ow == p->w;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A tile, and the shader with this tile built in. NULL: the shader with specialization
 * constants. */
struct tile_r {
    int tm, tn;
    const char *shader;
};

/* Tiles of a device class, by falling width. The first tile that fits into the columns makes the
 * whole tiles. The narrowest tile that covers the remaining columns makes the rest. scalar is for
 * channels that are not a multiple of 4. */
struct conv_table_r {
    const char *name;
    bool pair; /* used if the device has 64-bit integers */
    struct tile_r product[4], filter[4];
    struct tile_r product_scalar, filter_scalar;
    /* Limit in bytes for the first tile's columns of the right matrix. Above it a product uses the
     * second tile. That tile has more rows, which share data that exceeds a core's own cache. 0: no
     * limit. */
    size_t panel;
};

static const struct conv_table_r lavapipe_r = {
    "r", true, { { 12, 16 }, { 24, 8 }, { 24, 4 }, { 24, 2 } },
    { { 12, 16 }, { 16, 8 }, { 16, 4 }, { 16, 2 } }, .panel = 2 << 20,
};
static const struct conv_table_r small_r = { "r-small", false, { { 8, 4 } }, { { 8, 4 } } };
/* SwiftShader does not unroll loops over specialization constants. */
static const struct conv_table_r swiftshader_r = {
    "r-built-in", false, { { 8, 8, "conv2d_r_8x8" }, { 4, 4, "conv2d_r_4x4" } },
    { { 8, 4, "conv2d_filter_r_8x4" } }, { 8, 4, "conv2d_r_8x4_scalar" },
    { 4, 4, "conv2d_filter_r_4x4" },
};

/* Returns the rows of a tile, at most the rows of the product. */
static int rows_of(const struct conv_product *m, const struct tile_r *tile)
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
static void dispatch_r(const struct pm_caps *caps, const struct conv_table_r *table,
                       const struct conv_product *m, struct tile_r tile, bool edge, int before,
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

/* conv2d_bwd_data reads the weights as [kh][kw][k][c]. */
static void transpose(const struct pm_caps *caps, const struct conv_product *m,
                      struct pm_picks *out)
{
    const struct conv2d_params *p = m->p;
    struct pm_dispatch *d = pm_pick_add(out, "conv2d_transpose_r", caps->subgroup_size, 1);

    d->groups[0] = pm_ceil_div(m->columns, caps->subgroup_size);
    d->groups[1] = pm_ceil_div(p->k, 16);
    d->groups[2] = p->kh * p->kw;
    out->scratch[2] = pm_conv_weights(p) * sizeof(float);
}

int pm_conv_tables_r(const struct pm_caps *caps, const struct conv_table_r *list[PM_CONV_TABLES_R])
{
    if (caps->device_class == PM_CLASS_LAVAPIPE || caps->device_class == PM_CLASS_POCL)
        list[0] = &lavapipe_r;
    else if (caps->device_class == PM_CLASS_SWIFTSHADER)
        list[0] = &swiftshader_r;
    else
        return 0;
    list[1] = &small_r;
    return 2;
}

/* Returns the number of runs of pixels that a filter gradient is cut into, a power of two. There
 * are 16 workgroups if possible; groups: their number without a cut. Runs have at most `most`
 * pixels, and at least 64. */
static uint32_t parts_of(const struct conv_product *m, size_t groups, size_t most)
{
    const struct conv2d_params *p = m->p;
    size_t pixels = (size_t)p->n * p->oh * p->ow, bytes = pm_conv_result_bytes(m);
    uint32_t parts = 1;

    most = min_size(most, PM_CONV_RUN);
    while (parts < 1024 && (groups * parts < 16 || pixels / parts > most)
           && pixels / (2 * parts) >= 64 && 2 * parts * bytes <= PM_CONV_PARTS_BYTES)
        parts *= 2;
    return parts;
}

/* Runs the whole tiles, then the rest of the columns. */
bool pm_conv_run_r(const struct pm_caps *caps, const struct conv_table_r *table,
                   const struct conv_product *m, struct pm_picks *out)
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
        parts = parts_of(m, groups, most < 256 ? 256 : most);
        parts = (uint32_t)min_size(parts, is_plain(p) ? SIZE_MAX : (size_t)p->n * p->oh);
    }
    if (m->back && !p->transposed)
        transpose(caps, m, out);
    if (whole > 0)
        dispatch_r(caps, table, m, tiles[main], false, 0, whole, parts, out);
    if (rest > 0)
        dispatch_r(caps, table, m, tiles[narrow], rest % narrow_width != 0, whole ? width : 0,
                   pm_ceil_div(rest, narrow_width), parts, out);
    if (m->filter)
        pm_conv_combine(out, m, parts);
    else
        pm_conv_moments(out, m);
    out->variant = table->name;
    return true;
}
