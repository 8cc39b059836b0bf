/* box: scores, areas and overlaps of boxes. */
#include "tasks/detection/box.h"

#include <math.h>

double pm_box_score(const struct pm_box_detection *d)
{
    return isnan(d->score) ? -INFINITY : d->score;
}

double pm_box_area(const struct pm_box *b)
{
    return (b->v[3] - b->v[1]) * (b->v[2] - b->v[0]);
}

double pm_box_overlap(const struct pm_box *d, const struct pm_box *truth, bool crowd)
{
    const double *a = d->v, *b = truth->v;
    const double height_a = a[2] - a[0], width_a = a[3] - a[1];
    const double height_b = b[2] - b[0], width_b = b[3] - b[1];
    const double w = fmin(a[1] + width_a, b[1] + width_b) - fmax(a[1], b[1]);
    const double h = fmin(a[0] + height_a, b[0] + height_b) - fmax(a[0], b[0]);

    if (!(w > 0 && h > 0))
        return 0;
    return w * h / (crowd ? width_a * height_a : width_a * height_a + width_b * height_b - w * h);
}
