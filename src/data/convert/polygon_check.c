/* polygon_check: all decisions are exact. Coordinates are whole numbers in -2^24..2^24, so products
 * of their differences fit into 64 bits. */
#include "data/convert/polygon_check.h"

#include <stdbool.h>
#include <stdlib.h>

#include "data/coco_mask.h"

enum { MOST_CORNERS = 10000, MOST_WARNINGS = 10 };

static const struct { const char *one, *many; } texts[PM_POLYGON_FAULTS] = {
    [PM_POLYGON_FLAT] = { "the polygon has no area", "polygons have no area" },
    [PM_POLYGON_CROSSED] = { "two sides of the polygon cross", "polygons cross themselves" },
    [PM_POLYGON_OUTSIDE] = { "the polygon is outside of its picture",
                             "polygons are outside of their pictures" },
};

/* Returns the side of the line from a to b on which the point p is: -1, 1, or 0 on the line. */
static int side_of(const int32_t *a, const int32_t *b, const int32_t *p)
{
    const int64_t left = ((int64_t)b[0] - a[0]) * ((int64_t)p[1] - a[1]);
    const int64_t right = ((int64_t)b[1] - a[1]) * ((int64_t)p[0] - a[0]);

    return (left > right) - (left < right);
}

static bool is_flat(const int32_t *xy, size_t points)
{
    size_t other = 1;

    while (other < points && xy[2 * other] == xy[0] && xy[2 * other + 1] == xy[1])
        other++;
    for (size_t k = other + 1; k < points; k++)
        if (side_of(xy, xy + 2 * other, xy + 2 * k) != 0)
            return false;
    return true;
}

static bool is_outside(const int32_t *xy, size_t points, int height, int width)
{
    const int64_t most[2] = { (int64_t)width * PM_COCO_SCALE, (int64_t)height * PM_COCO_SCALE };
    bool outside = false;

    for (int i = 0; i < 2; i++) {
        bool before = true, behind = true;

        for (size_t k = 0; k < points; k++) {
            before &= xy[2 * k + (size_t)i] <= 0;
            behind &= xy[2 * k + (size_t)i] >= most[i];
        }
        outside |= before || behind;
    }
    return outside;
}

/* ---- crossing ------------------------------------------------------------------------------- */

struct edge { const int32_t *a, *b; int32_t from, to; }; /* from, to: its range of x */

static int by_begin(const void *x, const void *y)
{
    const struct edge *a = x, *b = y;

    return (a->from > b->from) - (a->from < b->from);
}

/* Whether both edges have the other's ends on different sides. Edges that only touch, as
 * neighbours do, do not cross. */
static bool cross(const struct edge *e, const struct edge *f)
{
    return side_of(e->a, e->b, f->a) * side_of(e->a, e->b, f->b) < 0 &&
           side_of(f->a, f->b, e->a) * side_of(f->a, f->b, e->b) < 0;
}

/* Compares the edges whose ranges of x overlap. */
static bool is_crossed(const int32_t *xy, size_t points)
{
    if (points < 4 || points > MOST_CORNERS)
        return false;
    struct edge *edge = pm_malloc(points * sizeof *edge);
    bool crossed = false;

    for (size_t k = 0; k < points; k++) {
        const int32_t *a = xy + 2 * k, *b = xy + 2 * ((k + 1) % points);

        edge[k] = (struct edge){ a, b, a[0] < b[0] ? a[0] : b[0], a[0] < b[0] ? b[0] : a[0] };
    }
    qsort(edge, points, sizeof *edge, by_begin);
    for (size_t k = 0; k < points && !crossed; k++)
        for (size_t i = k + 1; i < points && edge[i].from <= edge[k].to && !crossed; i++)
            crossed = cross(&edge[k], &edge[i]);
    pm_free(edge);
    return crossed;
}

unsigned pm_polygon_faults(const int32_t *xy, size_t points, int height, int width)
{
    return (is_flat(xy, points) ? 1u << PM_POLYGON_FLAT : 0u) |
           (is_crossed(xy, points) ? 1u << PM_POLYGON_CROSSED : 0u) |
           (is_outside(xy, points, height, width) ? 1u << PM_POLYGON_OUTSIDE : 0u);
}

/* ---- counts --------------------------------------------------------------------------------- */

void pm_polygon_count(struct pm_polygon_counts *c, const int32_t *xy, size_t points, int height,
                      int width, const char *where)
{
    const unsigned faults = pm_polygon_faults(xy, points, height, width);

    for (int k = 0; k < PM_POLYGON_FAULTS; k++)
        if (faults & 1u << k && ++c->count[k] <= MOST_WARNINGS)
            PM_WARN("data", "%s: %s", where, texts[k].one);
}

void pm_polygon_report(const struct pm_polygon_counts *c, const char *split)
{
    for (int k = 0; k < PM_POLYGON_FAULTS; k++)
        if (c->count[k] > MOST_WARNINGS)
            PM_WARN("data", "%s: %zu %s", split, (size_t)c->count[k], texts[k].many);
}
