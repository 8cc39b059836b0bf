/* resize by its definition: each place of the output maps to a place of the input; its
 * neighbours are weighted, and edges repeat. */
#include "check.h"

struct rule {
    int in[2], out[2];
    double step[2]; /* distance in the input for a step in the output */
};

static double source(const struct ref *r, const struct rule *u, int axis, int o)
{
    const double last_in = u->in[axis] - 1, last_out = u->out[axis] - 1;

    if (ref_says(r, "coordinates", "align_corners", "half_pixel"))
        return last_out > 0 ? o * last_in / last_out : 0;
    if (ref_says(r, "coordinates", "asymmetric", "half_pixel"))
        return o * u->step[axis];
    if (ref_says(r, "coordinates", "tf_half_pixel_for_nn", "half_pixel"))
        return (o + 0.5) * u->step[axis];
    if (ref_says(r, "coordinates", "pytorch_half_pixel", "half_pixel") && u->out[axis] == 1)
        return 0;
    return (o + 0.5) * u->step[axis] - 0.5;
}

static double kernel(double a, double d)
{
    d = fabs(d);
    return d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1
           : d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/* The weight of input place i, which may lie outside, for the place s. */
static double weight(const struct ref *r, double s, int i)
{
    if (ref_says(r, "method", "cubic", "bilinear"))
        return kernel(ref_number(r, "cubic", -0.75), s - i);
    if (!ref_says(r, "method", "nearest", "bilinear"))
        return fmax(0, 1 - fabs(s - i));
    if (ref_says(r, "rounding", "floor", "round_prefer_floor"))
        return floor(s) == i;
    if (ref_says(r, "rounding", "ceil", "round_prefer_floor"))
        return ceil(s) == i;
    if (ref_says(r, "rounding", "round_prefer_ceil", "round_prefer_floor"))
        return i - 0.5 <= s && s < i + 0.5;
    return i - 0.5 < s && s <= i + 0.5;
}

static int inside(int i, int n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static void add_place(struct ref *r, const struct rule *u, size_t to, const int at[4])
{
    const struct ref_array *x = &r->in[0];
    const double s = source(r, u, 0, at[1]), t = source(r, u, 1, at[2]);

    for (int i = (int)floor(s) - 2; i <= (int)floor(s) + 3; i++)
        for (int j = (int)floor(t) - 2; j <= (int)floor(t) + 3; j++) {
            const double w = weight(r, s, i) * weight(r, t, j);
            const double v =
                x->v[ref_at(x, at[0], inside(i, u->in[0]), inside(j, u->in[1]), at[3])];

            r->y.v[to] += w * v;
            r->y.mag[to] += fabs(w * v);
        }
}

static void resize(struct ref *r)
{
    const int *d = r->in[0].shape.dim;
    struct rule u;
    double v[2];

    for (int i = 0; i < 2; i++) {
        int count = ref_numbers(r, "size", v, 2);

        u.in[i] = d[1 + i];
        u.out[i] = (int)v[count == 2 ? i : 0];
        u.step[i] = (double)u.in[i] / u.out[i];
        if (count == 0) {
            count = ref_numbers(r, "scale", v, 2);
            u.out[i] = (int)(u.in[i] * v[count == 2 ? i : 0]);
            u.step[i] = 1 / v[count == 2 ? i : 0];
        }
    }
    ref_output(r, PM_SHAPE4(d[0], u.out[0], u.out[1], d[3]));
    for (size_t i = 0; i < r->y.count; i++) {
        const int *e = r->y.shape.dim;
        const int at[4] = { (int)(i / (size_t)e[3] / (size_t)e[2] / (size_t)e[1]),
                            (int)(i / (size_t)e[3] / (size_t)e[2] % (size_t)e[1]),
                            (int)(i / (size_t)e[3] % (size_t)e[2]), (int)(i % (size_t)e[3]) };

        add_place(r, &u, i, at);
    }
}

static const struct check_case cases[] = {
    { "resize size=[6,8]", "2x3x4x4" },
    { "resize size=7", "2x3x4x5" },
    { "resize scale=2", "1x4x3x3" },
    { "resize scale=[0.5,0.75]", "2x6x8x4" },
    { "resize size=[9,5] coordinates=align_corners", "2x5x3x4" },
    { "resize size=[3,1] coordinates=align_corners", "2x5x3x7" },
    { "resize size=[9,4] coordinates=asymmetric", "2x5x8x4" },
    { "resize size=[1,7] coordinates=pytorch_half_pixel", "2x5x3x4" },
    { "resize method=nearest size=[7,9]", "2x3x4x4" },
    { "resize method=nearest scale=2 coordinates=asymmetric rounding=floor", "2x3x4x5" },
    { "resize method=nearest size=[3,2] coordinates=asymmetric rounding=ceil", "2x7x5x4" },
    { "resize method=nearest size=[5,6] coordinates=tf_half_pixel_for_nn rounding=floor",
      "1x3x4x3" },
    { "resize method=nearest size=6 coordinates=half_pixel rounding=round_prefer_ceil", "1x3x4x3" },
    { "resize method=cubic size=[7,9]", "2x4x5x4" },
    { "resize method=cubic size=[3,4] cubic=-0.5 coordinates=align_corners", "2x5x6x3" },
    { "resize size=[3,9]", "2x2x3x14000", .large = true }, /* a line is processed in groups of
                                                            * columns */
    { "resize size=[2,3]", "1x2x2x33000", .large = true }, /* lines that are read directly */
    { "resize size=[129,129] coordinates=align_corners", "2x33x33x21", .large = true },
    { "resize size=[257,257] coordinates=align_corners", "8x65x65x21", .large = true },
    { "resize size=[129,129] coordinates=align_corners", "8x33x33x256", .large = true },
    /* gradient: several lines are processed together */
    { "resize size=[513,513] coordinates=align_corners", "1x33x33x256", .large = true },
    { "resize scale=2", "4x32x32x64", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_resize = { cases, resize };
