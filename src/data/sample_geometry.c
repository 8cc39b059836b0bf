/* geometry: moves, and their effect on all members except pictures, which are in render.c.
 *
 * Coordinates are fractions of the picture's extent, so a resize does not change them, with any
 * method. Window: y' = (y * height - window's y) / window's height. Mirror: x' = 1 - x. Maps and
 * masks follow the moves backwards and take the element found there. Rows and columns are
 * independent. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "data/render.h"

void pm_geometry_begin(struct pm_geometry *g, int height, int width)
{
    g->height = height;
    g->width = width;
    g->count = 0;
}

int pm_geometry_height(const struct pm_geometry *g)
{
    return g->count ? g->move[g->count - 1].height : g->height;
}

int pm_geometry_width(const struct pm_geometry *g)
{
    return g->count ? g->move[g->count - 1].width : g->width;
}

static void add(struct pm_geometry *g, const struct pm_move *m)
{
    assert(g->count < PM_MAX_MOVES);
    g->move[g->count++] = *m;
}

void pm_geometry_window(struct pm_geometry *g, int y, int x, int height, int width,
                        const float pad[3])
{
    struct pm_move m = { .kind = PM_MOVE_WINDOW, .height = height, .width = width, .y = y, .x = x };

    if (!y && !x && height == pm_geometry_height(g) && width == pm_geometry_width(g))
        return;
    if (pad)
        memcpy(m.pad, pad, sizeof m.pad);
    add(g, &m);
}

void pm_geometry_resize(struct pm_geometry *g, int height, int width, enum pm_resize method)
{
    if (height != pm_geometry_height(g) || width != pm_geometry_width(g))
        add(g, &(struct pm_move){
                   .kind = PM_MOVE_RESIZE, .height = height, .width = width, .method = method });
}

void pm_geometry_mirror(struct pm_geometry *g)
{
    add(g, &(struct pm_move){ .kind = PM_MOVE_MIRROR,
                              .height = pm_geometry_height(g),
                              .width = pm_geometry_width(g) });
}

bool pm_geometry_is_mirrored(const struct pm_geometry *g)
{
    bool mirrored = false;

    for (int k = 0; k < g->count; k++)
        mirrored ^= g->move[k].kind == PM_MOVE_MIRROR;
    return mirrored;
}

/* ---- points and boxes ---------------------------------------------------------------------- */

/* y' = scale * y + shift; the same for x. */
struct affine {
    double scale[2], shift[2];
};

static struct affine affine_of(const struct pm_geometry *g)
{
    struct affine a = { { 1, 1 }, { 0, 0 } };
    int size[2] = { g->height, g->width };

    for (int k = 0; k < g->count; k++) {
        const struct pm_move *m = &g->move[k];
        const int first[2] = { m->y, m->x }, after[2] = { m->height, m->width };

        for (int i = 0; i < 2 && m->kind == PM_MOVE_WINDOW; i++) {
            a.scale[i] *= (double)size[i] / after[i];
            a.shift[i] = (a.shift[i] * size[i] - first[i]) / after[i];
        }
        if (m->kind == PM_MOVE_MIRROR) {
            a.scale[1] = -a.scale[1];
            a.shift[1] = 1 - a.shift[1];
        }
        size[0] = m->height, size[1] = m->width;
    }
    return a;
}

void pm_geometry_points(const struct pm_geometry *g, float *points, size_t count)
{
    const struct affine a = affine_of(g);

    for (size_t i = 0; i < 2 * count; i++)
        points[i] = (float)(a.scale[i % 2] * (double)points[i] + a.shift[i % 2]);
}

void pm_geometry_boxes(const struct pm_geometry *g, float *boxes, size_t count)
{
    pm_geometry_points(g, boxes, 2 * count);
    for (float *b = boxes; pm_geometry_is_mirrored(g) && b < boxes + 4 * count; b += 4) {
        const float right = b[1];

        b[1] = b[3];
        b[3] = right;
    }
}

void pm_geometry_boxes_back(const struct pm_geometry *g, float *boxes, size_t count)
{
    const struct affine a = affine_of(g);
    const bool mirrored = pm_geometry_is_mirrored(g);

    for (size_t i = 0; i < 4 * count; i++)
        boxes[i] = (float)(((double)boxes[i] - a.shift[i % 2]) / a.scale[i % 2]);
    for (float *b = boxes; mirrored && b < boxes + 4 * count; b += 4) {
        const float left = b[3];

        b[3] = b[1];
        b[1] = left;
    }
}

void pm_geometry_keypoints(const struct pm_geometry *g, float *keypoints, size_t objects,
                           int points, const int *mirrored)
{
    const size_t values = 2 * (size_t)points;
    float *before;

    pm_geometry_points(g, keypoints, objects * (size_t)points);
    if (!mirrored || !pm_geometry_is_mirrored(g))
        return;
    before = pm_malloc(values * sizeof *before);
    for (size_t i = 0; i < objects; i++, keypoints += values) {
        memcpy(before, keypoints, values * sizeof *before);
        for (int k = 0; k < points; k++)
            memcpy(keypoints + 2 * k, before + 2 * mirrored[k], 2 * sizeof *before);
    }
    pm_free(before);
}

/* ---- maps and masks ------------------------------------------------------------------------ */

int pm_aligned_nearest(int i, int in, int out)
{
    const int at = (int)roundf((float)i * pm_aligned_step(in, out));
    return at < in - 1 ? at : in - 1;
}

/* Returns the element of `in` for element i of `out` after a resize. */
static int nearest(enum pm_resize method, int i, int in, int out)
{
    if (method == PM_RESIZE_ALIGNED)
        return pm_aligned_nearest(i, in, out);
    const float from = method == PM_RESIZE_ANTIALIAS ? (float)i + 0.5f : (float)i;
    const int at = (int)floorf(from * ((float)in / (float)out));
    return at < in - 1 ? at : in - 1;
}

/* Returns the original row (columns: column) for row i of the result; -1 in the padding. */
static int origin(const struct pm_geometry *g, bool columns, int i)
{
    for (int k = g->count - 1; k >= 0; k--) {
        const struct pm_move *m = &g->move[k];
        const int in = k ? (columns ? m[-1].width : m[-1].height) : columns ? g->width : g->height;

        if (m->kind == PM_MOVE_RESIZE)
            i = nearest(m->method, i, in, columns ? m->width : m->height);
        else if (m->kind == PM_MOVE_WINDOW)
            i += columns ? m->x : m->y;
        else if (columns)
            i = m->width - 1 - i;
        if (i < 0 || i >= in)
            return -1;
    }
    return i;
}

/* Returns the columns' origins, freed with pm_free. Columns begin..end - 1 are not padding. */
static int *columns_of(const struct pm_geometry *g, int *begin, int *end)
{
    const int width = pm_geometry_width(g);
    int *from = pm_malloc((size_t)width * sizeof *from);

    *begin = width;
    *end = 0;
    for (int x = 0; x < width; x++) {
        from[x] = origin(g, true, x);
        if (from[x] < 0)
            continue;
        *begin = *begin < x ? *begin : x;
        *end = x + 1;
    }
    if (*begin > *end)
        *begin = *end;
    return from;
}

void pm_geometry_map(const struct pm_geometry *g, const struct pm_label *map, int32_t fill,
                     int32_t *out)
{
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);
    int begin, end, *from = columns_of(g, &begin, &end);

    for (int y = 0; y < height; y++, out += width) {
        const int at = origin(g, false, y), first = at < 0 ? width : begin,
                  last = at < 0 ? width : end;
        const uint16_t *row = map->values + (size_t)(at < 0 ? 0 : at) * (size_t)map->width;

        for (int x = 0; x < first; x++)
            out[x] = fill;
        for (int x = first; x < last; x++)
            out[x] = row[from[x]];
        for (int x = last; x < width; x++)
            out[x] = fill;
    }
    pm_free(from);
}

void pm_geometry_masks(const struct pm_geometry *g, const uint8_t *masks, size_t count,
                       uint8_t *out)
{
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);
    const size_t pixels = (size_t)g->height * (size_t)g->width;
    int begin, end, *from = columns_of(g, &begin, &end);

    memset(out, 0, count * (size_t)height * (size_t)width);
    for (size_t i = 0; i < count; i++, masks += pixels)
        for (int y = 0; y < height; y++, out += width) {
            const int at = origin(g, false, y);
            const uint8_t *row = masks + (size_t)(at < 0 ? 0 : at) * (size_t)g->width;

            for (int x = begin; x < end && at >= 0; x++)
                out[x] = row[from[x]];
        }
    pm_free(from);
}
