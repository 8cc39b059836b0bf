/* conv_tiles_s: structure S, tiles in shared memory, for GPUs (shaders/conv2d_s.comp and
 * conv2d_filter_s.comp), and the choice of the tile; see conv_tiles.h. */
#include "conv_tiles.h"

#include <string.h>

#include "dispatches.h"

/* The workgroup has bm / tm * bn / tn invocations. bm * bk and bn * bk are multiples of four times
 * that, and tm and tn are multiples of 4. Otherwise parts of a tile are never fetched.
 *
 * rolled: the shader keeps the loop over a tile's terms and stores the left tile as [term][row].
 * Intel's compiler moves all loads of an unrolled loop to its beginning and then spills registers.
 * AMD's compiler makes better code of the unrolled loop. */
struct conv_tile_s {
    const char *name;
    /* Other forms: the last workgroup adds the parts; a second dispatch adds them although the last
     * workgroup could; a data gradient transposes its weights itself. */
    const char *last, *two, *transposing;
    int bm, bn, bk, tm, tn;
    bool rolled;
    int speed; /* percent of the largest tile's, by estimates of AMD's compiler */
};
/* By falling size. */
#define NAMES(name) name, name "_last", name "_two", name "_transposing"
enum { S128X128, S128X64, S128X32, S64X64, S64X32, TILES };
static const struct conv_tile_s unrolled[TILES] = {
    [S128X128] = { NAMES("s128x128x8"), 128, 128, 8, 8, 8, false, 100 },
    [S128X64] = { NAMES("s128x64x16"), 128, 64, 16, 8, 4, false, 95 },
    [S128X32] = { NAMES("s128x32x16"), 128, 32, 16, 8, 4, false, 85 },
    [S64X64] = { NAMES("s64x64x16"), 64, 64, 16, 4, 4, false, 85 },
    [S64X32] = { NAMES("s64x32x16"), 64, 32, 16, 4, 4, false, 70 },
};
static const struct conv_tile_s rolled[TILES] = {
    [S128X128] = { NAMES("s128x128x8_rolled"), 128, 128, 8, 8, 8, true, 100 },
    [S128X64] = { NAMES("s128x64x16_rolled"), 128, 64, 16, 8, 4, true, 95 },
    [S128X32] = { NAMES("s128x32x16_rolled"), 128, 32, 16, 8, 4, true, 85 },
    [S64X64] = { NAMES("s64x64x16_rolled"), 64, 64, 16, 4, 4, true, 85 },
    [S64X32] = { NAMES("s64x32x16_rolled"), 64, 32, 16, 4, 4, true, 70 },
};

enum { TRANSPOSE = 16 * 16 }; /* invocations per workgroup of conv2d_transpose */

static bool fits(const struct pm_caps *caps, const struct conv_tile_s *tile)
{
    uint32_t size = (uint32_t)(tile->bm / tile->tm * tile->bn / tile->tn);
    uint32_t left = tile->rolled ? tile->bk * (tile->bm + 4) : tile->bm * (tile->bk + 4);
    uint32_t right = tile->bn * tile->bk;

    if (size < TRANSPOSE)
        size = TRANSPOSE;
    return size <= caps->max_workgroup_invocations && size <= caps->max_workgroup_size[0]
        && (left + right) * sizeof(float) <= caps->shared_bytes;
}

/* Whether all taps are one run of terms: forward, few channels. */
static bool is_flat(const struct conv_product *m)
{
    return !m->back && !m->filter && m->terms % 4 != 0;
}

/* Returns the number of compute units, that of a middling card if it is unknown. */
static uint32_t units_of(const struct pm_caps *caps)
{
    return caps->compute_units > 0 ? caps->compute_units : 36;
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

static void run_filter(const struct conv_way_s *way, const struct conv_product *m,
                       struct pm_dispatch *d)
{
    const struct conv2d_params *p = m->p;

    d->groups[1] = pm_ceil_div(m->rows, way->tile->bm);
    d->groups[2] = way->parts;
    pm_pick_constant(d, way->parts);
    pm_pick_constant(d, m->terms % 4 == 0);
    pm_pick_constant(d, m->columns % 4 == 0);
    pm_pick_constant(d, way->tile->rolled);
    pm_pick_constant(d, p->oh);
    pm_pick_constant(d, p->ow);
}

static void run_product(const struct conv_way_s *way, const struct conv_product *m,
                        struct pm_dispatch *d)
{
    const struct conv2d_params *p = m->p;
    uint32_t row_tiles = pm_ceil_div(m->rows, way->tile->bm);

    d->groups[1] = row_tiles > PM_GRID_MAX ? PM_GRID_MAX : row_tiles;
    d->groups[2] = pm_ceil_div(row_tiles, PM_GRID_MAX) * m->phases * way->parts;
    pm_pick_constant(d, m->back);
    pm_pick_constant(d, is_flat(m));
    pm_pick_constant(d, m->terms % 4 == 0);
    pm_pick_constant(d, m->columns % 4 == 0);
    pm_pick_constant(d, way->tile->rolled);
    pm_pick_constant(d, way->parts);
    pm_pick_constant(d, m->back ? p->stride_h : 1);
    pm_pick_constant(d, m->back ? p->stride_w : 1);
    pm_pick_constant(d, is_flat(m) ? p->kw : 1);
    pm_pick_constant(d, is_flat(m) ? m->terms : 1);
}

/* Whether the workgroup that finishes a tile of a filter gradient last adds its parts. It reads all
 * of them. More than 2 MiB would keep it busy for longer than a dispatch of its own takes. */
static bool is_last(const struct conv_way_s *way, const struct conv_product *m)
{
    size_t bytes = (size_t)way->parts * way->tile->bm * way->tile->bn * sizeof(float);

    return m->filter && way->parts > 1 && !way->two && bytes <= (size_t)2 << 20;
}

/* Whether the kernel computes the moments of what it writes: shaders/lib/conv_moments.glsl. */
static bool has_moments(const struct conv_way_s *way, const struct conv_product *m)
{
    const struct conv_tile_s *tile = way->tile;

    return !m->filter && m->p->moments && !m->p->accumulate && m->phases == 1 && way->parts == 1 &&
           tile->bm / tile->tm == PM_MOMENT_ROWS / 4;
}

/* Forms that a driver may fail at have their own names: the check before training runs each name
 * once, in small shapes, and a wrong one is replaced by the next way. */
static const char *variant_of(const struct conv_way_s *way, const struct conv_product *m)
{
    const struct conv_tile_s *tile = way->tile;

    return way->two                       ? tile->two
           : is_last(way, m)              ? tile->last
           : m->back && !m->p->transposed ? tile->transposing
                                          : tile->name;
}

bool pm_conv_run_s(const struct conv_way_s *way, const struct conv_product *m,
                   struct pm_picks *out)
{
    const struct conv_tile_s *tile = way->tile;
    const bool last = is_last(way, m), moments = has_moments(way, m);
    uint32_t size = (uint32_t)(tile->bm / tile->tm * tile->bn / tile->tn);

    if (m->back && !m->p->transposed)
        transpose(m, out);
    struct pm_dispatch *d = pm_pick_add(out, m->filter ? "conv2d_filter_s" : "conv2d_s", size, 1);
    d->groups[0] = pm_ceil_div(m->columns, tile->bn) * m->p->groups;
    if (m->filter)
        run_filter(way, m, d);
    else
        run_product(way, m, d);
    pm_pick_constant(d, tile->bm);
    pm_pick_constant(d, tile->bn);
    pm_pick_constant(d, tile->bk);
    pm_pick_constant(d, tile->tm);
    pm_pick_constant(d, tile->tn);
    if (m->filter)
        pm_pick_constant(d, last);
    else
        pm_pick_constant(d, m->back && m->p->accumulate && way->parts == 1);
    if (!m->filter)
        pm_pick_constant(d, moments);
    if (last) {
        out->scratch[2] = pm_conv_result_bytes(m) * way->parts;
        out->scratch[4] = (size_t)d->groups[0] * d->groups[1] * sizeof(uint32_t);
    } else {
        pm_conv_combine(out, m, way->parts);
    }
    if (!m->filter && !moments)
        pm_conv_moments(out, m);
    out->variant = variant_of(way, m);
    return true;
}

/* ---- the choice of a way ---------------------------------------------------------------- */

/* Workgroups run in rounds of two for each compute unit. The time of a way is an estimate, in
 * multiply-adds that the whole device could make meanwhile: all rounds count as full. Reading or
 * writing a byte of partial sums takes as long as 32 multiply-adds, and the second dispatch as long
 * as 400,000 on each unit. (GPUs make 10 to 20 multiply-adds a byte at their peaks, which
 * convolutions do not reach.) */
enum { PER_UNIT = 2, PER_BYTE = 32, PER_DISPATCH = 400000 };
enum { MOST_PARTS = 8, SHORTEST_RUN = 64 };

/* Returns the number of workgroups for one part. */
static uint64_t groups_of(const struct conv_product *m, const struct conv_tile_s *tile)
{
    return (uint64_t)pm_ceil_div(m->rows, tile->bm) * pm_ceil_div(m->columns, tile->bn)
         * m->phases * m->p->groups;
}

/* Returns the length of the sum that is cut into parts: the channels of a tap (FLAT: of all taps),
 * or the pixels. */
static uint64_t length_of(const struct conv_product *m)
{
    const struct conv2d_params *p = m->p;

    return m->filter    ? (uint64_t)p->n * p->oh * p->ow
         : is_flat(m)   ? (uint64_t)p->kh * p->kw * m->terms
                        : (uint64_t)m->terms;
}

/* Returns the time of a way; see above. */
static uint64_t time_of(const struct pm_caps *caps, const struct conv_product *m,
                        const struct conv_way_s *way)
{
    const struct conv_tile_s *t = way->tile;
    const struct conv2d_params *p = m->p;
    uint64_t at_once = (uint64_t)PER_UNIT * units_of(caps), groups = groups_of(m, t) * way->parts;
    uint64_t rounds = (groups + at_once - 1) / at_once;
    uint64_t steps = pm_ceil_div(pm_ceil_div(length_of(m), t->bk), way->parts);
    uint64_t taps = m->filter || is_flat(m) ? 1 : (uint64_t)p->kh * p->kw;
    uint64_t time = rounds * at_once * t->bm * t->bn * (steps * t->bk * taps) / m->phases;

    time = time / t->speed * 100;
    if (way->parts > 1)
        time += 2 * PER_BYTE * pm_conv_result_bytes(m) * way->parts
              + (uint64_t)PER_DISPATCH * units_of(caps);
    return time;
}

/* Whether the cut is possible: no part is empty, runs of pixels are not too short, and partial sums
 * do not need too much memory. */
static bool may_cut(const struct conv_product *m, const struct conv_way_s *way)
{
    uint64_t length = length_of(m), steps = pm_ceil_div(length, way->tile->bk);
    uint64_t longest = (steps + way->parts - 1) / way->parts;

    return (way->parts - 1) * longest < steps
        && (!m->filter || length / way->parts >= SHORTEST_RUN)
        && way->parts * pm_conv_result_bytes(m) <= PM_CONV_PARTS_BYTES;
}

/* Returns the fewest parts: those that the accuracy of a filter gradient's sums needs, as far as
 * memory for partial sums allows. */
static uint32_t fewest_parts(const struct conv_product *m)
{
    uint32_t parts = 1;

    while (m->filter && (uint64_t)parts * PM_CONV_RUN < length_of(m)
           && (parts + 1) * pm_conv_result_bytes(m) <= PM_CONV_PARTS_BYTES)
        parts++;
    return parts;
}

/* Returns the fastest way with a tile. A filter gradient has enough parts for the accuracy of its
 * sums, and more only if they need no more than two rounds. */
static struct conv_way_s way_of(const struct pm_caps *caps, const struct conv_product *m,
                                const struct conv_tile_s *tile)
{
    uint64_t length = length_of(m), most = m->filter ? length / SHORTEST_RUN : MOST_PARTS;
    uint64_t two_rounds = (uint64_t)2 * PER_UNIT * units_of(caps);
    struct conv_way_s best = { tile, fewest_parts(m), false };

    if (tile == &rolled[S128X128] && !m->filter)
        return best; /* Intel's compiler may spill registers for its parts */
    for (struct conv_way_s way = { tile, best.parts + 1, false }; way.parts <= most; way.parts++) {
        if (m->filter && groups_of(m, tile) * way.parts > two_rounds)
            break;
        if (may_cut(m, &way) && time_of(caps, m, &way) < time_of(caps, m, &best))
            best = way;
    }
    return best;
}

/* Whether the device's compiler is known to spill registers for the tile. So Intel gets no S128X32
 * at all; its row in `rolled` keeps the two tables alike. */
static bool spills(const struct pm_caps *caps, const struct conv_product *m, int tile)
{
    return caps->device_class == PM_CLASS_INTEL
        && (tile == S128X32 || (tile == S128X128 && (m->phases > 1 || m->terms % 4 != 0)));
}

/* Whether the tile is offered: it is not if half of its columns would be idle. */
static bool is_offered(const struct pm_caps *caps, const struct conv_product *m, int tile)
{
    return (tile == S64X64 || tile == S64X32 || unrolled[tile].bn / 2 < m->columns)
        && (tile != S64X32 || m->columns <= 32) && !spills(caps, m, tile);
}

/* Whether the tile may be the first choice of a device class. AMD's GCN holds only two waves of the
 * largest tile. The compiler of a class without a table may spill registers for the larger ones. */
static bool is_first_choice(enum pm_class class, int tile)
{
    return class == PM_CLASS_OTHER     ? tile == S64X64 || tile == S64X32
         : class == PM_CLASS_AMD_GCN   ? tile != S128X128
                                       : true;
}

/* Adds the second form of list[i] behind it, if it has one. A device that cannot run first forms
 * gets second forms in their place instead. Returns the new count. */
static int with_forms(const struct pm_caps *caps, const struct conv_product *m, int i,
                    struct conv_way_s *list, int count)
{
    if (!caps->last_group) {
        for (int k = 0; k < count; k++)
            list[k].two = is_last(&list[k], m);
        return count;
    }
    if (i < 0 || i >= count || !is_last(&list[i], m))
        return count;
    memmove(list + i + 1, list + i, (size_t)(count - i) * sizeof *list);
    list[i + 1].two = true;
    return count + 1;
}

/* CPU drivers run structure S for testing only: the smallest square tile in both forms, once with
 * its sums cut into at least three parts where possible. */
static int test_ways(const struct pm_caps *caps, const struct conv_product *m,
                     struct conv_way_s list[PM_CONV_WAYS_S])
{
    const uint32_t fewest = fewest_parts(m);
    struct conv_way_s whole = { &unrolled[S64X64], fewest, false };
    struct conv_way_s cut = { &rolled[S64X64], fewest > 3 ? fewest : 3, false };
    int count = 0;

    while (cut.parts > fewest && !may_cut(m, &cut))
        cut.parts--;
    if (fits(caps, whole.tile))
        list[count++] = whole;
    if (fits(caps, cut.tile))
        list[count++] = cut;
    return with_forms(caps, m, count - 1, list, count);
}

int pm_conv_ways_s(const struct pm_caps *caps, const struct conv_product *m,
                   struct conv_way_s list[PM_CONV_WAYS_S])
{
    enum pm_class class = caps->device_class;
    const struct conv_tile_s *tiles = class == PM_CLASS_INTEL ? rolled : unrolled;
    int count = 0, best = -1;

    if (pm_class_on_cpu(class))
        return test_ways(caps, m, list);
    for (int i = 0; i < TILES; i++) {
        if (!is_offered(caps, m, i) || !fits(caps, &tiles[i]))
            continue;
        list[count] = way_of(caps, m, &tiles[i]);
        if (is_first_choice(class, i)
            && (best < 0 || time_of(caps, m, &list[count]) < time_of(caps, m, &list[best])))
            best = count;
        count++;
    }
    if (best > 0) {
        const struct conv_way_s first = list[best];

        memmove(list + 1, list, (size_t)best * sizeof *list);
        list[0] = first;
    }
    return with_forms(caps, m, 0, list, count);
}
