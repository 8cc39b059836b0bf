/* Detections of tiles become those of the photo. Tiles have 100 pixels a side and overlap by 40 in
 * a photo of 280 x 280: they begin at 0, 60, 120, 180 on each axis. Boxes are ymin, xmin, ymax,
 * xmax in pixels of the photo. */
#include "base/unit.h"

#include "tasks/detection/tile_merge.h"

enum { MOST = 32 };

static struct pm_tile_grid grid;
static struct pm_box_detection list[MOST];
static size_t tile[MOST], count, kept[MOST], over;

static void photo(int side, int overlap, int size)
{
    const struct pm_tiling t = { { side, side }, { overlap, overlap } };

    assert_int_equal(pm_tile_grid_of(&t, size, size, "p", &grid), PM_OK);
    count = 0;
}

/* Adds a detection of the tile in row y, column x. */
static void add(int y, int x, int label, double score, const double box[4])
{
    list[count] = (struct pm_box_detection){ .score = score, .label = label };
    memcpy(list[count].box.v, box, sizeof list[count].box.v);
    tile[count++] = (size_t)(y * grid.count[1] + x);
}

#define BOX(...) ((const double[4]){ __VA_ARGS__ })

/* Adds what a tile shows of an object, if it shows some of it. */
static void add_view(int y, int x, int label, double score, const double object[4])
{
    const struct pm_tile t = pm_tile_at(&grid, (size_t)(y * grid.count[1] + x));
    const double box[4] = {
        object[0] > t.y ? object[0] : t.y, object[1] > t.x ? object[1] : t.x,
        object[2] < t.y + t.height ? object[2] : t.y + t.height,
        object[3] < t.x + t.width ? object[3] : t.x + t.width,
    };

    if (box[2] > box[0] && box[3] > box[1])
        add(y, x, label, score, box);
}

/* Adds the views of all tiles. Tiles that show less of the object are surer: a larger view loses
 * `step` of the score. */
static void add_views(int label, const double object[4], double step)
{
    double score = 0.9;

    for (int y = 0; y < grid.count[0]; y++)
        for (int x = 0; x < grid.count[1]; x++) {
            const size_t before = count;

            add_view(y, x, label, score, object);
            if (count > before)
                score -= step;
        }
}

static size_t merge_with(struct pm_tile_merging m)
{
    static const double least[3] = { 0.5, 0.5, 0.5 };

    m.grid = &grid;
    m.geometry = &pm_box_upright;
    m.classes = 3;
    m.least = least;
    if (m.iou_threshold == 0)
        m.iou_threshold = 0.5;
    if (m.max_total == 0)
        m.max_total = m.max_per_class = 100;
    return pm_tile_merge(&m, list, tile, count, kept, &over);
}

static size_t merge(void)
{
    return merge_with((struct pm_tile_merging){ 0 });
}

static void assert_box(size_t i, const double box[4])
{
    for (int k = 0; k < 4; k++)
        assert_float_equal(list[kept[i]].box.v[k], box[k], 1e-12);
}

/* ---- objects that a tile shows whole -------------------------------------------------------- */

/* Every object of the overlap's side counts once and whole, wherever it is: in one tile, in two, or
 * in four; also where the parts have better scores than the whole. */
static void once_everywhere(void **state)
{
    (void)state;
    for (int y = 0; y <= 240; y += 3)
        for (int x = 0; x <= 240; x += 3)
            for (int falling = -1; falling <= 1; falling++) {
                const double *object = BOX(y, x, y + 40, x + 40);

                photo(100, 40, 280);
                add_views(1, object, 0.04 * falling);
                assert_int_equal(merge(), 1);
                assert_box(0, object);
            }
}

/* An object around the corner of four tiles, which only the last shows whole. */
static void four_tiles(void **state)
{
    const double *object = BOX(65, 65, 105, 105);

    (void)state;
    photo(100, 40, 280);
    add_views(0, object, 0.05);
    assert_int_equal(count, 4);
    assert_int_equal(merge(), 1);
    assert_box(0, object);
    assert_float_equal(list[kept[0]].score, 0.75, 1e-12);
    assert_int_equal(over, 0);
}

/* A strip's box is rough: agreement fails, but it touches the border and most of it is in the
 * whole. */
static void rough_strip(void **state)
{
    (void)state;
    photo(100, 40, 280);
    add(0, 0, 0, 0.8, BOX(10, 96, 30, 99.9)); /* the object's rows are 10 to 50 */
    add(0, 1, 0, 0.7, BOX(10, 94, 50, 134));
    assert_int_equal(merge(), 1);
    assert_box(0, BOX(10, 94, 50, 134));
    /* The same strip away from the border is an object. */
    photo(100, 40, 280);
    add(0, 0, 0, 0.8, BOX(10, 90, 30, 94));
    add(0, 1, 0, 0.7, BOX(10, 88, 50, 134));
    assert_int_equal(merge(), 2);
}

/* A larger box that does not count as an object drops nothing. */
static void unsure_whole(void **state)
{
    (void)state;
    photo(100, 40, 280);
    add(0, 0, 0, 0.9, BOX(10, 75, 40, 100));
    add(0, 1, 0, 0.4, BOX(10, 75, 40, 115));
    assert_int_equal(merge_with((struct pm_tile_merging){ .iou_threshold = 0.7 }), 2);
    list[1].score = 0.51; /* above the threshold for drawing */
    assert_int_equal(merge_with((struct pm_tile_merging){ .iou_threshold = 0.7 }), 1);
    assert_box(0, BOX(10, 75, 40, 115));
    list[0].score = list[1].score = 0.3; /* not below the part */
    assert_int_equal(merge_with((struct pm_tile_merging){ .iou_threshold = 0.7 }), 1);
    assert_box(0, BOX(10, 75, 40, 115));
}

/* ---- several objects ------------------------------------------------------------------------ */

/* Two objects of one class side by side, whose common side is in the overlap, at a border, or
 * beyond. */
static void touching_objects(void **state)
{
    (void)state;
    for (int at = 40; at <= 200; at++) {
        photo(100, 40, 280);
        for (int y = 0; y < grid.count[0]; y++)
            for (int x = 0; x < grid.count[1]; x++) {
                add_view(y, x, 0, 0.9, BOX(20, at - 30, 50, at));
                add_view(y, x, 0, 0.8, BOX(20, at, 50, at + 30));
            }
        assert_int_equal(merge(), 2);
        assert_box(0, BOX(20, at - 30, 50, at));
        assert_box(1, BOX(20, at, 50, at + 30));
    }
}

/* A small object on a large one of its class, and one of another class at the same place. */
static void nested_objects(void **state)
{
    (void)state;
    photo(100, 40, 280);
    for (int x = 0; x < 2; x++) {
        add_view(0, x, 0, 0.9, BOX(10, 70, 50, 110));
        add_view(0, x, 0, 0.8, BOX(20, 75, 30, 85));
        add_view(0, x, 1, 0.7, BOX(10, 70, 50, 110));
    }
    assert_int_equal(count, 6);
    assert_int_equal(merge(), 3);
    assert_box(0, BOX(10, 70, 50, 110));
    assert_box(1, BOX(20, 75, 30, 85));
    assert_int_equal(list[kept[2]].label, 1);
    assert_box(2, BOX(10, 70, 50, 110));
}

/* Classes that suppress each other in the net do so here, and parts may have another class. */
static void class_agnostic(void **state)
{
    (void)state;
    photo(100, 40, 280);
    add_view(0, 0, 1, 0.95, BOX(10, 70, 50, 110));
    add_view(0, 0, 2, 0.7, BOX(10, 61, 50, 81));
    add_view(0, 1, 0, 0.9, BOX(10, 70, 50, 110));
    add_view(0, 1, 0, 0.6, BOX(10, 61, 50, 81));
    assert_int_equal(merge(), 4);
    assert_int_equal(merge_with((struct pm_tile_merging){ .class_agnostic = true }), 2);
    assert_box(0, BOX(10, 70, 50, 110));
    assert_int_equal(list[kept[1]].label, 2);
}

/* Boxes of one tile are not compared, even equal ones. */
static void one_tile(void **state)
{
    (void)state;
    photo(100, 40, 100);
    add(0, 0, 0, 0.6, BOX(0, 0, 50, 50));
    add(0, 0, 0, 0.7, BOX(0, 0, 50, 50));
    add(0, 0, 0, (double)NAN, BOX(0, 0, 50, 50));
    assert_int_equal(merge(), 3);
    assert_true(kept[0] == 1 && kept[1] == 0 && kept[2] == 2);
}

/* ---- objects that no tile shows whole ------------------------------------------------------- */

/* Larger than the overlap but whole in a tile: once. Larger than a tile: the view that holds most
 * of the others, or several boxes, each of a tile's side at most. */
static void large_objects(void **state)
{
    (void)state;
    photo(100, 40, 280);
    add_views(0, BOX(5, 62, 95, 158), 0); /* columns 60 to 160 are a tile */
    assert_int_equal(merge(), 1);
    assert_box(0, BOX(5, 62, 95, 158));
    photo(100, 40, 280);
    add_views(0, BOX(5, 30, 35, 190), 0); /* 30 to 100, 60 to 160, 120 to 190, and 180 to 190 */
    assert_int_equal(count, 4);
    assert_int_equal(merge(), 1);
    assert_box(0, BOX(5, 60, 35, 160));
    photo(100, 40, 280);
    add_views(0, BOX(5, 5, 35, 275), 0);
    assert_int_equal(merge(), 4);
    for (int x = 0; x < 4; x++)
        assert_box((size_t)x, BOX(5, x > 0 ? 60 * x : 5, 35, x < 3 ? 60 * x + 100 : 275));
}

/* Without overlap nothing is compared: an object at a border stays in two halves. */
static void no_overlap(void **state)
{
    (void)state;
    photo(100, 0, 300);
    add_views(0, BOX(10, 80, 50, 120), 0);
    add_views(0, BOX(10, 150, 50, 190), 0);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++)
        tile[i] = i == 0 ? 0 : 1;
    assert_int_equal(merge(), 3);
}

/* A moved last tile overlaps its neighbour by more than asked. */
static void moved_tile(void **state)
{
    (void)state;
    photo(100, 0, 220); /* columns 0, 100, 120 */
    add(0, 1, 0, 0.9, BOX(10, 150, 50, 190));
    add(0, 2, 0, 0.8, BOX(10, 151, 50, 190));
    add(0, 2, 0, 0.7, BOX(10, 192, 50, 219));
    assert_int_equal(merge(), 2);
    assert_box(0, BOX(10, 150, 50, 190));
    assert_box(1, BOX(10, 192, 50, 219));
}

/* ---- limits --------------------------------------------------------------------------------- */

/* The limits are those of the photo. Boxes above `least` that they leave out are counted. */
static void limits(void **state)
{
    (void)state;
    photo(100, 40, 280);
    for (int x = 0; x < 4; x++)
        for (int k = 0; k < 2; k++) /* at 42 + 60 x the tile shows what no other does */
            add(0, x, k, k ? 0.45 : 0.9 - 0.01 * x, BOX(5, 42 + 60 * x, 25, 58 + 60 * x));
    assert_int_equal(merge(), 8);
    assert_int_equal(over, 0);
    assert_int_equal(merge_with((struct pm_tile_merging){ .max_total = 6, .max_per_class = 3 }), 6);
    assert_int_equal(over, 1);
    assert_int_equal(merge_with((struct pm_tile_merging){ .max_total = 2, .max_per_class = 2 }), 2);
    assert_int_equal(over, 2);
    assert_true(kept[0] == 0 && kept[1] == 2);
}

static void nothing(void **state)
{
    (void)state;
    photo(100, 40, 280);
    assert_int_equal(merge(), 0);
    assert_int_equal(over, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_everywhere), cmocka_unit_test(four_tiles),
        cmocka_unit_test(rough_strip),     cmocka_unit_test(unsure_whole),
        cmocka_unit_test(touching_objects), cmocka_unit_test(nested_objects),
        cmocka_unit_test(class_agnostic),
        cmocka_unit_test(one_tile),        cmocka_unit_test(large_objects),
        cmocka_unit_test(no_overlap),      cmocka_unit_test(moved_tile),
        cmocka_unit_test(limits),          cmocka_unit_test(nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
