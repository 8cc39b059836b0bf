/* rotated_crops by its definition: one sample at a time, in double precision. Most cases have boxes
 * without area, boxes that leave the map, boxes at quarter turns, and numbers that no box has. */
#include "check.h"

static const float special[][5] = {
    { 0.5f, 0.5f, 1, 1, 0 },              /* the whole picture */
    { 0.5f, 0.5f, 1, 1, 1.57079637f },    /* turned by a quarter */
    { 0.5f, 0.5f, 0, 0, 1 },              /* a point */
    { 0.4f, 0.6f, 0.3f, 0, 0.7f },        /* a line */
    { 0.4f, 0.6f, 0, 0.3f, -0.7f },
    { 0, 0, 0.5f, 0.5f, 0.785398185f },   /* around a corner of the map */
    { 1, 1, 3, 0.2f, -1 },                /* leaves the map on both sides */
    { 5, 5, 1, 1, 0.3f },                 /* outside */
    { 0.5f, 0.5f, 0.6f, 0.2f, 0.4f },     /* twice */
    { 0.5f, 0.5f, 0.6f, 0.2f, 0.4f },
    { 0.5f, 0.5f, 0.2f, 0.6f, -2.5f },
    { 0.5f, 0.5f, -1, 0.5f, 0 },          /* a negative side counts as 0 */
    { 0.5f, 0.5f, 40, 50, 0.1f },         /* much larger than the map */
    { NAN, 0.5f, 1, 1, 0 },
    { 0.5f, 0.5f, 1, 1, NAN },
    { 0.5f, INFINITY, 1, 1, 0 },
    { 0.5f, 0.5f, 2e9f, 1, 0 },           /* beyond the limit */
};

/* Draws sides above 0, and puts the special boxes into small cases with many boxes. */
static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    (void)inputs;
    for (size_t i = 0; i < pm_shape_count(shape) / 5 && input == 1; i++)
        for (size_t k = 0; k < 5; k++) {
            if (k == 2 || k == 3)
                v[5 * i + k] = 0.05f + 0.5f * fabsf(v[5 * i + k]);
            if (k == 4)
                v[5 * i + k] *= 3;
            if (!c->large && shape.dim[1] >= 5 && i % 3 != 2)
                v[5 * i + k] = special[(i - i / 3) % PM_COUNT(special)][k];
        }
}

/* ---- the rule -------------------------------------------------------------------------------- */

static bool valid(const struct ref *r, int image, int row, const double *box)
{
    for (int k = 0; k < 5; k++)
        if (!(fabs(box[k]) <= 1e9))
            return false;
    return r->inputs < 3 || row < r->in[2].v[image];
}

/* Offset of sample i of n from the middle of a side. */
static double offset(double side, int i, int n)
{
    const double length = side > 0 ? side : 0;

    return n == 1 ? 0 : length * (i / (double)(n - 1) - 0.5);
}

/* Adds the map's value at (s, t), where the map is 0 around it. reach: the greatest magnitude of a
 * place of the box, as in crops_test.c. Near a cell of the border the value may be a mean of the
 * border and 0, so the neighbours' magnitudes count there, too. */
static void add_sample(const struct ref_array *x, int image, double s, double t, int c,
                       double reach, double *y, double *mag)
{
    const int h = x->shape.dim[1], w = x->shape.dim[2];

    for (int i = 0; i < h; i++)
        for (int j = 0; j < w; j++) {
            const double v = x->v[ref_at(x, image, i, j, c)];
            const double wy = 1 - fabs(s - i), wx = 1 - fabs(t - j);

            if (wy > 0 && wx > 0)
                *y += wy * wx * v;
            if (wy > -1e-3 && wx > -1e-3)
                *mag += fabs(v) * (1 + reach);
        }
}

static void crop(struct ref *r, int row, const int size[2], double width)
{
    const struct ref_array *x = &r->in[0];
    const int *d = x->shape.dim, image = row / r->in[1].shape.dim[1];
    const double *b = r->in[1].v + 5 * (size_t)row;
    const double tall = d[1] - 1, wide = (d[2] - 1) / width;
    const double reach = (fabs(b[0]) + fabs(b[2]) + fabs(b[3])) * tall +
                         (fabs(b[1]) + fabs(b[2]) + fabs(b[3])) * wide;

    for (int i = 0; i < size[0]; i++)
        for (int j = 0; j < size[1]; j++) {
            const double u = offset(b[2], i, size[0]), v = offset(b[3], j, size[1]);
            const double s = (b[0] + u * cos(b[4]) + v * sin(b[4])) * tall;
            const double t = (b[1] - u * sin(b[4]) + v * cos(b[4])) * wide;

            for (int c = 0; c < d[3]; c++) {
                const size_t to = ref_at(&r->y, row, i, j, c);

                add_sample(x, image, s, t, c, reach, &r->y.v[to], &r->y.mag[to]);
            }
        }
}

static void rotated_crops(struct ref *r)
{
    const int *d = r->in[0].shape.dim, each = r->in[1].shape.dim[1];
    double v[2];
    const int count = ref_numbers(r, "size", v, 2);
    const int size[2] = { count ? (int)v[0] : 14, count ? (int)v[count - 1] : 14 };

    ref_output(r, PM_SHAPE4(d[0] * each, size[0], size[1], d[3]));
    for (int row = 0; row < d[0] * each; row++)
        if (valid(r, row / each, row % each, r->in[1].v + 5 * (size_t)row))
            crop(r, row, size, ref_number(r, "width", 1));
}

static const struct check_case cases[] = {
    { "rotated_crops size=[3,5]", "2x6x7x4 2x3x5@-0.2..1.2" },
    { "rotated_crops size=7", "1x5x4x3 1x24x5@-0.2..1.2" },
    { "rotated_crops size=[4,3] width=1.5", "2x7x5x8 2x25x5@0..1" },
    { "rotated_crops size=1", "2x6x5x4 2x24x5@-0.2..1.2" },
    { "rotated_crops size=[1,4] width=0.6", "1x6x5x3 1x24x5@0..1" },
    { "rotated_crops size=[3,4]", "2x1x1x5 2x25x5@-0.2..1.2" }, /* one cell */
    { "rotated_crops size=[2,3]", "2x1x7x4 2x24x5@-0.2..1.2" }, /* one row */
    { "rotated_crops size=[2,3]", "1x6x1x3 1x24x5@-0.2..1.2" }, /* one column */
    { "rotated_crops size=2", "1x9x8x4 1x1x5@0..1" },
    { "rotated_crops size=3", "2x5x6x4 2x6x5@0..1 i32:2@0..0" },
    { "rotated_crops size=[3,2] width=2", "2x5x6x5 2x6x5@0..1 i32:2@5..5" },
    { "rotated_crops size=3", "3x5x6x4 3x6x5@0..1 i32:3@-2..9" },
    { "rotated_crops size=14 width=1.3", "2x19x20x64 2x64x5@0..1 i32:2@20..64", .large = true },
    { "rotated_crops size=14", "1x38x64x1024 1x64x5@0..1", .large = true },
    { "rotated_crops size=7", "2x33x37x6 2x400x5@0..1", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_rotated_crops = { cases, rotated_crops, .arrange = arrange };
