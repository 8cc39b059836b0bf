/* geometry: moves, and their effect on all members except pictures, which are in render.c.
 *
 * Coordinates are fractions of the picture's extent, so a resize does not change them, with any
 * method. Window: y' = (y * height - window's y) / window's height. Mirror: x' = 1 - x. Flip:
 * y' = 1 - y. Turn: y' = 1 - x, x' = y. Maps and masks follow the moves backwards and take the
 * element found there. Rows and columns are independent; a turn exchanges them. A warp mixes them:
 * points are rounded before and after it, and maps follow every element by itself. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "data/augment.h"
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

void pm_geometry_window_mean(struct pm_geometry *g, int y, int x, int height, int width)
{
    const int before = g->count;

    pm_geometry_window(g, y, x, height, width, NULL);
    if (g->count > before)
        g->move[before].pad_mean = true;
}

void pm_geometry_repeat(struct pm_geometry *g, int height, int width)
{
    const int before = g->count;

    pm_geometry_window(g, 0, 0, height, width, NULL);
    if (g->count > before)
        g->move[before].repeat = true;
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

void pm_geometry_flip(struct pm_geometry *g)
{
    add(g, &(struct pm_move){ .kind = PM_MOVE_FLIP,
                              .height = pm_geometry_height(g),
                              .width = pm_geometry_width(g) });
}

void pm_geometry_turn(struct pm_geometry *g)
{
    add(g, &(struct pm_move){ .kind = PM_MOVE_TURN,
                              .height = pm_geometry_width(g),
                              .width = pm_geometry_height(g) });
}

void pm_geometry_warp(struct pm_geometry *g, const float warp[6], const float pad[3])
{
    struct pm_move m = { .kind = PM_MOVE_WARP, .height = pm_geometry_height(g),
                         .width = pm_geometry_width(g) };

    memcpy(m.warp, warp, sizeof m.warp);
    memcpy(m.pad, pad, sizeof m.pad);
    add(g, &m);
}

void pm_geometry_warp_smooth(struct pm_geometry *g, const float warp[6], const float pad[3])
{
    pm_geometry_warp(g, warp, pad);
    g->move[g->count - 1].smooth = true;
}

/* A side of a window, first..first + *length - 1, of a picture with `side` pixels after division.
 * Returns its first pixel. */
static int shrink_window(int first, int *length, int shrink, int side)
{
    const bool inside = first >= 0 && first + *length <= side * shrink;
    int begin = (int)floor((double)first / shrink + 0.5);
    int end = (int)floor((double)(first + *length) / shrink + 0.5);

    end = end > begin ? end : begin + 1;
    if (inside && end > side)
        begin -= end - side, end = side;
    *length = end - begin;
    return begin;
}

void pm_geometry_shrink(const struct pm_geometry *g, int height, int width, int shrink,
                        struct pm_geometry *out)
{
    *out = *g;
    out->height = height;
    out->width = width;
    for (int k = 0; k < g->count && g->move[k].kind != PM_MOVE_RESIZE; k++) {
        struct pm_move *m = &out->move[k];
        const int before[2] = { height, width };

        if (m->kind == PM_MOVE_WINDOW) {
            height = m->height, width = m->width;
            m->y = shrink_window(m->y, &height, shrink, before[0]);
            m->x = shrink_window(m->x, &width, shrink, before[1]);
        } else if (m->kind == PM_MOVE_TURN) {
            height = before[1], width = before[0];
        }
        m->height = height;
        m->width = width;
    }
}

/* Returns the index of the first warp of moves begin..end - 1, or end. */
static int next_warp(const struct pm_geometry *g, int begin, int end)
{
    while (begin < end && g->move[begin].kind != PM_MOVE_WARP)
        begin++;
    return begin;
}

bool pm_geometry_is_mirrored(const struct pm_geometry *g)
{
    bool mirrored = false;

    for (int k = 0; k < g->count; k++)
        mirrored ^= g->move[k].kind == PM_MOVE_MIRROR;
    return mirrored;
}

/* ---- points and boxes ---------------------------------------------------------------------- */

/* Coordinate i (y, x) after the moves = scale[i] * coordinate axis[i] before them + shift[i]. */
struct affine {
    double scale[2], shift[2];
    int axis[2];
};

static void mirror_axis(struct affine *a, int i)
{
    a->scale[i] = -a->scale[i];
    a->shift[i] = 1 - a->shift[i];
}

static void turn(struct affine *a)
{
    const struct affine from = *a;

    for (int i = 0; i < 2; i++) {
        a->scale[i] = from.scale[1 - i];
        a->shift[i] = from.shift[1 - i];
        a->axis[i] = from.axis[1 - i];
    }
    mirror_axis(a, 0);
}

/* Of moves begin..end - 1. */
static struct affine affine_of(const struct pm_geometry *g, int begin, int end)
{
    struct affine a = { { 1, 1 }, { 0, 0 }, { 0, 1 } };
    const struct pm_move *before = begin ? &g->move[begin - 1] : NULL;
    int size[2] = { before ? before->height : g->height, before ? before->width : g->width };

    for (int k = begin; k < end; k++) {
        const struct pm_move *m = &g->move[k];
        const int first[2] = { m->y, m->x }, after[2] = { m->height, m->width };

        for (int i = 0; i < 2 && m->kind == PM_MOVE_WINDOW; i++) {
            a.scale[i] *= (double)size[i] / after[i];
            a.shift[i] = (a.shift[i] * size[i] - first[i]) / after[i];
        }
        if (m->kind == PM_MOVE_MIRROR)
            mirror_axis(&a, 1);
        else if (m->kind == PM_MOVE_FLIP)
            mirror_axis(&a, 0);
        else if (m->kind == PM_MOVE_TURN)
            turn(&a);
        size[0] = m->height, size[1] = m->width;
    }
    return a;
}

static void move_points(const struct affine *a, float *points, size_t count)
{
    for (float *p = points; p < points + 2 * count; p += 2) {
        const float from[2] = { p[0], p[1] };

        for (int i = 0; i < 2; i++)
            p[i] = (float)(a->scale[i] * (double)from[a->axis[i]] + a->shift[i]);
    }
}

static void exchange(float *a, float *b)
{
    const float saved = *a;

    *a = *b;
    *b = saved;
}

void pm_geometry_points(const struct pm_geometry *g, float *points, size_t count)
{
    pm_moves_points(g, 0, g->count, points, count);
}

/* The inverse of the warp, for continuous coordinates: pixel i spans i..i + 1. */
static void warp_point(const struct pm_move *m, float point[2])
{
    const float *w = m->warp;
    const double det = (double)w[0] * (double)w[4] - (double)w[1] * (double)w[3];
    const double x = (double)point[1] * m->width - 0.5 - (double)w[2];
    const double y = (double)point[0] * m->height - 0.5 - (double)w[5];

    point[0] = (float)((((double)w[0] * y - (double)w[3] * x) / det + 0.5) / m->height);
    point[1] = (float)((((double)w[4] * x - (double)w[1] * y) / det + 0.5) / m->width);
}

static void warp_box(const struct pm_move *m, float box[4])
{
    const float from[4] = { box[0], box[1], box[2], box[3] };

    for (int corner = 0; corner < 4; corner++) {
        float p[2] = { from[corner / 2 * 2], from[corner % 2 * 2 + 1] };

        warp_point(m, p);
        for (int i = 0; i < 2; i++) {
            box[i] = corner ? fminf(box[i], p[i]) : p[i];
            box[i + 2] = corner ? fmaxf(box[i + 2], p[i]) : p[i];
        }
    }
}

void pm_moves_points(const struct pm_geometry *g, int begin, int end, float *points, size_t count)
{
    const int warp = next_warp(g, begin, end);
    const struct affine a = affine_of(g, begin, warp);

    move_points(&a, points, count);
    if (warp == end)
        return;
    for (size_t i = 0; i < count; i++)
        warp_point(&g->move[warp], points + 2 * i);
    pm_moves_points(g, warp + 1, end, points, count);
}

void pm_moves_boxes(const struct pm_geometry *g, int begin, int end, float *boxes, size_t count)
{
    const int warp = next_warp(g, begin, end);
    const struct affine a = affine_of(g, begin, warp);

    move_points(&a, boxes, 2 * count);
    for (int i = 0; i < 2; i++)
        for (float *b = boxes + i; a.scale[i] < 0 && b < boxes + 4 * count; b += 4)
            exchange(b, b + 2);
    if (warp == end)
        return;
    for (size_t i = 0; i < count; i++)
        warp_box(&g->move[warp], boxes + 4 * i);
    pm_moves_boxes(g, warp + 1, end, boxes, count);
}

void pm_geometry_boxes(const struct pm_geometry *g, float *boxes, size_t count)
{
    pm_moves_boxes(g, 0, g->count, boxes, count);
}

void pm_geometry_boxes_back(const struct pm_geometry *g, float *boxes, size_t count)
{
    const struct affine a = affine_of(g, 0, g->count);

    assert(next_warp(g, 0, g->count) == g->count);
    for (float *b = boxes; b < boxes + 4 * count; b += 2) {
        const float from[2] = { b[0], b[1] };

        for (int i = 0; i < 2; i++)
            b[a.axis[i]] = (float)(((double)from[i] - a.shift[i]) / a.scale[i]);
    }
    for (int i = 0; i < 2; i++)
        for (float *b = boxes + a.axis[i]; a.scale[i] < 0 && b < boxes + 4 * count; b += 4)
            exchange(b, b + 2);
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

/* Returns the row (columns: column) before move k for row i after it; -1 in the padding. For a turn
 * *columns changes. Not for a warp. */
static int origin_before(const struct pm_geometry *g, int k, bool *columns, int i)
{
    const struct pm_move *m = &g->move[k];

    if (m->kind == PM_MOVE_TURN) {
        i = *columns ? i : m->height - 1 - i;
        *columns = !*columns;
    }
    const int in = k ? (*columns ? m[-1].width : m[-1].height) : *columns ? g->width : g->height;

    if (m->kind == PM_MOVE_RESIZE)
        i = nearest(m->method, i, in, *columns ? m->width : m->height);
    else if (m->kind == PM_MOVE_WINDOW)
        i += *columns ? m->x : m->y;
    else if (m->kind == (*columns ? PM_MOVE_MIRROR : PM_MOVE_FLIP))
        i = in - 1 - i;
    return i < 0 || i >= in ? -1 : i;
}

/* Returns the original row (columns: column) for row i of the result; -1 in the padding. After an
 * odd number of turns it is the original column (row). */
static int origin(const struct pm_geometry *g, bool columns, int i)
{
    for (int k = g->count - 1; k >= 0 && i >= 0; k--)
        i = origin_before(g, k, &columns, i);
    return i;
}

bool pm_warp_origin(const struct pm_move *m, int y, int x, int *from_y, int *from_x)
{
    const float *w = m->warp;
    const float at_x = roundf(w[0] * (float)x + w[1] * (float)y + w[2]);
    const float at_y = roundf(w[3] * (float)x + w[4] * (float)y + w[5]);
    const bool inside =
        at_x >= 0 && at_y >= 0 && at_x < (float)m->width && at_y < (float)m->height;

    *from_y = inside ? (int)at_y : -1;
    *from_x = inside ? (int)at_x : -1;
    return inside;
}

/* The same for one element of the result, through any moves: its offset in the original, or -1. */
static ptrdiff_t origin_of_element(const struct pm_geometry *g, int y, int x)
{
    for (int k = g->count - 1; k >= 0; k--) {
        const struct pm_move *m = &g->move[k];
        bool rows = false, columns = true;

        if (m->kind == PM_MOVE_WARP) {
            if (!pm_warp_origin(m, y, x, &y, &x))
                return -1;
            continue;
        }
        const int from_y = origin_before(g, k, &rows, y);
        const int from_x = origin_before(g, k, &columns, x);

        if (from_y < 0 || from_x < 0)
            return -1;
        y = rows ? from_x : from_y, x = rows ? from_y : from_x;
    }
    return (ptrdiff_t)y * g->width + x;
}

static bool is_turned(const struct pm_geometry *g)
{
    bool turned = false;

    for (int k = 0; k < g->count; k++)
        turned ^= g->move[k].kind == PM_MOVE_TURN;
    return turned;
}

/* Where the elements of the result come from: the sum of a row's and a column's offset. */
struct origins {
    int height, width;
    int begin, end;  /* columns begin..end - 1 are not padding */
    ptrdiff_t *row, *column; /* [height], [width]; -1: padding. row is owned, column behind it */
};

static struct origins origins_of(const struct pm_geometry *g)
{
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);
    const bool turned = is_turned(g);
    struct origins o = { .height = height, .width = width, .begin = width };

    o.row = pm_malloc(((size_t)height + (size_t)width) * sizeof *o.row);
    o.column = o.row + height;
    for (int i = 0; i < height + width; i++) {
        const bool column = i >= height;
        const int from = origin(g, column, column ? i - height : i);

        o.row[i] = from < 0 ? -1 : column == turned ? (ptrdiff_t)from * g->width : from;
    }
    for (int x = 0; x < width; x++)
        if (o.column[x] >= 0) {
            o.begin = o.begin < x ? o.begin : x;
            o.end = x + 1;
        }
    if (o.begin > o.end)
        o.begin = o.end;
    return o;
}

static bool is_warped(const struct pm_geometry *g)
{
    return next_warp(g, 0, g->count) < g->count;
}

static void map_of_warped(const struct pm_geometry *g, const struct pm_label *map, int32_t fill,
                          int32_t *out)
{
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const ptrdiff_t from = origin_of_element(g, y, x);

            *out++ = from < 0 ? fill : map->values[from];
        }
}

static void masks_of_warped(const struct pm_geometry *g, const uint8_t *masks, size_t count,
                            uint8_t *out)
{
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);
    const size_t before = (size_t)g->height * (size_t)g->width;
    const size_t after = (size_t)height * (size_t)width;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, out++) {
            const ptrdiff_t from = origin_of_element(g, y, x);

            for (size_t i = 0; i < count; i++)
                out[i * after] = from < 0 ? 0 : masks[i * before + (size_t)from];
        }
}

void pm_geometry_map(const struct pm_geometry *g, const struct pm_label *map, int32_t fill,
                     int32_t *out)
{
    if (is_warped(g)) {
        map_of_warped(g, map, fill, out);
        return;
    }
    const struct origins o = origins_of(g);

    for (int y = 0; y < o.height; y++, out += o.width) {
        const int first = o.row[y] < 0 ? o.width : o.begin, last = o.row[y] < 0 ? o.width : o.end;
        const uint16_t *row = map->values + (o.row[y] < 0 ? 0 : o.row[y]);

        for (int x = 0; x < first; x++)
            out[x] = fill;
        for (int x = first; x < last; x++)
            out[x] = row[o.column[x]];
        for (int x = last; x < o.width; x++)
            out[x] = fill;
    }
    pm_free(o.row);
}

void pm_geometry_masks(const struct pm_geometry *g, const uint8_t *masks, size_t count,
                       uint8_t *out)
{
    const size_t pixels = (size_t)g->height * (size_t)g->width;

    if (is_warped(g)) {
        masks_of_warped(g, masks, count, out);
        return;
    }
    const struct origins o = origins_of(g);

    memset(out, 0, count * (size_t)o.height * (size_t)o.width);
    for (size_t i = 0; i < count; i++, masks += pixels)
        for (int y = 0; y < o.height; y++, out += o.width) {
            const uint8_t *row = masks + (o.row[y] < 0 ? 0 : o.row[y]);

            for (int x = o.begin; x < o.end && o.row[y] >= 0; x++)
                out[x] = row[o.column[x]];
        }
    pm_free(o.row);
}
