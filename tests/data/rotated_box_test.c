/* Rotated boxes: corners, wrapping, the share inside a picture, moves, and round trips through the
 * conventions of others. Tolerances: numbers are up to 2000 pixels in double, and each result takes
 * fewer than 50 roundings of 2^-53 of such a number; 1e-10 pixels is 50 * 2000 / 2^53 * 9. */
#include "base/unit.h"

#include <math.h>

#include <pumice/rng.h>

#include "data/rotated_box.h"

static const double pi = 3.14159265358979323846, close_to = 1e-10;

static void assert_close(double got, double want)
{
    if (!(fabs(got - want) <= close_to))
        fail_msg("%.17g, expected %.17g", got, want);
}

/* The same rectangle with the same axes; a quarter turn may have either sign. */
static void assert_same(const struct pm_rectangle *got, const struct pm_rectangle *want)
{
    assert_close(got->cy, want->cy);
    assert_close(got->cx, want->cx);
    assert_close(got->h, want->h);
    assert_close(got->w, want->w);
    assert_close(fabs(remainder(got->angle - want->angle, pi)), 0);
    assert_true(fabs(got->angle) <= (double)(float)(pi / 2));
}

/* ---- corners --------------------------------------------------------------------------------- */

static void corners(void **state)
{
    /* 90 degrees clockwise: the front edge, at the right before, is below. */
    const struct pm_rectangle r = { 10, 20, 4, 6, pi / 2 };
    static const double want[PM_CORNERS][2] = { { 7, 22 }, { 13, 22 }, { 13, 18 }, { 7, 18 } };
    const struct pm_rectangle flat = { 10, 20, 4, 6, 0 };
    const struct pm_rectangle diagonal = { 0, 0, 2 * sqrt(2), 4 * sqrt(2), pi / 4 };
    static const double want_diagonal[PM_CORNERS][2] = { { -3, -1 }, { 1, 3 }, { 3, 1 },
                                                         { -1, -3 } };
    double got[PM_CORNERS][2], box[4];

    (void)state;
    pm_rectangle_corners(&r, got);
    for (int k = 0; k < 8; k++)
        assert_close(got[k / 2][k % 2], want[k / 2][k % 2]);
    pm_rectangle_corners(&flat, got);
    assert_close(got[PM_CORNER_LT][0], 8);
    assert_close(got[PM_CORNER_LT][1], 17);
    assert_close(got[PM_CORNER_RB][0], 12);
    assert_close(got[PM_CORNER_RB][1], 23);
    pm_rectangle_corners(&diagonal, got);
    for (int k = 0; k < 8; k++)
        assert_close(got[k / 2][k % 2], want_diagonal[k / 2][k % 2]);
    pm_rectangle_around(&diagonal, box);
    for (int k = 0; k < 4; k++)
        assert_close(box[k], k < 2 ? -3 : 3);
}

/* Shares of an unequal picture: only pixels make a rectangle of them. */
static void unequal_sides(void **state)
{
    const float box[5] = { 0.5F, 0.5F, 0.25F, 0.25F, 0.5F };
    float back[5];
    double at[PM_CORNERS][2];
    struct pm_rectangle r;

    (void)state;
    pm_rectangle_of_box(box, 100, 400, &r);
    assert_close(r.h, 25);
    assert_close(r.w, 100);
    pm_rectangle_corners(&r, at);
    const double top[2] = { at[1][0] - at[0][0], at[1][1] - at[0][1] };
    const double side[2] = { at[2][0] - at[1][0], at[2][1] - at[1][1] };
    assert_close(top[0] * side[0] + top[1] * side[1], 0);
    pm_rectangle_to_box(&r, 100, 400, back);
    assert_memory_equal(back, box, sizeof box);
    /* In heights, the box is the same rectangle with one unit along both axes. */
    pm_rotated_to_heights(back, 1, 100, 400);
    struct pm_rectangle one;
    pm_rectangle_of_box(back, 100, 100, &one);
    assert_same(&one, &r);
    pm_rotated_to_shares(back, 1, 100, 400);
    assert_memory_equal(back, box, sizeof box);
}

/* ---- angles ---------------------------------------------------------------------------------- */

static void wrapping(void **state)
{
    (void)state;
    assert_true(pm_angle_wrapped(pi / 2) == pi / 2);
    assert_true(pm_angle_wrapped(-pi / 2) == -pi / 2);
    assert_close(pm_angle_wrapped(pi), 0);
    assert_close(pm_angle_wrapped(2), 2 - pi);
    assert_close(pm_angle_wrapped(-2), pi - 2);
    assert_close(pm_angle_wrapped(7 * pi + 0.25), 0.25);
    assert_true(pm_angle_wrapped((double)(float)(-pi / 2)) == (double)(float)(-pi / 2));
    for (int k = -2000; k <= 2000; k++) {
        const double wrapped = pm_angle_wrapped(k * 0.01);

        assert_true(fabs(wrapped) <= pi / 2);
        assert_close(sin(wrapped - k * 0.01), 0);
    }
}

static void normalised(void **state)
{
    static const struct {
        struct pm_rectangle from, want;
    } cases[] = {
        { { 1, 2, 3, 4, 0.5 }, { 1, 2, 3, 4, 0.5 } },
        { { 1, 2, 4, 3, 0.5 }, { 1, 2, 3, 4, 0.5 - 1.57079632679489661923 } },
        { { 1, 2, 4, 3, -0.5 }, { 1, 2, 3, 4, 1.57079632679489661923 - 0.5 } },
        { { 1, 2, 4, 3, 1.57079632679489661923 }, { 1, 2, 3, 4, 0 } },
        { { 1, 2, 4, 3, -1.57079632679489661923 }, { 1, 2, 3, 4, 0 } },
        { { 1, 2, 3, 3, 1.57079632679489661923 }, { 1, 2, 3, 3, 0 } },
        { { 1, 2, 3, 3, 1 }, { 1, 2, 3, 3, 1 - 1.57079632679489661923 } },
        { { 1, 2, 3, 3, -0.75 }, { 1, 2, 3, 3, -0.75 } },
        { { 1, 2, 0, 0, 3 }, { 1, 2, 0, 0, 3 - 3.14159265358979323846 } },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_rectangle r = cases[i].from;
        double before[4], after[4];

        pm_rectangle_around(&r, before);
        pm_rectangle_normalise(&r);
        assert_same(&r, &cases[i].want);
        pm_rectangle_around(&r, after);
        for (int k = 0; k < 4; k++)
            assert_close(after[k], before[k]);
    }
}

/* ---- the share inside ------------------------------------------------------------------------ */

static void inside(void **state)
{
    /* A picture of 100 x 200. */
    static const struct {
        struct pm_rectangle r;
        double want;
    } cases[] = {
        { { 50, 100, 20, 40, 0.3 }, 1 },
        { { 0, 100, 20, 40, 0 }, 0.5 },
        { { 0, 0, 20, 20, 0 }, 0.25 },
        { { 0, 0, 20, 20, 0.78539816339744830962 }, 0.25 }, /* a quarter of a rhombus */
        { { 0, 100, 20, 40, 1.1 }, 0.5 },          /* a line through the centre halves it */
        { { 50, 200, 30, 60, 1.57079632679489661923 }, 0.5 },
        { { -30, 100, 20, 40, 0 }, 0 },
        { { -10, 100, 20, 40, 0 }, 0 },            /* a common border */
        { { 1000, 1000, 20, 40, 0.5 }, 0 },
        { { 50, 100, 1000, 2000, 0.5 }, 0.01 },    /* it contains the picture */
        { { 50, 100, 0, 40, 0.3 }, 0 },
        { { 50, 100, 20, 0, 0.3 }, 0 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        assert_close(pm_rectangle_inside(&cases[i].r, 100, 200), cases[i].want);
}

/* Against counting points of a fine grid: 400 x 400 points have cells of 1/160000 of the rectangle,
 * and each of four borders crosses fewer than 2 * 800 of them: 0.04. */
static void inside_counted(void **state)
{
    enum { STEPS = 400 };

    (void)state;
    for (int n = 0; n < 40; n++) {
        const struct pm_rectangle r = { 37.0 * n - 40 - 30 * (n % 40), 11.0 * (n % 20) - 10,
                                        20 + n, 90 - n, -1.5 + 0.077 * n };
        double at[PM_CORNERS][2];
        int count = 0;

        pm_rectangle_corners(&r, at);
        for (int i = 0; i < STEPS; i++)
            for (int k = 0; k < STEPS; k++) {
                const double u = (i + 0.5) / STEPS, v = (k + 0.5) / STEPS;
                const double y = at[0][0] + u * (at[1][0] - at[0][0]) + v * (at[3][0] - at[0][0]);
                const double x = at[0][1] + u * (at[1][1] - at[0][1]) + v * (at[3][1] - at[0][1]);

                count += y > 0 && x > 0 && y < 100 && x < 200;
            }
        assert_true(fabs(pm_rectangle_inside(&r, 100, 200) - count / (double)(STEPS * STEPS)) <
                    0.04);
    }
}

/* ---- moves ----------------------------------------------------------------------------------- */

static void moves(void **state)
{
    const struct pm_rectangle from = { 30, 50, 10, 40, 0.4 };
    const double mirror[2][3] = { { 1, 0, 0 }, { 0, -1, 200 } };
    const double turn[2][3] = { { 0, -1, 200 }, { 1, 0, 0 } }; /* counter-clockwise */
    const double twice[2][3] = { { 2, 0, -5 }, { 0, 2, 7 } };
    const double stretch[2][3] = { { 0.75, 0, 0 }, { 0, 1.5, 0 } };
    const double back[2][3] = { { 1 / 0.75, 0, 0 }, { 0, 1 / 1.5, 0 } };
    struct pm_rectangle r = from;

    (void)state;
    pm_rectangle_move(&r, mirror);
    assert_same(&r, &(struct pm_rectangle){ 30, 150, 10, 40, -0.4 });
    r = from;
    pm_rectangle_move(&r, turn);
    assert_same(&r, &(struct pm_rectangle){ 150, 30, 10, 40, 0.4 - pi / 2 });
    r = from;
    pm_rectangle_move(&r, twice);
    assert_same(&r, &(struct pm_rectangle){ 55, 107, 20, 80, 0.4 });
    r = from;
    pm_rectangle_move(&r, stretch);
    assert_close(r.w * r.h, 400 * 0.75 * 1.5);
    assert_close(tan(r.angle), tan(0.4) / 2);
    pm_rectangle_move(&r, back);
    assert_same(&r, &from);
    r = (struct pm_rectangle){ 1, 2, 3, 0, 0.5 }; /* a line stays one */
    pm_rectangle_move(&r, twice);
    assert_true(r.w == 0 && r.cy == -3 && r.cx == 11);
}

/* ---- other conventions ----------------------------------------------------------------------- */

/* Rectangles of many shapes and angles, with the exact quarters, squares and a thin one. */
static struct pm_rectangle sample(int n)
{
    static const double angles[] = { 0, 1.57079632679489661923, -1.57079632679489661923,
                                     0.78539816339744830962, -0.78539816339744830962, 1e-6, 1.5,
                                     -1.5, 0.3, -1.122944 };
    static const double sides[][2] = { { 10, 40 }, { 1, 1000 }, { 30, 30 },
                                       { 178.2595, 778.4297 } };

    const double *side = sides[n / 10 % 4];
    struct pm_rectangle r = { -20 + 13 * n, 700 - 29 * n, side[0], side[1], angles[n % 10] };

    pm_rectangle_normalise(&r);
    return r;
}
enum { SAMPLES = 40 };

/* A square is the same after a quarter turn. */
static void assert_back(const struct pm_rectangle *got, const struct pm_rectangle *want)
{
    struct pm_rectangle r = *want;

    if (want->w == want->h && fabs(remainder(got->angle - want->angle, pi)) > 0.1)
        r.angle += pi / 2;
    assert_same(got, &r);
}

static void through_corners(void **state)
{
    (void)state;
    for (int n = 0; n < SAMPLES; n++)
        for (int first = 0; first < 8; first++) {
            const struct pm_rectangle r = sample(n);
            double at[PM_CORNERS][2], in[PM_CORNERS][2];
            struct pm_rectangle got;

            pm_rectangle_corners(&r, at);
            for (int k = 0; k < PM_CORNERS; k++) { /* any first corner, either way around */
                const int from = (first < 4 ? first + k : first + 8 - k) % 4;

                in[k][0] = at[from][0], in[k][1] = at[from][1];
            }
            const double off = pm_rectangle_of_corners(in, &got);

            assert_true(off >= 0 && off < 1e-9);
            assert_back(&got, &r);
        }
}

static void through_numbers(void **state)
{
    (void)state;
    for (int n = 0; n < SAMPLES; n++) {
        const struct pm_rectangle r = sample(n);
        struct pm_rectangle got;
        double v[5];

        pm_rectangle_to_hrsc(&r, v);
        assert_true(v[0] == r.cx && v[1] == r.cy && v[2] == r.w && v[3] == r.h);
        got = pm_rectangle_of_hrsc(v);
        assert_back(&got, &r);
        pm_rectangle_to_opencv(&r, v);
        assert_true(v[4] > 0 && v[4] <= 90);
        got = pm_rectangle_of_opencv(v);
        assert_back(&got, &r);
        pm_rectangle_to_degrees(&r, v);
        assert_true(fabs(v[4]) <= 90 + 1e-12);
        got = pm_rectangle_of_degrees(v);
        assert_back(&got, &r);
    }
}

/* Directions, by hand: 30 degrees clockwise lowers the right end. */
static void directions(void **state)
{
    const double old_opencv[5] = { 20, 10, 4, 6, -60 }; /* of versions before 4.5.1 */
    const double counter[5] = { 20, 10, 6, 4, -30 };
    const double narrow[5] = { 20, 10, 4, 6, 60 }; /* w below h: counter-clockwise */
    const double turns[5] = { 20, 10, 6, 4, 30 - 720 };
    const struct pm_rectangle want = { 10, 20, 4, 6, pi / 6 };
    double at[PM_CORNERS][2], v[5];
    struct pm_rectangle r;

    (void)state;
    pm_rectangle_corners(&want, at);
    assert_true(at[PM_CORNER_RT][0] > at[PM_CORNER_LT][0]);
    r = pm_rectangle_of_opencv(old_opencv);
    assert_same(&r, &want);
    r = pm_rectangle_of_degrees(counter);
    assert_same(&r, &want);
    r = pm_rectangle_of_degrees(narrow);
    assert_same(&r, &want);
    r = pm_rectangle_of_opencv(turns);
    assert_same(&r, &want);
    pm_rectangle_to_opencv(&(struct pm_rectangle){ 10, 20, 4, 6, -pi / 2 }, v);
    assert_true(v[2] == 6 && v[3] == 4 && v[4] == 90);
    pm_rectangle_to_opencv(&(struct pm_rectangle){ 10, 20, 4, 6, 0 }, v);
    assert_true(v[2] == 4 && v[3] == 6 && v[4] == 90);
}

/* Corners that are no rectangle. */
static void least(void **state)
{
    const struct {
        double at[PM_CORNERS][2], h, w, off;
    } cases[] = {
        /* a trapezium of 10 and 6 by 4: an area of 32 of 40 */
        { { { 0, 0 }, { 0, 10 }, { 4, 8 }, { 4, 2 } }, 4, 10, 0.2 },
        { { { 4, 2 }, { 0, 10 }, { 4, 8 }, { 0, 0 } }, 4, 10, 0.2 }, /* crossing order */
        /* Two coincide: all edges of a right triangle give the same area, the longest counts. */
        { { { 0, 0 }, { 0, 10 }, { 4, 10 }, { 4, 10 } }, 40 / sqrt(116), sqrt(116), 0.5 },
        { { { 0, 0 }, { 0, 10 }, { 1, 5 }, { 4, 5 } }, 4, 10, 0.5 },   /* one is inside */
        { { { 0, 0 }, { 3, 4 }, { 6, 8 }, { 0, 0 } }, 0, 10, 0 },      /* a line */
        { { { 7, 7 }, { 7, 7 }, { 7, 7 }, { 7, 7 } }, 0, 0, 0 },       /* a point */
        { { { 0, 0 }, { 0, 100 }, { 10, 100 }, { 10, 0.5 } }, 10, 100, 0.0025 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_rectangle r;
        const double off = pm_rectangle_of_corners(cases[i].at, &r);

        assert_close(r.h, cases[i].h);
        assert_close(r.w, cases[i].w);
        assert_close(off, cases[i].off);
    }
}

/* No rectangle of another angle around four points is smaller; each contains the points. */
static void none_is_smaller(void **state)
{
    struct pm_rng rng = pm_rng_make(1, 2, 0, 0);

    (void)state;
    for (int n = 0; n < 200; n++) {
        double at[PM_CORNERS][2];
        struct pm_rectangle r;

        for (int k = 0; k < 8; k++)
            at[k / 2][k % 2] = 100 * pm_rng_uniform(&rng);
        pm_rectangle_of_corners(at, &r);
        for (int k = 0; k < 180; k++) {
            const double c = cos(k * pi / 180), s = sin(k * pi / 180);
            double least_x = INFINITY, most_x = -INFINITY, least_y = INFINITY, most_y = -INFINITY;

            for (int i = 0; i < PM_CORNERS; i++) {
                const double x = at[i][1] * c + at[i][0] * s, y = at[i][0] * c - at[i][1] * s;

                least_x = fmin(least_x, x), most_x = fmax(most_x, x);
                least_y = fmin(least_y, y), most_y = fmax(most_y, y);
            }
            assert_true(r.h * r.w <= (most_x - least_x) * (most_y - least_y) + 1e-8);
        }
        for (int i = 0; i < PM_CORNERS; i++) {
            const double y = at[i][0] - r.cy, x = at[i][1] - r.cx;

            assert_true(fabs(x * cos(r.angle) + y * sin(r.angle)) <= r.w / 2 + close_to);
            assert_true(fabs(y * cos(r.angle) - x * sin(r.angle)) <= r.h / 2 + close_to);
        }
    }
}

static void validity(void **state)
{
    (void)state;
    assert_true(pm_rectangle_is_valid(&(struct pm_rectangle){ -5, 900, 1, 2, 1 }));
    assert_false(pm_rectangle_is_valid(&(struct pm_rectangle){ 0, 0, 0, 2, 1 }));
    assert_false(pm_rectangle_is_valid(&(struct pm_rectangle){ 0, 0, 1, -2, 1 }));
    assert_false(pm_rectangle_is_valid(&(struct pm_rectangle){ (double)NAN, 0, 1, 2, 1 }));
    assert_false(pm_rectangle_is_valid(&(struct pm_rectangle){ 0, 0, 1, 2, (double)INFINITY }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corners),       cmocka_unit_test(unequal_sides),
        cmocka_unit_test(wrapping),      cmocka_unit_test(normalised),
        cmocka_unit_test(inside),        cmocka_unit_test(inside_counted),
        cmocka_unit_test(moves),         cmocka_unit_test(through_corners),
        cmocka_unit_test(through_numbers), cmocka_unit_test(directions),
        cmocka_unit_test(least),         cmocka_unit_test(none_is_smaller),
        cmocka_unit_test(validity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
