/* export_try_masks: the values are computed apart from onnx/export_paste.c and from the pasting of
 * tasks/detection/. */
#include "jobs/export_try_masks.h"

#include <pumice/rng.h>

#include <math.h>

#define LEAST_SIDE 0.75

/* Returns a place in the middle between two pixels of `size`, at most an eighth of the axis after
 * the first, or 0: (size / 8 - 0.5) / (size - 1) is below 1/8. */
static double near_border(struct pm_rng *r, int size)
{
    const int most = size / 8;

    return most < 1 || pm_rng_uniform(r) < 0.25
               ? 0
               : (pm_rng_int(r, 0, most - 1) + 0.5) / (size > 1 ? size - 1 : 1);
}

double pm_try_masks_bound(const struct pm_try_masks *t)
{
    const int cells = t->masks.dim[1] > t->masks.dim[2] ? t->masks.dim[1] : t->masks.dim[2];

    return (10 * (cells - 1) / LEAST_SIDE + 20) * ldexp(1, -24);
}

void pm_try_masks_fill(const struct pm_try_masks *t, float *boxes, float *masks)
{
    const size_t count = (size_t)t->masks.dim[0] * (size_t)t->masks.dim[3];
    struct pm_rng r = pm_rng_make(1, pm_hash("masks"), 0, 0);

    for (size_t i = 0; i < 4 * count; i++) {
        const double v = near_border(&r, i % 2 ? t->width : t->height);

        boxes[i] = (float)(i % 4 < 2 ? v : 1 - v);
    }
    for (size_t i = 0; i < pm_shape_count(t->masks); i++)
        masks[i] = (float)pm_rng_uniform(&r);
}

/* The place of pixel i in 0..1 of a box's axis, in cells; NAN: outside. */
static double place(int i, int size, const float *box, int cells)
{
    const double at = size > 1 ? (double)i / (size - 1) : 0.5;
    const double part = (at - (double)box[0]) / ((double)box[2] - (double)box[0]);

    return part >= 0 && part <= 1 ? part * (cells - 1) : NAN;
}

/* The weight of a cell at this place. */
static double weight(double at, int cell)
{
    return isnan(at) ? 0 : fmax(0, 1 - fabs(at - cell));
}

/* Element (n, y, x, d) of an array [n, height, width, D]. */
static size_t at(const struct pm_try_masks *t, int height, int width, int n, int y, int x, int d)
{
    const size_t row = (size_t)n * (size_t)height + (size_t)y;

    return (row * (size_t)width + (size_t)x) * (size_t)t->masks.dim[3] + (size_t)d;
}

static void expect_rows(const struct pm_try_masks *t, int n, int d, const float *box,
                        const float *masks, float *rows)
{
    const int h = t->masks.dim[1], w = t->masks.dim[2];

    for (int y = 0; y < t->height; y++)
        for (int x = 0; x < w; x++) {
            const double where = place(y, t->height, box, h);
            double sum = 0;

            for (int k = 0; k < h; k++)
                sum += weight(where, k) * ((double)masks[at(t, h, w, n, k, x, d)] - 0.5);
            rows[at(t, t->height, w, n, y, x, d)] = (float)sum;
        }
}

void pm_try_masks_expect(const struct pm_try_masks *t, const float *boxes, const float *masks,
                         float *rows, float *columns)
{
    const int w = t->masks.dim[2], most = t->masks.dim[3];

    for (int i = 0; i < t->masks.dim[0] * most; i++) {
        const float *box = boxes + 4 * (size_t)i;

        expect_rows(t, i / most, i % most, box, masks, rows);
        for (int k = 0; k < w; k++)
            for (int x = 0; x < t->width; x++)
                columns[at(t, w, t->width, i / most, k, x, i % most)] =
                    (float)weight(place(x, t->width, box + 1, w), k);
    }
}
