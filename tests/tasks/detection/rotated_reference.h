/* rotated_reference: areas of rotated boxes by Sutherland and Hodgman's polygon clipper (1974), in
 * double. It shares no method and no code with src/, which integrates along edges. */
#ifndef PM_ROTATED_REFERENCE_H
#define PM_ROTATED_REFERENCE_H

#include <math.h>

enum { REFERENCE_CORNERS = 16 };
struct reference_polygon { double y[REFERENCE_CORNERS], x[REFERENCE_CORNERS]; int count; };

/* Corners in the direction in which reference_area is positive. box: cy, cx, h, w, angle. */
static inline struct reference_polygon reference_corners(const double box[5])
{
    static const double across[] = { -0.5, 0.5, 0.5, -0.5 }, down[] = { -0.5, -0.5, 0.5, 0.5 };
    struct reference_polygon p = { .count = 4 };

    for (int k = 0; k < 4; k++) {
        const double u = across[k] * box[3], v = down[k] * box[2];

        p.x[k] = box[1] + u * cos(box[4]) - v * sin(box[4]);
        p.y[k] = box[0] + u * sin(box[4]) + v * cos(box[4]);
    }
    return p;
}

static inline double reference_area(const struct reference_polygon *p)
{
    double twice = 0;

    for (int k = 0; k < p->count; k++) {
        const int next = (k + 1) % p->count;

        twice += (p->x[k] - p->x[0]) * (p->y[next] - p->y[0]) -
                 (p->x[next] - p->x[0]) * (p->y[k] - p->y[0]);
    }
    return twice / 2;
}

/* Keeps the part of p on the inner side of the line from (y0, x0) to (y1, x1). */
static inline struct reference_polygon reference_cut(const struct reference_polygon *p, double y0,
                                                     double x0, double y1, double x1)
{
    struct reference_polygon out = { .count = 0 };

    for (int k = 0; k < p->count; k++) {
        const int next = (k + 1) % p->count;
        const double a = (x1 - x0) * (p->y[k] - y0) - (y1 - y0) * (p->x[k] - x0);
        const double b = (x1 - x0) * (p->y[next] - y0) - (y1 - y0) * (p->x[next] - x0);

        if (a >= 0) {
            out.y[out.count] = p->y[k];
            out.x[out.count++] = p->x[k];
        }
        if ((a < 0) != (b < 0)) {
            out.y[out.count] = p->y[k] + a / (a - b) * (p->y[next] - p->y[k]);
            out.x[out.count++] = p->x[k] + a / (a - b) * (p->x[next] - p->x[k]);
        }
    }
    return out;
}

static inline struct reference_polygon reference_clip(struct reference_polygon p,
                                                      const struct reference_polygon *by)
{
    for (int k = 0; k < by->count; k++) {
        const int next = (k + 1) % by->count;

        p = reference_cut(&p, by->y[k], by->x[k], by->y[next], by->x[next]);
    }
    return p;
}

/* The intersection of two boxes. */
static inline double reference_inner(const double a[5], const double b[5])
{
    const struct reference_polygon one = reference_corners(a), two = reference_corners(b);
    const struct reference_polygon both = reference_clip(one, &two);

    return reference_area(&both);
}

#endif
