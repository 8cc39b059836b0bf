/* rotated_ref: the overlap of rotated boxes by clipping one polygon with the other's sides
 * (Sutherland and Hodgman 1974), in double precision. */
#ifndef ROTATED_REF_H
#define ROTATED_REF_H

#include <math.h>

struct rotated_point { double y, x; };

static inline void rotated_corners(const double b[5], struct rotated_point out[4])
{
    static const int side[4][2] = { { -1, -1 }, { -1, 1 }, { 1, 1 }, { 1, -1 } };

    for (int i = 0; i < 4; i++) {
        const double v = side[i][0] * b[2] / 2, u = side[i][1] * b[3] / 2;

        out[i].x = b[1] + u * cos(b[4]) - v * sin(b[4]);
        out[i].y = b[0] + u * sin(b[4]) + v * cos(b[4]);
    }
}

/* Positive on the side of the line p q on which the box lies. */
static inline double rotated_side(struct rotated_point p, struct rotated_point q,
                                  struct rotated_point v)
{
    return (q.x - p.x) * (v.y - p.y) - (q.y - p.y) * (v.x - p.x);
}

static inline double rotated_iou(const double *a, const double *b)
{
    struct rotated_point polygon[16], other[4], clipped[16];
    double inner = 0;
    int count = 4;

    if (!(a[2] > 0 && a[3] > 0 && b[2] > 0 && b[3] > 0))
        return 0;
    rotated_corners(a, polygon);
    rotated_corners(b, other);
    for (int s = 0; s < 4; s++) {
        int n = 0;

        for (int i = 0; i < count; i++) {
            const struct rotated_point p = polygon[i], q = polygon[(i + 1) % count];
            const double d = rotated_side(other[s], other[(s + 1) % 4], p);
            const double e = rotated_side(other[s], other[(s + 1) % 4], q);

            if (d > 0)
                clipped[n++] = p;
            if ((d > 0) != (e > 0))
                clipped[n++] = (struct rotated_point){ p.y + (q.y - p.y) * d / (d - e),
                                                       p.x + (q.x - p.x) * d / (d - e) };
        }
        count = n;
        for (int i = 0; i < n; i++)
            polygon[i] = clipped[i];
    }
    for (int i = 0; i < count; i++) {
        const struct rotated_point p = polygon[i], q = polygon[(i + 1) % count];

        inner += (p.x * q.y - p.y * q.x) / 2;
    }
    return inner > 0 ? inner / (a[2] * a[3] + b[2] * b[3] - inner) : 0;
}

#endif
