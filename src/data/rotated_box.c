/* rotated_box: turned rectangles. With a = w / 2, b = h / 2, c = cos(angle), s = sin(angle), the
 * half axes are (x, y) = (a c, a s) and (-b s, b c). A corner is the centre plus or minus each of
 * them. All computing is in double. */
#include "data/rotated_box.h"

#include <math.h>

#include "base/angles.h"

static const double half_pi = PM_PI / 2;

/* ---- numbers --------------------------------------------------------------------------------- */

double pm_angle_wrapped(double angle)
{
    /* remainder() may change the sign of a quarter turn; that of float32 is the longer one. */
    return fabs(angle) <= (double)(float)half_pi ? angle : remainder(angle, PM_PI);
}

void pm_rectangle_of_box(const float box[5], int height, int width, struct pm_rectangle *out)
{
    *out = (struct pm_rectangle){ .cy = (double)box[0] * height, .cx = (double)box[1] * width,
                                  .h = (double)box[2] * height, .w = (double)box[3] * width,
                                  .angle = (double)box[4] };
}

void pm_rectangle_to_box(const struct pm_rectangle *r, int height, int width, float box[5])
{
    box[0] = (float)(r->cy / height);
    box[1] = (float)(r->cx / width);
    box[2] = (float)(r->h / height);
    box[3] = (float)(r->w / width);
    box[4] = (float)pm_angle_wrapped(r->angle);
}

static void scale_x(float *boxes, size_t count, double by)
{
    for (float *b = boxes; b < boxes + 5 * count; b += 5) {
        b[1] = (float)((double)b[1] * by); /* cx */
        b[3] = (float)((double)b[3] * by); /* w: its unit, not its direction */
    }
}

void pm_rotated_to_heights(float *boxes, size_t count, int height, int width)
{
    scale_x(boxes, count, (double)width / height);
}

void pm_rotated_to_shares(float *boxes, size_t count, int height, int width)
{
    scale_x(boxes, count, (double)height / width);
}

void pm_rectangle_normalise(struct pm_rectangle *r)
{
    r->angle = pm_angle_wrapped(r->angle);
    if (r->w > r->h)
        return;
    const double quarter = r->angle > 0 ? -half_pi : half_pi;

    if (r->w < r->h) {
        const double w = r->w;

        r->w = r->h;
        r->h = w;
        r->angle += quarter;
    } else if (fabs(r->angle) > half_pi / 2) {
        r->angle += quarter;
    }
}

bool pm_rectangle_is_valid(const struct pm_rectangle *r)
{
    static const double most = 1e9;

    return r->w > 0 && r->h > 0 && r->w <= most && r->h <= most && fabs(r->cy) <= most &&
           fabs(r->cx) <= most && fabs(r->angle) <= most;
}

/* ---- shape ----------------------------------------------------------------------------------- */

/* Half axes as y, x. */
static void half_axes(const struct pm_rectangle *r, double along[2], double across[2])
{
    const double s = sin(r->angle), c = cos(r->angle);

    along[0] = r->w / 2 * s, along[1] = r->w / 2 * c;
    across[0] = r->h / 2 * c, across[1] = -r->h / 2 * s;
}

void pm_rectangle_corners(const struct pm_rectangle *r, double corner[PM_CORNERS][2])
{
    static const int signs[PM_CORNERS][2] = { { -1, -1 }, { 1, -1 }, { 1, 1 }, { -1, 1 } };
    const double centre[2] = { r->cy, r->cx };
    double along[2], across[2];

    half_axes(r, along, across);
    for (int k = 0; k < PM_CORNERS; k++)
        for (int i = 0; i < 2; i++)
            corner[k][i] = centre[i] + signs[k][0] * along[i] + signs[k][1] * across[i];
}

void pm_rectangle_around(const struct pm_rectangle *r, double box[4])
{
    double along[2], across[2];

    half_axes(r, along, across);
    const double y = fabs(along[0]) + fabs(across[0]), x = fabs(along[1]) + fabs(across[1]);

    box[0] = r->cy - y, box[1] = r->cx - x;
    box[2] = r->cy + y, box[3] = r->cx + x;
}

enum { MOST_CORNERS = 12 }; /* four borders of each of two windows add one corner each */
struct outline {
    double at[MOST_CORNERS][2];
    int count;
};

/* Keeps the part of a convex outline where sign * coordinate <= sign * limit. */
static void cut(struct outline *o, int axis, double sign, double limit)
{
    struct outline out = { .count = 0 };

    for (int k = 0; k < o->count; k++) {
        const double *a = o->at[k], *b = o->at[(k + 1) % o->count];
        const double from = sign * (a[axis] - limit), to = sign * (b[axis] - limit);

        if (from <= 0 && out.count < MOST_CORNERS) {
            out.at[out.count][0] = a[0];
            out.at[out.count++][1] = a[1];
        }
        if ((from < 0 && to > 0) || (from > 0 && to < 0)) {
            const double part = from / (from - to);

            if (out.count == MOST_CORNERS) /* rounding made the outline not convex */
                continue;
            out.at[out.count][axis] = limit;
            out.at[out.count++][1 - axis] = a[1 - axis] + part * (b[1 - axis] - a[1 - axis]);
        }
    }
    *o = out;
}

/* By the shoelace formula, relative to the first corner, so that far outlines lose no digits. */
static double area_of(const struct outline *o)
{
    double twice = 0;

    for (int k = 1; k + 1 < o->count; k++) {
        const double *a = o->at[k], *b = o->at[k + 1], *first = o->at[0];

        twice += (a[1] - first[1]) * (b[0] - first[0]) - (b[1] - first[1]) * (a[0] - first[0]);
    }
    return fabs(twice) / 2;
}

/* Keeps the part of an outline inside an upright window: ymin, xmin, ymax, xmax. */
static void cut_window(struct outline *o, const double window[4])
{
    for (int axis = 0; axis < 2; axis++) {
        cut(o, axis, -1, window[axis]);
        cut(o, axis, 1, window[axis + 2]);
    }
}

double pm_rectangle_inside(const struct pm_rectangle *r, double height, double width)
{
    const double window[4] = { 0, 0, height, width }, area = r->h * r->w;
    struct outline o = { .count = PM_CORNERS };
    double box[4];

    if (!(area > 0))
        return 0;
    pm_rectangle_around(r, box);
    if (box[0] >= 0 && box[1] >= 0 && box[2] <= height && box[3] <= width)
        return 1;
    pm_rectangle_corners(r, o.at);
    cut_window(&o, window);
    return fmin(area_of(&o) / area, 1);
}

/* The frame of a has its origin at the centre of a, and its x axis along w. There a is a window,
 * too. */
double pm_rectangle_in_window(const struct pm_rectangle *b, const double window[4],
                              const struct pm_rectangle *a, double *shared)
{
    const double own[4] = { -a->h / 2, -a->w / 2, a->h / 2, a->w / 2 };
    const double s = sin(a->angle), c = cos(a->angle);
    struct outline o = { .count = PM_CORNERS };

    pm_rectangle_corners(b, o.at);
    cut_window(&o, window);
    const double seen = area_of(&o);

    for (int k = 0; k < o.count; k++) {
        const double y = o.at[k][0] - a->cy, x = o.at[k][1] - a->cx;

        o.at[k][0] = y * c - x * s;
        o.at[k][1] = x * c + y * s;
    }
    cut_window(&o, own);
    *shared = fmin(area_of(&o), seen);
    return seen;
}

void pm_rectangle_move(struct pm_rectangle *r, const double map[2][3])
{
    const double y = r->cy, x = r->cx;
    const double det = map[0][0] * map[1][1] - map[0][1] * map[1][0];
    double along[2], across[2], moved[2];

    half_axes(r, along, across);
    for (int i = 0; i < 2; i++)
        moved[i] = map[i][0] * along[0] + map[i][1] * along[1];
    const double half = hypot(moved[0], moved[1]);

    r->cy = map[0][0] * y + map[0][1] * x + map[0][2];
    r->cx = map[1][0] * y + map[1][1] * x + map[1][2];
    if (!(half > 0))
        return;
    r->h = r->w * r->h * fabs(det) / (2 * half);
    r->w = 2 * half;
    r->angle = pm_angle_wrapped(atan2(moved[0], moved[1]));
}

/* ---- corners --------------------------------------------------------------------------------- */

static double triangle(const double a[2], const double b[2], const double c[2])
{
    return fabs((b[1] - a[1]) * (c[0] - a[0]) - (c[1] - a[1]) * (b[0] - a[0])) / 2;
}

/* Area of the outline of four points in any order. If it has four corners, it is the largest of the
 * three orders in which they can be joined; if one point is inside, it is the largest triangle. */
static double area_of_points(const double p[PM_CORNERS][2])
{
    static const int orders[3][PM_CORNERS] = { { 0, 1, 2, 3 }, { 0, 2, 1, 3 }, { 0, 1, 3, 2 } };
    double most = 0;

    for (int k = 0; k < 3; k++) {
        struct outline o = { .count = PM_CORNERS };

        for (int i = 0; i < PM_CORNERS; i++)
            o.at[i][0] = p[orders[k][i]][0], o.at[i][1] = p[orders[k][i]][1];
        most = fmax(most, area_of(&o));
    }
    for (int k = 0; k < PM_CORNERS; k++)
        most = fmax(most, triangle(p[k], p[(k + 1) % 4], p[(k + 2) % 4]));
    return most;
}

/* The rectangle around the points whose w axis has this direction y, x of length 1. */
static struct pm_rectangle around_points(const double p[PM_CORNERS][2], const double dir[2])
{
    double least[2] = { INFINITY, INFINITY }, most[2] = { -INFINITY, -INFINITY };

    for (int k = 0; k < PM_CORNERS; k++) {
        const double y = p[k][0] - p[0][0], x = p[k][1] - p[0][1];
        const double at[2] = { x * dir[1] + y * dir[0], y * dir[1] - x * dir[0] };

        for (int i = 0; i < 2; i++) {
            least[i] = fmin(least[i], at[i]);
            most[i] = fmax(most[i], at[i]);
        }
    }
    const double along = (least[0] + most[0]) / 2, across = (least[1] + most[1]) / 2;

    return (struct pm_rectangle){ .cy = p[0][0] + along * dir[0] + across * dir[1],
                                  .cx = p[0][1] + along * dir[1] - across * dir[0],
                                  .h = most[1] - least[1], .w = most[0] - least[0],
                                  .angle = atan2(dir[0], dir[1]) };
}

/* A least rectangle has a side on an edge of the outline (Freeman and Shapira, 1975). The lines
 * through all pairs of points include those edges, so the outline need not be computed. Of equal
 * areas the longest edge counts, because its direction has the least rounding: all four edges of a
 * rectangle give the same area. */
double pm_rectangle_of_corners(const double corner[PM_CORNERS][2], struct pm_rectangle *out)
{
    const double equal = 1e-9; /* relative */
    double longest = 0;

    *out = (struct pm_rectangle){ .cy = corner[0][0], .cx = corner[0][1] };
    for (int n = 1; n < PM_CORNERS; n++)
        for (int k = 0; k < PM_CORNERS; k++) {
            const double *a = corner[k], *b = corner[(k + n) % PM_CORNERS];
            const double y = b[0] - a[0], x = b[1] - a[1], length = hypot(y, x);

            if (!(length > 0))
                continue;
            const struct pm_rectangle r =
                around_points(corner, (double[2]){ y / length, x / length });
            const double area = r.h * r.w, best = out->h * out->w;

            if (longest == 0 || area < best * (1 - equal) ||
                (area <= best * (1 + equal) && length > longest)) {
                *out = r;
                longest = length;
            }
        }
    pm_rectangle_normalise(out);
    if (out->h <= equal * out->w) /* the corners are in a line */
        out->h = 0;
    const double area = out->h * out->w;

    return area > 0 ? fmax(1 - area_of_points(corner) / area, 0) : 0;
}

/* ---- centre forms ---------------------------------------------------------------------------- */

/* numbers: centre x, centre y, w, h, and an angle whose unit is `unit` radians clockwise. */
static struct pm_rectangle of_numbers(const double numbers[5], double unit)
{
    struct pm_rectangle r = { .cy = numbers[1], .cx = numbers[0], .h = numbers[3],
                              .w = numbers[2], .angle = numbers[4] * unit };

    pm_rectangle_normalise(&r);
    return r;
}

static void to_numbers(const struct pm_rectangle *r, double unit, double numbers[5])
{
    numbers[0] = r->cx, numbers[1] = r->cy;
    numbers[2] = r->w, numbers[3] = r->h;
    numbers[4] = pm_angle_wrapped(r->angle) / unit;
}

struct pm_rectangle pm_rectangle_of_hrsc(const double numbers[5])
{
    return of_numbers(numbers, 1);
}

void pm_rectangle_to_hrsc(const struct pm_rectangle *r, double numbers[5])
{
    to_numbers(r, 1, numbers);
}

struct pm_rectangle pm_rectangle_of_opencv(const double numbers[5])
{
    return of_numbers(numbers, PM_PI / 180);
}

void pm_rectangle_to_opencv(const struct pm_rectangle *r, double numbers[5])
{
    to_numbers(r, PM_PI / 180, numbers);
    if (numbers[4] > 0)
        return;
    numbers[2] = r->h, numbers[3] = r->w;
    numbers[4] += 90;
    if (!(numbers[4] > 0)) { /* -90 degrees are 90 */
        numbers[2] = r->w, numbers[3] = r->h;
        numbers[4] = 90;
    }
}

struct pm_rectangle pm_rectangle_of_degrees(const double numbers[5])
{
    return of_numbers(numbers, -PM_PI / 180);
}

void pm_rectangle_to_degrees(const struct pm_rectangle *r, double numbers[5])
{
    to_numbers(r, -PM_PI / 180, numbers);
}
