/* crop_and_resize and sensitive_crops by their definitions: one sample at a time, in double
 * precision. Most cases have equal boxes, boxes without area, boxes that leave the map, corners in
 * any order, and numbers that no box has. tests/net/crops_values_test.c has crops that are known by
 * hand. */
#include "check.h"

#include <stdlib.h>

/* ---- boxes ----------------------------------------------------------------------------------- */

static const float special[][4] = {
    { 0, 0, 1, 1 },                    /* the last samples lie on the last cells */
    { 0.3f, 0.3f, 1, 1 },
    { 0.5f, 0.25f, 0.5f, 0.25f },      /* without area */
    { 1, 1, 1, 1 },
    { 0.25f, 0.5f, 0.75f, 0.5f },      /* without width */
    { 0.1f, 0.2f, 0.6f, 0.9f },        /* twice */
    { 0.1f, 0.2f, 0.6f, 0.9f },
    { -0.5f, -0.25f, 0.5f, 0.75f },    /* partly outside */
    { -3, -3, 4, 4 },
    { 1.25f, 1.25f, 2, 2 },            /* outside */
    { 0.75f, 1, 0.25f, 0 },            /* corners in reverse order */
    { NAN, 0, 1, 1 },
    { 0, 0, 1, NAN },
    { 0, 0, INFINITY, 1 },
    { -INFINITY, 0, 1, 1 },
    { 0, 0, 2e30f, 1 },                /* beyond the limit */
};

/* Puts the special boxes into small cases with many boxes. The boxes of large cases, which bench
 * runs, have their corners in order. */
static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    (void)inputs;
    for (size_t i = 0; i < pm_shape_count(shape) / 4 && input == 1; i++)
        for (size_t k = 0; k < 4; k++) {
            float *corner = &v[4 * i + k];
            const float other = corner[2 * (k < 2)];

            if (c->large && k < 2 && other < *corner)
                corner[2] = *corner, *corner = other;
            if (!c->large && shape.dim[1] >= 5 && i % 3 != 2)
                *corner = special[(i - i / 3) % PM_COUNT(special)][k];
        }
}

/* ---- the rule -------------------------------------------------------------------------------- */

/* Whether the box is one of its image's first `count` (the third input) and its corners are
 * numbers up to 1e30. */
static bool valid(const struct ref *r, int image, int row)
{
    const double *box = r->in[1].v + 4 * ((size_t)image * r->in[1].shape.dim[1] + row);

    for (int i = 0; i < 4; i++)
        if (!(fabs(box[i]) <= 1e30))
            return false;
    return r->inputs < 3 || row < r->in[2].v[image];
}

/* Place of sample i of n in low..high of an axis of `size` cells. */
static double place_of(double low, double high, int i, int n, int size)
{
    if (n == 1)
        return (low + high) / 2 * (size - 1);
    return low * (size - 1) + i * (high - low) * (size - 1) / (n - 1);
}

/* Adds share times the map's value at (s, t) of channel c to *y. reach: the greatest magnitude of a
 * place of the box. A place of float32 is a sum of three roundings of this size; they move the
 * value by at most the neighbours' magnitudes. */
static void add_sample(const struct ref_array *x, int image, double s, double t, int c,
                       double reach, double share, double *y, double *mag)
{
    const int h = x->shape.dim[1], w = x->shape.dim[2];
    const double nearly = 1e-9; /* roundings of double precision at the border */

    if (s < -nearly || s > h - 1 + nearly || t < -nearly || t > w - 1 + nearly)
        return;
    s = fmin(fmax(s, 0), h - 1);
    t = fmin(fmax(t, 0), w - 1);
    for (int i = (int)floor(s); i <= (int)ceil(s); i++)
        for (int j = (int)floor(t); j <= (int)ceil(t); j++) {
            const double v = x->v[ref_at(x, image, i, j, c)];

            *y += share * (1 - fabs(s - i)) * (1 - fabs(t - j)) * v;
            *mag += share * fabs(v) * (1 + reach);
        }
}

/* n[0] x n[1] samples of channel c in a box, or in a bin of it. share: weight of each sample. */
struct part {
    int image, c, n[2];
    double low[2], high[2], share;
};

static double reach_of(const struct ref *r, const struct part *p)
{
    const int *d = r->in[0].shape.dim;
    double reach = 0;

    for (int k = 0; k < 2; k++)
        reach = fmax(reach, fmax(fabs(p->low[k]), fabs(p->high[k])) * (d[1 + k] - 1));
    return reach;
}

/* Adds sample (i, j) to value `to` of the output. */
static void add_one(const struct ref *r, const struct part *p, int i, int j, size_t to)
{
    const int *d = r->in[0].shape.dim;
    const double s = place_of(p->low[0], p->high[0], i, p->n[0], d[1]);
    const double t = place_of(p->low[1], p->high[1], j, p->n[1], d[2]);

    add_sample(&r->in[0], p->image, s, t, p->c, reach_of(r, p), p->share, &r->y.v[to],
               &r->y.mag[to]);
}

static void pair(const struct ref *r, const char *key, int otherwise, int out[2])
{
    double v[2];
    const int count = ref_numbers(r, key, v, 2);

    for (int i = 0; i < 2; i++)
        out[i] = count == 0 ? otherwise : (int)v[count == 2 ? i : 0];
}

/* ---- crop_and_resize ------------------------------------------------------------------------- */

static void crop_and_resize(struct ref *r)
{
    const int *d = r->in[0].shape.dim, each = r->in[1].shape.dim[1];
    int size[2];

    pair(r, "size", 14, size);
    ref_output(r, PM_SHAPE4(d[0] * each, size[0], size[1], d[3]));
    for (int row = 0; row < d[0] * each; row++) {
        const double *box = r->in[1].v + 4 * (size_t)row;
        struct part p = { row / each, 0, { size[0], size[1] }, { box[0], box[1] },
                          { box[2], box[3] }, 1 };

        for (int i = 0; i < size[0] && valid(r, row / each, row % each); i++)
            for (int j = 0; j < size[1]; j++)
                for (p.c = 0; p.c < d[3]; p.c++)
                    add_one(r, &p, i, j, ref_at(&r->y, row, i, j, p.c));
    }
}

static const struct check_case crop_cases[] = {
    { "crop_and_resize size=[3,5]", "2x6x7x4 2x3x4@-0.2..1.2" },
    { "crop_and_resize size=7", "1x5x4x3 1x24x4@-0.2..1.2" },
    { "crop_and_resize size=[4,3]", "2x7x5x8 2x12x4@0..1" },
    { "crop_and_resize size=1", "2x6x5x4 2x24x4@-0.2..1.2" },
    { "crop_and_resize size=[1,4]", "1x6x5x3 1x24x4@0..1" },
    { "crop_and_resize size=[3,4]", "2x1x1x5 2x24x4@-0.2..1.2" }, /* one cell */
    { "crop_and_resize size=[2,3]", "2x1x7x4 2x24x4@-0.2..1.2" }, /* one row */
    { "crop_and_resize size=[2,3]", "1x6x1x3 1x24x4@-0.2..1.2" }, /* one column */
    { "crop_and_resize size=2", "1x9x8x4 1x1x4@0..1" },
    { "crop_and_resize size=3", "2x5x6x4 2x6x4@0..1 i32:2@0..0" },
    { "crop_and_resize size=3", "2x5x6x4 2x6x4@0..1 i32:2@1..1" },
    { "crop_and_resize size=[3,2]", "2x5x6x5 2x6x4@0..1 i32:2@5..5" },
    { "crop_and_resize size=3", "2x5x6x4 2x6x4@0..1 i32:2@6..6" },
    { "crop_and_resize size=3", "3x5x6x4 3x6x4@0..1 i32:3@-2..9" },
    { "crop_and_resize size=3", "2x5x6x4 2x1x4@0..1 i32:2@0..1" },
    { "crop_and_resize size=14", "2x19x20x64 2x64x4@0..1 i32:2@20..64", .large = true },
    { "crop_and_resize size=14", "1x38x64x1024 1x64x4@0..1", .large = true },
    { "crop_and_resize size=17", "1x50x75x1088 1x64x4@-0.1..1.1", .large = true },
    { "crop_and_resize size=7", "2x33x37x6 2x400x4@0..1", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_crop_and_resize = { crop_cases, crop_and_resize,
                                                       .arrange = arrange };

/* ---- sensitive_crops ------------------------------------------------------------------------- */

/* Adds bin (i, j) of a box, `at`, to the outputs of the box, channel by channel. */
static void add_bin(const struct ref *r, const double *box, const int bins[2], const int at[2],
                    struct part p, int channels, int row)
{
    for (int k = 0; k < 2; k++) {
        const double side = (box[2 + k] - box[k]) / bins[k];

        p.low[k] = box[k] + at[k] * side;
        p.high[k] = p.low[k] + side;
    }
    for (int d = 0; d < channels; d++) {
        p.c = (at[0] * bins[1] + at[1]) * channels + d;
        for (int i = 0; i < p.n[0]; i++)
            for (int j = 0; j < p.n[1]; j++)
                add_one(r, &p, i, j, (size_t)row * (size_t)channels + (size_t)d);
    }
}

static void sensitive_crops(struct ref *r)
{
    const int *d = r->in[0].shape.dim, each = r->in[1].shape.dim[1];
    int size[2], bins[2], at[2];

    pair(r, "size", 12, size);
    pair(r, "bins", 3, bins);
    const int channels = d[3] / (bins[0] * bins[1]);
    ref_output(r, PM_SHAPE2(d[0] * each, channels));
    for (int row = 0; row < d[0] * each; row++) {
        const struct part p = { .image = row / each, .n = { size[0] / bins[0], size[1] / bins[1] },
                                .share = 1.0 / (size[0] * size[1]) };

        for (at[0] = 0; at[0] < bins[0] && valid(r, row / each, row % each); at[0]++)
            for (at[1] = 0; at[1] < bins[1]; at[1]++)
                add_bin(r, r->in[1].v + 4 * (size_t)row, bins, at, p, channels, row);
    }
}

static const struct check_case sensitive_cases[] = {
    { "sensitive_crops bins=2 size=4", "2x6x7x16 2x3x4@-0.2..1.2" },
    { "sensitive_crops", "1x5x6x27 1x24x4@-0.2..1.2" },
    { "sensitive_crops bins=[2,3] size=[6,3]", "2x7x5x24 2x12x4@0..1" },
    { "sensitive_crops bins=1 size=3", "1x6x5x4 1x24x4@-0.2..1.2" },
    { "sensitive_crops bins=3 size=3", "1x6x5x36 1x24x4@0..1" },
    { "sensitive_crops bins=2 size=6", "2x1x1x20 2x24x4@-0.2..1.2" }, /* one cell */
    { "sensitive_crops bins=2 size=[2,4]", "1x1x7x8 1x24x4@-0.2..1.2" }, /* one row */
    { "sensitive_crops bins=[1,2] size=[3,2]", "2x9x1x6 2x24x4@-0.2..1.2" },
    { "sensitive_crops bins=3 size=9", "1x9x8x9 1x1x4@0..1" },
    { "sensitive_crops bins=2 size=4", "2x5x6x16 2x6x4@0..1 i32:2@0..0" },
    { "sensitive_crops bins=2 size=4", "2x5x6x16 2x6x4@0..1 i32:2@1..1" },
    { "sensitive_crops bins=2 size=4", "2x5x6x20 2x6x4@0..1 i32:2@5..5" },
    { "sensitive_crops bins=2 size=4", "2x5x6x16 2x6x4@0..1 i32:2@6..6" },
    { "sensitive_crops bins=2 size=4", "3x5x6x16 3x6x4@0..1 i32:3@-2..9" },
    { "sensitive_crops size=18", "2x19x20x189 2x64x4@0..1 i32:2@20..64", .large = true },
    { "sensitive_crops size=18", "1x38x64x3240 1x64x4@0..1", .large = true },
    { "sensitive_crops size=18", "1x38x64x819 1x64x4@0..1", .large = true },
    { "sensitive_crops bins=7 size=14", "1x38x64x1029 1x300x4@-0.1..1.1", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_sensitive_crops = { sensitive_cases, sensitive_crops,
                                                       .arrange = arrange };
