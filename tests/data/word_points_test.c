/* Key points of words: the division of edges against lengths in double precision, and lists that
 * are refused. */
#include "base/unit.h"

#include "data/word_points.h"

enum { HEIGHT = 40, WIDTH = 100 };

/* ---- division ----------------------------------------------------------------------------- */

/* The point at this share of the length of an edge: the whole lengths up to each of its points come
 * first, the part is found afterwards. */
static void reference(const float *xy, int count, double share, double out[2])
{
    double at[64] = { 0 };
    int i = 0;

    assert_true(count <= 64);
    for (int k = 1; k < count; k++) {
        const double dx = (double)xy[2 * k] - xy[2 * k - 2];
        const double dy = (double)xy[2 * k + 1] - xy[2 * k - 1];

        at[k] = at[k - 1] + sqrt(dx * dx + dy * dy);
    }
    const double wanted = share * at[count - 1];

    while (i < count - 2 && at[i + 1] < wanted)
        i++;
    const double part = at[i + 1] > at[i] ? (wanted - at[i]) / (at[i + 1] - at[i]) : 0;

    for (int c = 0; c < 2; c++)
        out[c] = xy[2 * i + c] + part * ((double)xy[2 * i + 2 + c] - xy[2 * i + c]);
}

/* Coordinates up to 200 have 2^-17 as half a unit in the last place; lengths in double add less. */
static void assert_divided(const float *xy, int of_edge, int count)
{
    const struct pm_word_points p = { xy, of_edge };
    float out[2 * 2 * 32];

    pm_word_points_divide(&p, count, out);
    for (int edge = 0; edge < 2; edge++)
        for (int k = 0; k < count; k++) {
            double want[2];

            reference(xy + 2 * edge * of_edge, of_edge, (double)k / (count - 1), want);
            for (int c = 0; c < 2; c++)
                assert_true(fabs(out[2 * (edge * count + k) + c] - want[c]) <= 0x1p-16);
        }
    for (int edge = 0; edge < 2; edge++) /* both ends are exact */
        for (int c = 0; c < 2; c++) {
            const int first = 2 * edge * of_edge + c, to = 2 * edge * count + c;

            assert_true(out[to] == xy[first]);
            assert_true(out[to + 2 * (count - 1)] == xy[first + 2 * (of_edge - 1)]);
        }
}

static void divides(void **state)
{
    static const float square[] = { 3, 4, 93, 4, 3, 34, 93, 34 };
    /* Two parts of 30 and 10 pixels: the middle is at 20 of the first. */
    static const float bent[] = { 10, 5, 40, 5, 40, 15, 10, 30, 40, 30, 40, 39 };
    /* A point that comes twice, and one that goes back. */
    static const float twice[] = { 0, 0, 0, 0, 50, 0, 40, 0, 40, 0, 0, 39, 20, 39, 20, 39, 20, 39,
                                   70, 39 };
    struct pm_rng r = pm_rng_make(5, pm_hash("points"), 0, 0);
    const struct pm_word_points p = { bent, 3 };
    float out[2 * 2 * 5], any[2 * 2 * 40];

    (void)state;
    pm_word_points_divide(&p, 5, out);
    for (int k = 0; k < 5; k++) {
        assert_true(fabsf(out[2 * k] - (k < 4 ? 10 + 10 * (float)k : 40)) <= 0x1p-16f);
        assert_true(fabsf(out[2 * k + 1] - (k < 4 ? 5 : 15)) <= 0x1p-16f);
    }
    for (int count = 2; count <= 32; count++) {
        assert_divided(square, 2, count);
        assert_divided(bent, 3, count);
        assert_divided(twice, 5, count);
    }
    for (int i = 0; i < 500; i++) {
        const int of_edge = (int)pm_rng_int(&r, 2, 40);

        for (int k = 0; k < 4 * of_edge; k++)
            any[k] = (float)(300 * pm_rng_uniform(&r) - 100);
        assert_divided(any, of_edge, (int)pm_rng_int(&r, 2, 32));
    }
}

/* ---- lists -------------------------------------------------------------------------------- */

/* A record with these numbers; NULL: without the key. */
static struct pm_example *record(const float *v, size_t count, uint8_t **bytes)
{
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_example *e = NULL;
    size_t size = 0;

    if (v)
        pm_example_add_floats(b, "image/keypoints", v, count);
    pm_example_serialise(b, bytes, &size);
    assert_int_equal(pm_example_parse(*bytes, size, "record 7", &e), PM_OK);
    pm_example_builder_destroy(&b);
    return e;
}

static void reads(void **state)
{
    static const float v[] = { -100, -40, 200, 80, 0, 40, 100, 40 }; /* the farthest points */
    struct pm_word_points p;

    (void)state;
    for (int i = 0; i < 3; i++) {
        uint8_t *bytes = NULL;
        struct pm_example *e = record(i < 2 ? v : NULL, i == 0 ? 8 : 0, &bytes);

        assert_int_equal(pm_word_points_read(e, HEIGHT, WIDTH, "record 7", &p), PM_OK);
        assert_int_equal(p.count, i == 0 ? 2 : 0);
        if (i == 0)
            assert_memory_equal(p.xy, v, sizeof v);
        pm_example_destroy(&e);
        pm_free(bytes);
    }
}

static void refused(void **state)
{
    static const struct {
        float v[12];
        size_t count;
        const char *message;
    } cases[] = {
        { { 0, 0, 1, 0, 0, 9, 1 }, 7, "record 7: image/keypoints: 7 numbers; a multiple of 4" },
        { { 0, 0, 1, 0, 0, 9, 1, 9, 2, 9 }, 10, "10 numbers; a multiple of 4" }, /* 5 points */
        { { 0, 0, 0, 9 }, 4, "4 numbers; a multiple of 4 from 8 to" },
        { { 0, 0, 1, 0, 0, 9, NAN, 9 }, 8, "point 4, x nan, y 9, is outside -100..200, -40..80" },
        { { 0, 0, 1, INFINITY, 0, 9, 1, 9 }, 8, "point 2, x 1, y inf, is outside" },
        { { 0, 0, 201, 0, 0, 9, 1, 9 }, 8, "point 2, x 201, y 0, is outside -100..200, -40..80, "
                                           "for a picture 100 pixels wide and 40 high: write x " },
        { { 0, -41, 1, 0, 0, 9, 1, 9 }, 8, "point 1, x 0, y -41, is outside" },
        { { 5, 6, 5, 6, 0, 9, 1, 9 }, 8, "all points of the upper edge are at x 5, y 6" },
        { { 0, 0, 1, 0, 7, 8, 7, 8 }, 8, "all points of the lower edge are at x 7, y 8" },
    };
    struct pm_word_points p;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        uint8_t *bytes = NULL;
        struct pm_example *e = record(cases[i].v, cases[i].count, &bytes);

        assert_int_equal(pm_word_points_read(e, HEIGHT, WIDTH, "record 7", &p), PM_EDATA);
        assert_non_null(strstr(pm_error_text(), cases[i].message));
        assert_null(strchr(pm_error_text(), '\n'));
        assert_int_equal(p.count, 0);
        pm_example_destroy(&e);
        pm_free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(divides), cmocka_unit_test(reads),
                                        cmocka_unit_test(refused) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
