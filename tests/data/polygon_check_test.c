/* Polygons that a converter warns of. Coordinates are fifths of a pixel; the picture has 20 x 30
 * pixels. */
#include "base/unit.h"

#include "data/coco_mask.h"
#include "data/convert/polygon_check.h"

enum { HEIGHT = 20, WIDTH = 30 };
enum { FLAT = 1 << PM_POLYGON_FLAT, CROSSED = 1 << PM_POLYGON_CROSSED,
       OUTSIDE = 1 << PM_POLYGON_OUTSIDE };

static void faults(void **state)
{
    static const struct { size_t points; int32_t xy[12]; unsigned want; } cases[] = {
        { 3, { 0, 0, 50, 0, 0, 50 }, 0 },
        { 4, { 10, 10, 60, 10, 60, 60, 10, 60 }, 0 },
        /* two points, one point, a line with a corner between its ends, a line there and back */
        { 2, { 10, 10, 60, 30 }, FLAT },
        { 3, { 10, 10, 10, 10, 10, 10 }, FLAT },
        { 3, { 10, 10, 30, 20, 50, 30 }, FLAT },
        { 4, { 10, 10, 50, 30, 30, 20, 10, 10 }, FLAT },
        /* a bow tie; corners that only touch an edge or another corner */
        { 4, { 10, 10, 60, 60, 60, 10, 10, 60 }, CROSSED },
        { 5, { 0, 0, 50, 0, 50, 50, 25, 0, 0, 50 }, 0 },
        { 6, { 0, 0, 25, 25, 50, 0, 50, 50, 25, 25, 0, 50 }, 0 },
        { 5, { 0, 0, 100, 40, 0, 80, 60, 0, 60, 80 }, CROSSED },
        /* beyond each border, and around the picture */
        { 3, { -50, 10, 0, 10, -20, 40 }, OUTSIDE },
        { 3, { 150, 10, 190, 10, 170, 40 }, OUTSIDE },
        { 3, { 10, -50, 40, -1, 60, -30 }, OUTSIDE },
        { 3, { 10, 100, 40, 120, 60, 200 }, OUTSIDE },
        { 3, { 149, 10, 190, 10, 170, 40 }, 0 },
        { 4, { -100, -100, 900, -100, 900, 900, -100, 900 }, 0 },
        { 2, { -100, -100, -5, -100 }, FLAT | OUTSIDE },
        /* the largest coordinates */
        { 4, { -(1 << 24), -(1 << 24), 1 << 24, 1 << 24, 1 << 24, -(1 << 24), -(1 << 24), 1 << 24 },
          CROSSED },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        if (pm_polygon_faults(cases[i].xy, cases[i].points, HEIGHT, WIDTH) != cases[i].want)
            fail_msg("case %zu: %u, expected %u", i,
                     pm_polygon_faults(cases[i].xy, cases[i].points, HEIGHT, WIDTH),
                     cases[i].want);
}

/* A zigzag of many corners: without a crossing, then with its last side through all others. */
static void many_corners(void **state)
{
    enum { CORNERS = 4000 };
    int32_t *xy = pm_malloc(2 * CORNERS * sizeof *xy);

    (void)state;
    for (int32_t k = 0; k < CORNERS; k++) {
        xy[2 * k] = k;
        xy[2 * k + 1] = k % 2 ? 40 : 10;
    }
    xy[2 * CORNERS - 1] = 200;
    xy[2 * CORNERS - 2] = CORNERS / 2;
    assert_int_equal(pm_polygon_faults(xy, CORNERS, HEIGHT, WIDTH), CROSSED);
    for (int32_t k = 0; k < CORNERS; k++)
        xy[2 * k + 1] = (k - CORNERS / 2) * (k - CORNERS / 2) / 1000;
    xy[2 * CORNERS - 2] = CORNERS - 1;
    assert_int_equal(pm_polygon_faults(xy, CORNERS, HEIGHT, WIDTH), 0);
    pm_free(xy);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(faults), cmocka_unit_test(many_corners) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
