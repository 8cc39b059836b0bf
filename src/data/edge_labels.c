/* edge_labels: edge_labels.h has the contract. Gradients are computed row by row, with three rows
 * in memory. A mask has one bit per pixel, 64 per word; the leftmost pixel is the lowest bit. Masks
 * are dilated along rows, then along columns. ORing a mask with a shifted copy of itself covers a
 * window of up to twice the width, so a few rounds suffice. */
#include "data/edge_labels.h"

#include <string.h>

/* ---- edges ------------------------------------------------------------------------------- */

static size_t words_of(int bits)
{
    return ((size_t)bits + 63) / 64;
}

/* One row's gradients and their lengths. The lengths have a 0 before and after. */
struct gradients {
    int32_t *dx, *dy, *length;
};

static void row_gradients(const struct pm_label *map, int y, int32_t *work, struct gradients *g)
{
    const int w = map->width, above = y > 0 ? y - 1 : 0, below = y + 1 < map->height ? y + 1 : y;
    const uint16_t *a = map->values + (size_t)above * (size_t)w;
    const uint16_t *b = map->values + (size_t)y * (size_t)w;
    const uint16_t *c = map->values + (size_t)below * (size_t)w;
    int32_t *restrict smooth = work + 1, *restrict rise = work + w + 3; /* each from -1 to w */
    int32_t *restrict dx = g->dx, *restrict dy = g->dy, *restrict length = g->length + 1;

    for (int x = 0; x < w; x++) {
        smooth[x] = a[x] + 2 * b[x] + c[x];
        rise[x] = c[x] - a[x];
    }
    smooth[-1] = smooth[0], smooth[w] = smooth[w - 1];
    rise[-1] = rise[0], rise[w] = rise[w - 1];
    for (int x = 0; x < w; x++) {
        const int32_t right = smooth[x + 1] - smooth[x - 1];
        const int32_t down = rise[x - 1] + 2 * rise[x] + rise[x + 1];

        dx[x] = right;
        dy[x] = down;
        length[x] = (right < 0 ? -right : right) + (down < 0 ? -down : down);
    }
}

/* Whether the pixel is a maximum across the edge. above, at, below: lengths in three rows, at this
 * column. 13573 / 2^15 is OpenCV's tangent of 22.5 degrees; the tangent of 67.5 degrees is 2
 * more. */
static bool is_ridge(int32_t dx, int32_t dy, const int32_t *above, const int32_t *at,
                     const int32_t *below)
{
    const int64_t x = dx < 0 ? -(int64_t)dx : dx, y = (dy < 0 ? -(int64_t)dy : dy) << 15;
    const int64_t low = x * 13573, high = low + (x << 16);
    const int32_t m = *at;

    if (y < low)
        return m > at[-1] && m >= at[1];
    if (y > high)
        return m > above[0] && m >= below[0];
    const int side = (dx < 0) != (dy < 0) ? -1 : 1;
    return m > above[-side] && m > below[side];
}

/* Sets the bits of a row's edges. Fast path: most words lie inside one area. */
static void mark_row(const uint16_t *labels, int w, int ignore_label, const struct gradients *at,
                     const int32_t *above, const int32_t *below, uint64_t *out)
{
    const int32_t *length = at->length + 1;

    for (int first = 0; first < w; first += 64) {
        const int end = first + 64 < w ? first + 64 : w;
        uint64_t bits = 0;
        int32_t any = 0;

        for (int x = first; x < end; x++)
            any |= length[x];
        for (int x = first; any && x < end; x++)
            if (length[x] > 0 && labels[x] != ignore_label &&
                is_ridge(at->dx[x], at->dy[x], above + x + 1, length + x, below + x + 1))
                bits |= (uint64_t)1 << (x - first);
        *out++ = bits;
    }
}

static void find_edges(const struct pm_label *map, int ignore_label, uint64_t *mask)
{
    const int w = map->width, h = map->height;
    const size_t row = (size_t)w + 2;
    int32_t *block = pm_calloc(11 * row, sizeof *block), *work = block + 9 * row;
    struct gradients g[3];

    for (int k = 0; k < 3; k++)
        g[k] = (struct gradients){ block + 3 * (size_t)k * row, block + (3 * (size_t)k + 1) * row,
                                   block + (3 * (size_t)k + 2) * row };
    row_gradients(map, 0, work, &g[0]); /* lengths of row -1, in g[2], are 0 */
    for (int y = 0; y < h; y++, mask += words_of(w)) {
        const struct gradients *at = &g[y % 3], *above = &g[(y + 2) % 3];
        struct gradients *below = &g[(y + 1) % 3];

        if (y + 1 < h)
            row_gradients(map, y + 1, work, below);
        else
            memset(below->length, 0, row * sizeof *below->length);
        mark_row(map->values + (size_t)y * (size_t)w, w, ignore_label, at, above->length,
                 below->length, mask);
    }
    pm_free(block);
}

/* ---- bands ------------------------------------------------------------------------------- */

/* Pixels that a window covers on both sides. Limited to the length of the map. */
struct reach {
    int before, after;
};

static struct reach reach_of(int width, int size)
{
    const int before = width / 2, after = width - 1 - before;

    return (struct reach){ before < size ? before : size - 1, after < size ? after : size - 1 };
}

/* ORs a row with itself shifted by `by` places to the right. */
static void join_right(uint64_t *row, size_t words, int by)
{
    const size_t q = (size_t)by / 64;
    const int r = by % 64;

    for (size_t i = words; i-- > q;)
        row[i] |= row[i - q] << r | (r && i > q ? row[i - q - 1] >> (64 - r) : 0);
}

/* Shifts a row by `by` places to the left; zeros fill its end. */
static void move_left(uint64_t *row, size_t words, int by)
{
    const size_t q = (size_t)by / 64;
    const int r = by % 64;

    for (size_t i = 0; i < words; i++) {
        const uint64_t low = i + q < words ? row[i + q] : 0;
        const uint64_t high = r && i + q + 1 < words ? row[i + q + 1] << (64 - r) : 0;

        row[i] = low >> r | high;
    }
}

/* Dilates a row. work: words of w + after bits. */
static void dilate_row(uint64_t *row, int w, struct reach to, uint64_t *work)
{
    const size_t words = words_of(w), all = words_of(w + to.after);
    const int width = to.before + to.after + 1;

    memcpy(work, row, words * sizeof *row);
    memset(work + words, 0, (all - words) * sizeof *row);
    for (int have = 1; have < width; have *= 2)
        join_right(work, all, have < width - have ? have : width - have);
    move_left(work, all, to.after);
    memcpy(row, work, words * sizeof *row);
    if (w % 64)
        row[words - 1] &= ((uint64_t)1 << w % 64) - 1;
}

/* Dilates columns. mask: h + after rows of `words` words; the last `after` rows are 0 before and
 * after. */
static void dilate_columns(uint64_t *mask, int h, size_t words, struct reach to)
{
    const int width = to.before + to.after + 1;
    const size_t rows = (size_t)(h + to.after);

    for (int have = 1; have < width; have *= 2) {
        const size_t by = words * (size_t)(have < width - have ? have : width - have);

        for (size_t i = rows * words; i-- > by;)
            mask[i] |= mask[i - by];
    }
    memmove(mask, mask + (size_t)to.after * words, (size_t)h * words * sizeof *mask);
    memset(mask + (size_t)h * words, 0, (size_t)to.after * words * sizeof *mask);
}

/* Sets `out` to value at pixels in mask but not in held, then copies mask to held. Returns whether
 * there was such a pixel. */
static bool take(const uint64_t *mask, uint64_t *held, int h, int w, uint16_t value, uint16_t *out)
{
    bool any = false;

    for (int y = 0; y < h; y++, out += w)
        for (int first = 0; first < w; first += 64, mask++, held++) {
            uint64_t bits = *mask & ~*held;

            any |= bits != 0;
            *held = *mask;
            for (int x = first; bits; x++, bits >>= 1)
                if (bits & 1)
                    out[x] = value;
        }
    return any;
}

static void draw_bands(const struct pm_edge_options *o, uint64_t *mask, int h, int w, uint16_t *out)
{
    const struct reach rows = reach_of(o->width, h), columns = reach_of(o->width, w);
    const size_t words = words_of(w);
    uint64_t *held = pm_calloc((size_t)h * words, sizeof *held);
    uint64_t *work = pm_malloc(words_of(w + columns.after) * sizeof *work);

    for (int k = 0; k < o->classes - 1; k++) {
        for (int y = 0; y < h; y++)
            dilate_row(mask + (size_t)y * words, w, columns, work);
        dilate_columns(mask, h, words, rows);
        if (!take(mask, held, h, w, (uint16_t)k, out))
            break; /* further bands would be empty too */
    }
    pm_free(held);
    pm_free(work);
}

void pm_edge_labels(const struct pm_edge_options *o, const struct pm_label *map,
                    struct pm_label *out)
{
    const int h = map->height, w = map->width;
    const size_t count = (size_t)h * (size_t)w;
    const size_t rows = (size_t)h + (size_t)reach_of(o->width, h).after;
    uint64_t *mask = pm_calloc(rows * words_of(w), sizeof *mask);

    *out = (struct pm_label){ h, w, pm_malloc(count * sizeof *out->values) };
    for (size_t i = 0; i < count; i++)
        out->values[i] = (uint16_t)(o->classes - 1);
    find_edges(map, o->ignore_label, mask);
    draw_bands(o, mask, h, w, out->values);
    for (size_t i = 0; i < count && o->ignore_label >= 0; i++)
        if (map->values[i] == o->ignore_label)
            out->values[i] = PM_EDGE_IGNORE;
    pm_free(mask);
}
