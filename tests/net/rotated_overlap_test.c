/* Overlaps of rotated boxes: the pairs of tests/golden/rotated_overlap.json, which shapely
 * computed, and properties that must hold exactly: equal boxes, symmetry, boxes far from each
 * other. */
#include "layers/rotated_overlap.h"

#include <math.h>
#include <pumice/rng.h>

#include "base/golden_file.h"

enum { TRIALS = 20000 };
/* Largest errors. With floats, coordinates in the frame have an error of some 2^-24 of the frame's
 * sides, so the area has an error of some 2^-22 of the frame's area: 1e-5 is 40 times as much. */
#define FLOAT_ERROR 1e-5
#define DOUBLE_ERROR 1e-9

/* The overlap with floats, through a batch with the pair at place `at`. */
static float float_overlap(const float a[5], const float b[5], int at)
{
    const float other[5] = { 0, 0, 1, 1, 0 };
    struct pm_rotated_one one, two, rest;
    const struct pm_rotated_one *list[PM_ROTATED_BATCH];
    float inner[PM_ROTATED_BATCH], joined[PM_ROTATED_BATCH];

    pm_rotated_prepare(a, &one);
    pm_rotated_prepare(b, &two);
    pm_rotated_prepare(other, &rest);
    for (int i = 0; i < PM_ROTATED_BATCH; i++)
        list[i] = i == at ? &two : &rest;
    pm_rotated_overlaps(&one, list, at + 1, inner, joined);
    if (pm_rotated_are_apart(&one, &two))
        assert_true(inner[at] == 0);
    return inner[at] > 0 ? inner[at] / joined[at] : 0;
}

static double double_overlap(const float a[5], const float b[5])
{
    double u[5], v[5];

    for (int i = 0; i < 5; i++)
        u[i] = (double)a[i], v[i] = (double)b[i];
    return pm_rotated_overlap(u, v);
}

static void goldens(void **state)
{
    cJSON *all = read_golden("rotated_overlap.json");
    const cJSON *pair;
    int count = 0;

    (void)state;
    cJSON_ArrayForEach(pair, cJSON_GetObjectItem(all, "pairs")) {
        float a[5], b[5];
        const cJSON *v = pair->child;

        for (int i = 0; i < 10; i++, v = v->next)
            (i < 5 ? a : b)[i % 5] = (float)v->valuedouble;
        const double with_floats = (double)float_overlap(a, b, count++ % PM_ROTATED_BATCH);
        const double with_doubles = double_overlap(a, b);

        if (!(fabs(with_doubles - v->valuedouble) <= DOUBLE_ERROR) ||
            !(fabs(with_floats - v->valuedouble) <= FLOAT_ERROR))
            fail_msg("%s: %.17g with doubles, %.9g with floats", cJSON_PrintUnformatted(pair),
                     with_doubles, with_floats);
    }
    assert_int_equal(count, 13 * 150);
    cJSON_Delete(all);
}

/* A box about the origin with sides of very different lengths. */
static void draw_box(struct pm_rng *rng, float box[5])
{
    box[0] = (float)(pm_rng_uniform(rng) - 0.5);
    box[1] = (float)(pm_rng_uniform(rng) - 0.5);
    box[2] = (float)exp(-7 * pm_rng_uniform(rng));
    box[3] = (float)exp(-7 * pm_rng_uniform(rng));
    box[4] = (float)(20 * pm_rng_uniform(rng) - 10);
}

static void equal_boxes_are_one(void **state)
{
    struct pm_rng rng = pm_rng_make(1, 0, 0, 0);

    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        const float scale = i % 3 == 0 ? 1 : i % 3 == 1 ? 1e-6f : 1e4f;
        float a[5];

        draw_box(&rng, a);
        for (int k = 0; k < 4; k++)
            a[k] *= scale;
        assert_true(float_overlap(a, a, i % PM_ROTATED_BATCH) == 1);
        assert_true(double_overlap(a, a) == 1);
    }
}

static void order_does_not_matter(void **state)
{
    struct pm_rng rng = pm_rng_make(2, 0, 0, 0);
    int positive = 0;

    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        float a[5], b[5];

        draw_box(&rng, a);
        draw_box(&rng, b);
        if (i % 4 == 0) /* equal areas */
            b[2] = a[3], b[3] = a[2];
        if (i % 8 == 0)
            memcpy(b, a, 4 * sizeof *b);
        const float v = float_overlap(a, b, 0);

        positive += v > 0;
        assert_true(v == float_overlap(b, a, PM_ROTATED_BATCH - 1));
        assert_true(double_overlap(a, b) == double_overlap(b, a));
        assert_true(v >= 0 && v <= 1);
    }
    assert_in_range(positive, TRIALS / 8, TRIALS);
}

/* Pairs whose circles nearly touch. The early rejection must not lose a true overlap. */
static void rejection_loses_nothing(void **state)
{
    struct pm_rng rng = pm_rng_make(3, 0, 0, 0);
    int rejected = 0, met = 0;

    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        const double turn = 6.2831853 * pm_rng_uniform(&rng);
        struct pm_rotated_one one, two;
        float a[5], b[5];

        draw_box(&rng, a);
        draw_box(&rng, b);
        /* The diagonals lie along the line of the centres, so corners meet. */
        a[4] = (float)(turn - atan2((double)a[2], (double)a[3]));
        b[4] = (float)(turn - atan2((double)b[2], (double)b[3]));
        const double reach = (hypot((double)a[2], (double)a[3]) +
                              hypot((double)b[2], (double)b[3])) / 2 *
                             (0.95 + 0.1 * pm_rng_uniform(&rng));

        b[0] = a[0] + (float)(reach * sin(turn));
        b[1] = a[1] + (float)(reach * cos(turn));
        pm_rotated_prepare(a, &one);
        pm_rotated_prepare(b, &two);
        const double overlap = double_overlap(a, b);

        rejected += pm_rotated_are_apart(&one, &two);
        met += overlap > 0;
        if (overlap > 0 && pm_rotated_are_apart(&one, &two))
            fail_msg("pair %d overlaps by %g but is rejected", i, overlap);
    }
    assert_in_range(rejected, 100, TRIALS);
    assert_in_range(met, TRIALS / 4, TRIALS);
}

/* Whether pm_rotated_near leaves out the only other box. */
static bool is_rejected(const float a[5], const float b[5], float limit)
{
    float y[PM_ROTATED_BATCH] = { b[0] }, x[PM_ROTATED_BATCH] = { b[1] };
    float reach[PM_ROTATED_BATCH], area[PM_ROTATED_BATCH] = { 0 };
    struct pm_rotated_one one, two;
    int found;

    for (int i = 0; i < PM_ROTATED_BATCH; i++)
        reach[i] = NAN;
    pm_rotated_prepare(a, &one);
    pm_rotated_prepare(b, &two);
    reach[0] = pm_rotated_reach_of(&two);
    area[0] = pm_rotated_area_of(&two);
    return pm_rotated_near(&one, (struct pm_rotated_circles){ y, x, reach, area },
                           PM_ROTATED_BATCH, limit, &found) == 0;
}

/* A box and a changed copy of it, so that most overlaps are near the limit. No pair above the limit
 * may be left out, and of the others some must be. */
static void limits_lose_nothing(void **state)
{
    static const float limits[] = { 0, 0.3f, 0.499f, 0.5f, 0.501f, 0.7f, 0.9f, 0.99f, 0.999f };
    struct pm_rng rng = pm_rng_make(4, 0, 0, 0);

    (void)state;
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        const double room = 1 - (double)limits[l];
        int rejected = 0, above = 0;

        for (int i = 0; i < TRIALS; i++) {
            float a[5], b[5];

            draw_box(&rng, a);
            memcpy(b, a, sizeof b);
            for (int k = 0; k < 2; k++) {
                const double part = i % 2 ? pm_rng_normal(&rng) : 0;

                b[0] += (float)(room * part * (double)a[2 + k] * (k ? sin : cos)((double)a[4]));
                b[1] += (float)(room * part * (double)a[2 + k] * (k ? cos : sin)((double)a[4]) *
                                (k ? 1 : -1));
                b[2 + k] *= (float)exp(room * pm_rng_normal(&rng));
            }
            if (i % 4 == 0)
                b[4] += (float)(room * pm_rng_normal(&rng));
            const double overlap = double_overlap(a, b);

            rejected += is_rejected(a, b, limits[l]);
            above += overlap > (double)limits[l];
            if (overlap > (double)limits[l] && is_rejected(a, b, limits[l]))
                fail_msg("pair %d overlaps by %.9g, above %.9g, but is rejected", i, overlap,
                         (double)limits[l]);
        }
        assert_in_range(above, TRIALS / 20, TRIALS);
        if (limits[l] > 0)
            assert_in_range(rejected, TRIALS / 50, TRIALS - above);
    }
}

static void boxes_without_area(void **state)
{
    const float whole[5] = { 0, 0, 1, 1, 0 };
    const float none[][5] = { { 0, 0, 0, 1, 0 }, { 0, 0, 1, 0, 1 }, { 0, 0, -1, 1, 0 },
                              { NAN, 0, 1, 1, 0 }, { 0, NAN, 1, 1, 0 }, { 0, 0, NAN, 1, 0 },
                              { 0, 0, 1, 1, NAN }, { INFINITY, 0, 1, 1, 0 },
                              { 0, 0, 1, 1, INFINITY } };

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_true(float_overlap(none[i], none[i], 0) == 0);
        assert_true(float_overlap(none[i], whole, 0) == 0);
        assert_true(double_overlap(whole, none[i]) == 0);
    }
}

/* Turned by whole turns the box is the same but for the rounding of the angle. */
static void angles_repeat(void **state)
{
    const float box[5] = { 0, 0, 0.01f, 2, 0.5f };

    (void)state;
    for (int turns = -5; turns <= 5; turns++) {
        const float turned[5] = { 0, 0, 0.01f, 2, 0.5f + (float)(6.283185307179586 * turns) };

        assert_true(float_overlap(box, turned, 0) > 0.9997f);
    }
}

/* The intersection alone, with a box that stands for a crop. */
static void share_inside(void **state)
{
    const double crop[5] = { 1, 1, 2, 2, 0 }, box[5] = { 2, 1, 1, 1, 0.7853981633974483 };
    double joined, inner = pm_rotated_intersection(box, crop, &joined);

    (void)state;
    near(inner, 0.5);
    near(joined, 4.5);
    near(pm_rotated_intersection(crop, box, NULL), 0.5);
}

/* How far the farthest corner of a box is outside of 0..1 x 0..width; negative: inside. */
static double excess(const float b[5], float width)
{
    const double c = cos((double)b[4]), s = sin((double)b[4]);
    double most = -INFINITY;

    for (int k = 0; k < 4; k++) {
        const double h = (double)b[2] / (k % 2 ? 2 : -2), w = (double)b[3] / (k / 2 ? 2 : -2);
        const double y = (double)b[0] + h * c + w * s, x = (double)b[1] + w * c - h * s;

        most = fmax(most, fmax(fmax(-y, y - 1), fmax(-x, x - (double)width)));
    }
    return most;
}

static float between(struct pm_rng *r, double low, double high)
{
    return (float)(low + (high - low) * pm_rng_uniform(r));
}

/* Boxes with a corner within 1e-5 of one of the four borders, against the corners in double
 * precision. Numbers are below 4: the last difference is rounded by 2^-23, products and their sum
 * by less together. */
static void corners_inside(void **state)
{
    struct pm_rng rng = pm_rng_make(5, 0, 0, 0);
    int seen[2][4] = { { 0 } };

    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        const float width = between(&rng, 1, 2), border = i % 2 ? 1e-6f : 0.25f;
        float b[5] = { 0.5f, width / 2, between(&rng, 0, 0.5), between(&rng, 0, 0.5),
                       between(&rng, -7, 7) };
        const double c = fabs(cos((double)b[4])), s = fabs(sin((double)b[4]));
        const double h = (double)b[2] / 2, w = (double)b[3] / 2;
        const int side = i / 2 % 4, axis = side % 2; /* top, left, bottom, right */
        const double reach = (axis ? h * s + w * c : h * c + w * s) - (double)border;

        b[axis] = (float)(side < 2 ? reach : (axis ? (double)width : 1) - reach) +
                  between(&rng, -1e-5, 1e-5);
        const double off = excess(b, width) - (double)border;

        assert_true(fabs(off) < 1.1e-5);
        if (fabs(off) <= 0x1p-22)
            continue;
        assert_int_equal(pm_rotated_is_inside(b, width, border), off < 0);
        seen[off < 0][side]++;
    }
    for (int k = 0; k < 8; k++)
        assert_true(seen[k / 4][k % 4] > TRIALS / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens), cmocka_unit_test(equal_boxes_are_one),
        cmocka_unit_test(order_does_not_matter), cmocka_unit_test(rejection_loses_nothing),
        cmocka_unit_test(limits_lose_nothing), cmocka_unit_test(boxes_without_area),
        cmocka_unit_test(angles_repeat), cmocka_unit_test(share_inside),
        cmocka_unit_test(corners_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
