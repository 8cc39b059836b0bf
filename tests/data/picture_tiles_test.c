/* The tiles of pictures: they cover each pixel, neighbours overlap as asked, the last one ends with
 * the picture, and every stretch up to the overlap is whole in a tile. */
#include "base/unit.h"

#include "data/picture_tiles.h"

static struct pm_tile_grid grid_of(int side, int overlap, int height, int width)
{
    const struct pm_tiling t = { { side, side }, { overlap, overlap } };
    struct pm_tile_grid g;

    assert_int_equal(pm_tile_grid_of(&t, height, width, "p", &g), PM_OK);
    return g;
}

static void expect_columns(const struct pm_tile_grid *g, const int *x, int count)
{
    assert_int_equal(g->count[1], count);
    for (int k = 0; k < count; k++)
        assert_int_equal(pm_tile_at(g, (size_t)k).x, x[k]);
}

#define EXPECT_COLUMNS(g, ...)                                                   \
    do {                                                                         \
        const struct pm_tile_grid g_ = g;                                        \
        const int x_[] = { __VA_ARGS__ };                                        \
        expect_columns(&g_, x_, (int)PM_COUNT(x_));                              \
    } while (0)

static void places(void **state)
{
    (void)state;
    EXPECT_COLUMNS(grid_of(10, 0, 10, 30), 0, 10, 20);      /* exactly three */
    EXPECT_COLUMNS(grid_of(10, 4, 10, 28), 0, 6, 12, 18);   /* exactly four */
    EXPECT_COLUMNS(grid_of(10, 0, 10, 31), 0, 10, 20, 21);  /* the last is moved inside */
    EXPECT_COLUMNS(grid_of(10, 4, 10, 23), 0, 6, 12, 13);
    EXPECT_COLUMNS(grid_of(10, 9, 10, 12), 0, 1, 2);
    EXPECT_COLUMNS(grid_of(10, 4, 10, 11), 0, 1);
    EXPECT_COLUMNS(grid_of(10, 4, 10, 10), 0);              /* one */
    EXPECT_COLUMNS(grid_of(10, 4, 10, 7), 0);               /* smaller than a tile */
    EXPECT_COLUMNS(grid_of(1, 0, 1, 3), 0, 1, 2);
}

/* A small picture has a tile of its size; without sides the picture is the tile. */
static void small(void **state)
{
    struct pm_tile_grid g = grid_of(10, 2, 7, 30);
    struct pm_tile t = pm_tile_at(&g, 1);

    (void)state;
    assert_true(t.y == 0 && t.x == 8 && t.height == 7 && t.width == 10);
    g = grid_of(0, 0, 5000, 3);
    t = pm_tile_at(&g, 0);
    assert_int_equal(pm_tile_count(&g), 1);
    assert_true(t.y == 0 && t.x == 0 && t.height == 5000 && t.width == 3);
}

static void rows_first(void **state)
{
    const struct pm_tiling tiling = { { 4, 6 }, { 1, 2 } };
    struct pm_tile_grid g;

    (void)state;
    assert_int_equal(pm_tile_grid_of(&tiling, 8, 10, "p", &g), PM_OK);
    assert_true(g.count[0] == 3 && g.count[1] == 2);
    const struct pm_tile t = pm_tile_at(&g, 3); /* row 1, column 1 */
    assert_true(t.y == 3 && t.x == 4 && t.height == 4 && t.width == 6);
    assert_int_equal(pm_tile_at(&g, 5).y, 4);
}

/* Every stretch of at most `overlap` pixels is whole in a tile, for all small sizes. */
static void stretches(void **state)
{
    (void)state;
    for (int side = 1; side <= 7; side++)
        for (int overlap = 0; overlap < side; overlap++)
            for (int size = 1; size <= 25; size++) {
                const struct pm_tile_grid g = grid_of(side, overlap, 1, size);
                const int most = overlap > 1 ? overlap : 1;

                for (int from = 0; from + most <= size; from++) {
                    bool whole = false;

                    for (size_t k = 0; k < pm_tile_count(&g); k++) {
                        const struct pm_tile t = pm_tile_at(&g, k);

                        assert_true(t.x >= 0 && t.x + t.width <= size);
                        whole |= t.x <= from && from + most <= t.x + t.width;
                    }
                    assert_true(whole);
                }
            }
}

/* Neighbours are the tiles with a common pixel. */
static void neighbours(void **state)
{
    (void)state;
    for (int overlap = 0; overlap < 6; overlap++)
        for (int size = 5; size <= 30; size++) {
            const struct pm_tile_grid g = grid_of(6, overlap, 1, size);

            for (int k = 0; k < g.count[1]; k++) {
                int first, end;

                pm_tile_neighbours(&g, 1, k, &first, &end);
                for (int n = 0; n < g.count[1]; n++) {
                    const struct pm_tile a = pm_tile_at(&g, (size_t)k);
                    const struct pm_tile b = pm_tile_at(&g, (size_t)n);
                    const bool common = a.x < b.x + b.width && b.x < a.x + a.width;

                    assert_int_equal(common, n >= first && n < end);
                }
            }
        }
}

static void too_many(void **state)
{
    const struct pm_tiling t = { { 16, 16 }, { 15, 15 } };
    struct pm_tile_grid g;

    (void)state;
    assert_int_equal(pm_tile_grid_of(&t, 10000, 10000, "p.png", &g), PM_ECONFIG);
    assert_contains(pm_error_text(), "p.png: tiles of 16 x 16 pixels, 1 and 1 pixels apart");
    assert_contains(pm_error_text(), "predict.overlap");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places), cmocka_unit_test(small), cmocka_unit_test(rows_first),
        cmocka_unit_test(stretches), cmocka_unit_test(neighbours), cmocka_unit_test(too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
