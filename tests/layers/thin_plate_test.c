/* thin_plate_sampler by its definition: for each case the linear system of the spline is solved in
 * double precision, once for each control point. tests/net/thin_plate_values_test.c has pictures
 * that are known by hand and those of NumPy. */
#include "check.h"

#include <stdlib.h>

enum { MOST_POINTS = 64, MOST_EQUATIONS = MOST_POINTS + 3 };

/* ---- points ---------------------------------------------------------------------------------- */

/* Every first of three pictures keeps its random points, of every second one they are near the
 * fixed points, and of every third one they coincide. */
static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    const int numbers = shape.dim[1], half = numbers / 4;

    (void)c, (void)inputs;
    for (int n = 0; n < shape.dim[0] && input == 1; n++)
        for (int i = 0; i < numbers; i++) {
            float *at = &v[n * numbers + i];
            const float x = (float)(i / 2 % half) / (float)(half - 1), y = i / 2 < half ? 0 : 1;

            if (n % 3 == 1)
                *at = 0.8f * (i % 2 ? y : x) + 0.1f * *at + 0.05f;
            else if (n % 3 == 2)
                *at = i % 2 ? 0.43f : 0.31f;
        }
}

/* ---- the spline ------------------------------------------------------------------------------ */

/* The equations of a spline, in the order of its coefficients: a number and two slopes, then one
 * for each point; the last right side is that of a unit. */
struct spline {
    int points;
    double at[MOST_POINTS][2];
    double part[MOST_POINTS][MOST_EQUATIONS]; /* coefficients if point k alone is 1, others 0 */
};

static double radial(double dx, double dy, double more)
{
    const double d2 = dx * dx + dy * dy;

    return d2 > 0 ? d2 * log(sqrt(d2) + more) : 0;
}

/* Solves a z = b of size n, by elimination with pivots and substitution from the end. */
static void solve(int n, double a[MOST_EQUATIONS][MOST_EQUATIONS], double *b, double *z)
{
    for (int k = 0; k < n; k++) {
        int pivot = k;

        for (int i = k; i < n; i++)
            if (fabs(a[i][k]) > fabs(a[pivot][k]))
                pivot = i;
        for (int j = 0; j < n; j++) {
            const double t = a[k][j];

            a[k][j] = a[pivot][j], a[pivot][j] = t;
        }
        const double t = b[k];
        b[k] = b[pivot], b[pivot] = t;
        for (int i = k + 1; i < n; i++) {
            const double f = a[i][k] / a[k][k];

            for (int j = k; j < n; j++)
                a[i][j] -= f * a[k][j];
            b[i] -= f * b[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        z[k] = b[k];
        for (int j = k + 1; j < n; j++)
            z[k] -= a[k][j] * z[j];
        z[k] /= a[k][k];
    }
}

/* The conditions of a spline: its values at the points, and weights whose sum and moments are 0. */
static void make_spline(const struct ref *r, struct spline *s)
{
    const double mx = ref_number(r, "margin_x", 0), my = ref_number(r, "margin_y", 0);
    const int half = s->points / 2, n = s->points + 3;
    double a[MOST_EQUATIONS][MOST_EQUATIONS], b[MOST_EQUATIONS];

    for (int k = 0; k < s->points; k++) {
        s->at[k][0] = mx + (k % half) * (1 - 2 * mx) / (half - 1);
        s->at[k][1] = k < half ? my : 1 - my;
    }
    for (int unit = 0; unit < s->points; unit++) {
        memset(a, 0, sizeof a), memset(b, 0, sizeof b);
        for (int i = 0; i < s->points; i++) {
            a[i][0] = a[s->points][3 + i] = 1;
            a[i][1] = a[s->points + 1][3 + i] = s->at[i][0];
            a[i][2] = a[s->points + 2][3 + i] = s->at[i][1];
            for (int k = 0; k < s->points; k++)
                a[i][3 + k] = radial(s->at[i][0] - s->at[k][0], s->at[i][1] - s->at[k][1], 0);
        }
        b[unit] = 1;
        solve(n, a, b, s->part[unit]);
    }
}

/* The factor of point k at (x, y). */
static double factor(const struct spline *s, int k, double x, double y)
{
    double sum = s->part[k][0] + s->part[k][1] * x + s->part[k][2] * y;

    for (int i = 0; i < s->points; i++)
        sum += s->part[k][3 + i] * radial(x - s->at[i][0], y - s->at[i][1], 1e-6);
    return sum;
}

/* ---- the rule -------------------------------------------------------------------------------- */

struct place { double at[2], mag[2]; }; /* x, y in pixels; magnitude of the terms */

static void sample(const struct ref *r, int n, const struct place *p, size_t first)
{
    const struct ref_array *x = &r->in[0];
    const int h = x->shape.dim[1], w = x->shape.dim[2];
    const double s = fmin(fmax(p->at[0], 0), w - 2), t = fmin(fmax(p->at[1], 0), h - 2);

    for (int c = 0; c < x->shape.dim[3]; c++) {
        double sum = 0, mag = 0, most = 0;

        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                const int col = (int)floor(s) + j, row = (int)floor(t) + i;
                const double v = x->v[ref_at(x, n, row, col, c)];
                const double share = (1 - fabs(s - col)) * (1 - fabs(t - row));

                sum += share * v;
                mag += share * fabs(v);
                most = fmax(most, fabs(v));
            }
        r->y.v[first + (size_t)c] = sum;
        /* An error of the place moves the value by at most the difference of two pixels. */
        r->y.mag[first + (size_t)c] = mag + 2 * most * (p->mag[0] + p->mag[1]);
    }
}

static void thin_plate_sampler(struct ref *r)
{
    const int *d = r->in[0].shape.dim;
    double size[2] = { 32, 100 };
    struct spline *s = malloc(sizeof *s);

    if (ref_numbers(r, "size", size, 2) == 1)
        size[1] = size[0];
    const int rows = (int)size[0], cols = (int)size[1];
    s->points = r->in[1].shape.dim[1] / 2;
    make_spline(r, s);
    ref_output(r, PM_SHAPE4(d[0], rows, cols, d[3]));
    for (int i = 0; i < rows * cols; i++) {
        const double x = (i % cols + 0.5) / cols, y = (i / cols + 0.5) / rows;
        double m[MOST_POINTS];

        for (int k = 0; k < s->points; k++)
            m[k] = factor(s, k, x, y);
        for (int n = 0; n < d[0]; n++) {
            const double *point = r->in[1].v + 2 * (size_t)(n * s->points);
            struct place p = { { 0 } };

            for (int k = 0; k < 2 * s->points; k++) {
                p.at[k % 2] += d[2 - k % 2] * m[k / 2] * point[k];
                p.mag[k % 2] += d[2 - k % 2] * fabs(m[k / 2] * point[k]);
            }
            sample(r, n, &p, ref_at(&r->y, n, i / cols, i % cols, 0));
        }
    }
    free(s);
}

static const struct check_case cases[] = {
    { "thin_plate_sampler size=[4,7]", "3x6x9x3 3x12@-0.2..1.2" },
    { "thin_plate_sampler size=[3,5] margin_x=0.1 margin_y=0.2", "3x8x8x1 3x20@-0.1..1.1" },
    { "thin_plate_sampler size=[2,6]", "2x5x7x4 2x8@0..1" },      /* the four corners */
    { "thin_plate_sampler size=4", "3x2x2x2 3x8@-0.5..1.5" },     /* one place for all samples */
    { "thin_plate_sampler size=[1,5]", "3x2x9x2 3x40@0..1" },     /* one pair of rows */
    { "thin_plate_sampler size=[5,1] margin_x=0.4", "3x9x2x1 3x12@0..1" },
    { "thin_plate_sampler size=[3,4]", "2x7x11x3 2x40@-2..3" },   /* most places are limited */
    { "thin_plate_sampler size=1", "2x5x5x3 2x128@0..1" },
    { "thin_plate_sampler", "32x32x100x3 32x40@-0.1..1.1", .large = true },
    { "thin_plate_sampler size=[512,256]", "8x40x41x5 8x16@0..1", .large = true },
    { 0 },
};
/* A place is a sum of up to 64 products, each with a rounded factor, times a side: 67 roundings of
 * its magnitude at most; those of up to 20 points are 23. Two roundings more are those of the
 * weights, six those of the mean. */
const struct pm_layer_test pm_test_thin_plate_sampler = { cases, thin_plate_sampler, .ulps = 75,
                                                          .arrange = arrange };
