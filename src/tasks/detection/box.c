/* box: scores, areas and overlaps of boxes. */
#include "tasks/detection/box.h"

#include "data/rotated_box.h"
#include "layers/rotated_overlap.h"

#include <math.h>

double pm_box_score(const struct pm_box_detection *d)
{
    return isnan(d->score) ? -INFINITY : d->score;
}

/* ---- upright boxes --------------------------------------------------------------------------- */

static bool upright_has_sides(const double *b)
{
    return b[2] > b[0] && b[3] > b[1];
}

static double upright_area(const double *b)
{
    return (b[3] - b[1]) * (b[2] - b[0]);
}

/* Computed from widths, as in pycocotools. */
static double upright_overlap(const double *a, const double *b, bool of_first)
{
    const double height_a = a[2] - a[0], width_a = a[3] - a[1];
    const double height_b = b[2] - b[0], width_b = b[3] - b[1];
    const double w = fmin(a[1] + width_a, b[1] + width_b) - fmax(a[1], b[1]);
    const double h = fmin(a[0] + height_a, b[0] + height_b) - fmax(a[0], b[0]);

    if (!(w > 0 && h > 0))
        return 0;
    return w * h /
           (of_first ? width_a * height_a : width_a * height_a + width_b * height_b - w * h);
}

static double upright_agreement(const double *a, const double *b, const struct pm_box *window)
{
    const double *w = window->v;
    const double seen[] = { fmax(b[0], w[0]), fmax(b[1], w[1]), fmin(b[2], w[2]),
                            fmin(b[3], w[3]) };

    return upright_has_sides(seen) ? upright_overlap(a, seen, false) : 0;
}

static void upright_bounds(const double *b, struct pm_box *out)
{
    *out = (struct pm_box){ { b[0], b[1], b[2], b[3] } };
}

const struct pm_box_geometry pm_box_upright = {
    .numbers = 4, .has_sides = upright_has_sides, .area = upright_area,
    .overlap = upright_overlap, .agreement = upright_agreement, .bounds = upright_bounds,
};

/* ---- rotated boxes --------------------------------------------------------------------------- */

static bool rotated_has_sides(const double *b)
{
    return b[2] > 0 && b[3] > 0;
}

static double rotated_area(const double *b)
{
    return b[2] * b[3];
}

/* Whether circles around the boxes are apart from each other. Circles of boxes that overlap never
 * are: the margin is far above the rounding of the sums. It saves the sines of most pairs. */
static bool are_apart(const double *a, const double *b)
{
    const double reach = (hypot(a[2], a[3]) + hypot(b[2], b[3])) / 2;

    return hypot(a[0] - b[0], a[1] - b[1]) > reach * (1 + 1e-9);
}

static double rotated_overlap(const double *a, const double *b, bool of_first)
{
    double joined, inner;

    if (!rotated_has_sides(a) || !rotated_has_sides(b) || are_apart(a, b))
        return 0;
    inner = pm_rotated_intersection(a, b, &joined);
    return inner > 0 ? inner / (of_first ? rotated_area(a) : joined) : 0;
}

static double rotated_agreement(const double *a, const double *b, const struct pm_box *window)
{
    const struct pm_rectangle one = pm_rectangle_of_pixels(a), two = pm_rectangle_of_pixels(b);
    double shared, seen;

    if (!rotated_has_sides(a) || !rotated_has_sides(b))
        return 0;
    seen = pm_rectangle_in_window(&two, window->v, &one, &shared);
    return shared > 0 ? shared / (rotated_area(a) + seen - shared) : 0;
}

static void rotated_bounds(const double *b, struct pm_box *out)
{
    const struct pm_rectangle r = pm_rectangle_of_pixels(b);

    pm_rectangle_around(&r, out->v);
}

const struct pm_box_geometry pm_box_rotated = {
    .numbers = PM_ROTATED_BOX, .has_sides = rotated_has_sides, .area = rotated_area,
    .overlap = rotated_overlap, .agreement = rotated_agreement, .bounds = rotated_bounds,
};

/* ---- both ------------------------------------------------------------------------------------ */

const struct pm_box_geometry *pm_box_geometry_of(bool rotated)
{
    return rotated ? &pm_box_rotated : &pm_box_upright;
}

const double *pm_box_truth_numbers(const struct pm_box_geometry *g, const struct pm_box_truth *t)
{
    return g == &pm_box_rotated ? t->rotated : t->box.v;
}

const double *pm_box_found_numbers(const struct pm_box_geometry *g,
                                   const struct pm_box_detection *d)
{
    return g == &pm_box_rotated ? d->rotated : d->box.v;
}

double pm_box_overlap(const struct pm_box_geometry *g, const struct pm_box_detection *d,
                      const struct pm_box_truth *t, bool crowd)
{
    return g->overlap(pm_box_found_numbers(g, d), pm_box_truth_numbers(g, t), crowd);
}
