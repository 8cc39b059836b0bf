/* edge_labels: edge_labels.h has the contract. Gradients are made row by row, three of them at a time;
 * a dilation is one along the rows and one along the columns, each by a running count of what its window
 * holds, so that its cost does not depend on the width. */
#include "data/edge_labels.h"

#include <string.h>

/* ---- edges ------------------------------------------------------------------------------- */

/* Of one row: gradients and their lengths, the latter with a 0 in front and behind. */
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

/* Whether the pixel is longest across the edge. above, at, below: lengths in three rows, at this
 * column. 13573 / 2^15 is OpenCV's tangent of 22.5 degrees; that of 67.5 is 2 more. */
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

/* edges: 1 or 0 for each pixel. */
static void find_edges(const struct pm_label *map, int ignore_label, uint8_t *edges)
{
    const int w = map->width, h = map->height;
    const size_t row = (size_t)w + 2;
    int32_t *block = pm_calloc(11 * row, sizeof *block), *work = block + 9 * row;
    struct gradients g[3];

    for (int k = 0; k < 3; k++)
        g[k] = (struct gradients){ block + 3 * (size_t)k * row, block + (3 * (size_t)k + 1) * row,
                                   block + (3 * (size_t)k + 2) * row };
    row_gradients(map, 0, work, &g[0]); /* lengths of row -1, in g[2], are 0 */
    for (int y = 0; y < h; y++, edges += w) {
        const struct gradients *at = &g[y % 3], *above = &g[(y + 2) % 3];
        struct gradients *below = &g[(y + 1) % 3];
        const uint16_t *labels = map->values + (size_t)y * (size_t)w;

        if (y + 1 < h)
            row_gradients(map, y + 1, work, below);
        else
            memset(below->length, 0, row * sizeof *below->length);
        for (int x = 0; x < w; x++)
            edges[x] = at->length[x + 1] > 0 && labels[x] != ignore_label &&
                       is_ridge(at->dx[x], at->dy[x], above->length + x + 1, at->length + x + 1,
                                below->length + x + 1);
    }
    pm_free(block);
}

/* ---- bands ------------------------------------------------------------------------------- */

/* out[x]: whether any of in[x - before .. x + after] is set. */
static void dilate_row(const uint8_t *in, int w, int before, int after, uint8_t *out)
{
    int held = 0;

    for (int x = 0; x < after && x < w; x++)
        held += in[x];
    for (int x = 0; x < w; x++) {
        held += x + after < w ? in[x + after] : 0;
        held -= x - before > 0 ? in[x - before - 1] : 0;
        out[x] = held > 0;
    }
}

static void count_row(int32_t *restrict held, const uint8_t *restrict row, int w, int sign)
{
    for (int x = 0; x < w; x++)
        held[x] += sign * row[x];
}

/* The same down the columns, a row at a time; held: [w], zeroed. */
static void dilate_columns(const uint8_t *in, int h, int w, int before, int after, int32_t *held,
                           uint8_t *out)
{
    for (int y = 0; y < after && y < h; y++)
        count_row(held, in + (size_t)y * (size_t)w, w, 1);
    for (int y = 0; y < h; y++, out += w) {
        if (y + after < h)
            count_row(held, in + (size_t)(y + after) * (size_t)w, w, 1);
        if (y - before > 0)
            count_row(held, in + (size_t)(y - before - 1) * (size_t)w, w, -1);
        for (int x = 0; x < w; x++)
            out[x] = held[x] > 0;
    }
}

static void dilate(uint8_t *mask, int h, int w, int width, uint8_t *work)
{
    const int before = width / 2, after = width - 1 - before;
    int32_t *held = pm_calloc((size_t)w, sizeof *held);

    for (int y = 0; y < h; y++)
        dilate_row(mask + (size_t)y * (size_t)w, w, before, after, work + (size_t)y * (size_t)w);
    dilate_columns(work, h, w, before, after, held, mask);
    pm_free(held);
}

void pm_edge_labels(const struct pm_edge_options *o, const struct pm_label *map,
                    struct pm_label *out)
{
    const int h = map->height, w = map->width;
    const size_t count = (size_t)h * (size_t)w;
    uint8_t *mask = pm_malloc(2 * count), *work = mask + count;
    const int last = o->classes - 1;

    *out = (struct pm_label){ h, w, pm_malloc(count * sizeof *out->values) };
    for (size_t i = 0; i < count; i++)
        out->values[i] = (uint16_t)last;
    find_edges(map, o->ignore_label, mask);
    for (int k = 0; k < last; k++) {
        dilate(mask, h, w, o->width, work);
        for (size_t i = 0; i < count; i++)
            out->values[i] = (uint16_t)(mask[i] && out->values[i] == last ? k : out->values[i]);
    }
    for (size_t i = 0; i < count && o->ignore_label >= 0; i++)
        if (map->values[i] == o->ignore_label)
            out->values[i] = PM_EDGE_IGNORE;
    pm_free(mask);
}
