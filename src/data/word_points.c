/* word_points: word_points.h has the contract. */
#include "data/word_points.h"

#include <math.h>

static double step_of(const float *xy, int i)
{
    return hypot((double)xy[2 * i + 2] - xy[2 * i], (double)xy[2 * i + 3] - xy[2 * i + 1]);
}

static double length_of(const float *xy, int count)
{
    double sum = 0;

    for (int i = 0; i + 1 < count; i++)
        sum += step_of(xy, i);
    return sum;
}

/* Whether v lies in -side..2 side. False for NaN. */
static bool is_near(float v, int side)
{
    return v >= (float)-side && v <= 2 * (float)side;
}

int pm_word_points_check(const float *xy, size_t count, int height, int width, const char *where)
{
    enum { MOST = 1 << 20 };

    if (count % 4 != 0 || count < 8 || count > MOST)
        return pm_fail(PM_EDATA, "%s: image/keypoints: %zu numbers; a multiple of 4 from 8 to %d "
                       "is needed: x, y of at least 2 points of the upper edge, then of as many "
                       "points of the lower edge", where, count, MOST);
    for (size_t i = 0; i < count; i += 2)
        if (!is_near(xy[i], width) || !is_near(xy[i + 1], height))
            return pm_fail(PM_EDATA, "%s: image/keypoints: point %zu, x %g, y %g, is outside "
                           "%d..%d, %d..%d, for a picture %d pixels wide and %d high: write x "
                           "before y, in pixels", where, i / 2 + 1, (double)xy[i],
                           (double)xy[i + 1], -width, 2 * width, -height, 2 * height, width,
                           height);
    for (size_t k = 0; k < 2; k++)
        if (!(length_of(xy + k * (count / 2), (int)(count / 4)) > 0))
            return pm_fail(PM_EDATA, "%s: image/keypoints: all points of the %s edge are at x %g, "
                           "y %g: an edge needs a length", where, k ? "lower" : "upper",
                           (double)xy[k * (count / 2)], (double)xy[k * (count / 2) + 1]);
    return PM_OK;
}

int pm_word_points_read(const struct pm_example *e, int height, int width, const char *where,
                        struct pm_word_points *out)
{
    size_t count = 0;
    int err = PM_OK;
    const float *xy = NULL;
    const int found = pm_example_floats(e, "image/keypoints", &xy, &count);

    *out = (struct pm_word_points){ 0 };
    if (found <= 0 || count == 0)
        return found < 0 ? found : PM_OK;
    PM_TRY(pm_word_points_check(xy, count, height, width, where));
    *out = (struct pm_word_points){ xy, (int)(count / 4) };
out:
    return err;
}

/* Writes `parts` + 1 points of the polyline. The last part of a length is left to the last point,
 * so rounding does not lead beyond it. */
static void divide(const float *xy, int count, int parts, float *out)
{
    const double whole = length_of(xy, count);
    double before = 0; /* length up to point i */
    int i = 0;

    for (int k = 0; k <= parts; k++) {
        const double at = whole * k / parts;

        while (i + 2 < count && before + step_of(xy, i) < at)
            before += step_of(xy, i++);
        const double step = step_of(xy, i);
        const double share = step > 0 ? fmin((at - before) / step, 1) : 0;

        for (int c = 0; c < 2; c++) {
            const double from = xy[2 * i + c], to = xy[2 * i + 2 + c];

            out[2 * k + c] = (float)(from + share * (to - from));
        }
    }
    out[2 * parts] = xy[2 * count - 2];
    out[2 * parts + 1] = xy[2 * count - 1];
}

void pm_word_points_divide(const struct pm_word_points *p, int count, float *out)
{
    for (int k = 0; k < 2; k++)
        divide(p->xy + 2 * k * p->count, p->count, count - 1, out + 2 * k * count);
}
