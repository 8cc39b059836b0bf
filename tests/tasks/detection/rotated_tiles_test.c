/* Rotated detections of tiles become those of the photo. Tiles have 100 pixels a side and overlap
 * by 60 in a photo of 260 x 260: they begin at 0, 40, 80, 120, 160 on each axis. */
#include "base/unit.h"

#include "tasks/detection/rotated_reference.h"
#include "tasks/detection/tile_merge.h"

enum { MOST = 64, OVERLAP = 60, SIZE = 260 };

static struct pm_tile_grid grid;
static struct pm_box_detection list[MOST];
static size_t tile[MOST], count, kept[MOST], over;

static void photo(void)
{
    const struct pm_tiling t = { { 100, 100 }, { OVERLAP, OVERLAP } };

    assert_int_equal(pm_tile_grid_of(&t, SIZE, SIZE, "p", &grid), PM_OK);
    count = 0;
}

static void add(size_t index, int label, double score, const double box[5])
{
    assert_true(count < MOST);
    list[count] = (struct pm_box_detection){ .score = score, .label = label };
    memcpy(list[count].rotated, box, sizeof list[count].rotated);
    pm_box_rotated.bounds(box, &list[count].box);
    tile[count++] = index;
}

/* The part of the centre line, -w/2..w/2, along which at + t * step is in 0..side. */
static void cut_line(double at, double step, double side, double *from, double *to)
{
    if (step == 0) {
        if (at < 0 || at > side)
            *to = *from;
        return;
    }
    *from = fmax(*from, fmin(-at / step, (side - at) / step));
    *to = fmin(*to, fmax(-at / step, (side - at) / step));
}

static bool is_whole(const struct pm_tile *t, const double box[5])
{
    struct pm_box around;

    pm_box_rotated.bounds(box, &around);
    return around.v[0] >= t->y && around.v[1] >= t->x && around.v[2] <= t->y + t->height &&
           around.v[3] <= t->x + t->width;
}

/* Adds what a tile shows of a bar: all of it, or the part whose centre line the tile has. */
static void add_view(size_t index, int label, double score, const double box[5])
{
    const struct pm_tile t = pm_tile_at(&grid, index);
    double from = -box[3] / 2, to = box[3] / 2, seen[5];

    memcpy(seen, box, sizeof seen);
    if (!is_whole(&t, box)) {
        cut_line(box[0] - t.y, sin(box[4]), t.height, &from, &to);
        cut_line(box[1] - t.x, cos(box[4]), t.width, &from, &to);
        if (!(to > from + 1))
            return;
        seen[0] += (from + to) / 2 * sin(box[4]);
        seen[1] += (from + to) / 2 * cos(box[4]);
        seen[3] = to - from;
    }
    add(index, label, score, seen);
}

/* Adds the views of all tiles; later ones lose `step` of the score. */
static void add_views(int label, const double box[5], double step)
{
    double score = 0.9;

    for (size_t k = 0; k < pm_tile_count(&grid); k++) {
        const size_t before = count;

        add_view(k, label, score, box);
        if (count > before)
            score -= step;
    }
}

static size_t merge_at(double iou)
{
    static const double least[2] = { 0.3, 0.3 };

    return pm_tile_merge(&(struct pm_tile_merging){
        .grid = &grid, .geometry = &pm_box_rotated, .iou_threshold = iou, .classes = 2,
        .max_total = 100, .max_per_class = 100, .least = least }, list, tile, count, kept, &over);
}

static void assert_box(size_t i, const double box[5])
{
    for (int k = 0; k < 5; k++)
        assert_float_equal(list[kept[i]].rotated[k], box[k], 1e-12);
}

/* ---- agreement ------------------------------------------------------------------------------ */

static double unit(uint32_t *n)
{
    *n = (*n * 1103515245u + 12345u) & 0x7fffffffu;
    return (double)*n / 0x80000000u;
}

static void agreement(void **state)
{
    const struct pm_box window = { { 10, 20, 60, 90 } };
    const double middle[5] = { 35, 55, 50, 70, 0 };
    const struct reference_polygon tile_of = reference_corners(middle);
    uint32_t n = 1;
    int partly = 0;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        double box[2][5];

        for (int k = 0; k < 2; k++) {
            box[k][0] = 80 * unit(&n), box[k][1] = 110 * unit(&n);
            box[k][2] = exp(1 + 3 * unit(&n)), box[k][3] = exp(1 + 4 * unit(&n));
            box[k][4] = 8 * unit(&n) - 4;
        }
        const struct reference_polygon a = reference_corners(box[0]), b = reference_corners(box[1]);
        const struct reference_polygon seen = reference_clip(b, &tile_of);
        const struct reference_polygon shared = reference_clip(seen, &a);
        const double inner = fmax(0, reference_area(&shared));
        const double want = inner / (reference_area(&a) + reference_area(&seen) - inner);

        assert_float_equal(pm_box_rotated.agreement(box[0], box[1], &window), want, 1e-9);
        partly += want > 0.01 && reference_area(&seen) < 0.9 * reference_area(&b);
    }
    assert_true(partly > 5000);
}

/* A window that holds the whole box: the same as the overlap; equal boxes agree. A window beside
 * it: 0. */
static void whole_windows(void **state)
{
    static const double a[5] = { 50, 50, 10, 40, 0.7 }, b[5] = { 52, 49, 12, 30, 0.9 };
    const struct pm_box window = { { 0, 0, 100, 100 } }, beside = { { 0, 100, 100, 200 } };

    (void)state;
    assert_float_equal(pm_box_rotated.agreement(a, b, &window),
                       pm_box_rotated.overlap(a, b, false), 1e-12);
    assert_float_equal(pm_box_rotated.agreement(a, a, &window), 1, 1e-12);
    assert_true(pm_box_rotated.agreement(a, b, &beside) == 0);
}

/* ---- merging -------------------------------------------------------------------------------- */

/* A bar that some tile shows whole counts once and whole, wherever it is and however it is turned:
 * in one tile, in two, or in four; also where the parts have better scores than the whole. */
static void once_everywhere(void **state)
{
    int most = 0;

    (void)state;
    for (int y = 30; y <= SIZE - 30; y += 5)
        for (int x = 30; x <= SIZE - 30; x += 5)
            for (int turn = 0; turn < 12; turn++) {
                const double box[5] = { y, x, 12, 50, -1.5 + 0.27 * turn };

                photo();
                add_views(1, box, 0.01 * (turn % 3 - 1));
                most = (int)count > most ? (int)count : most;
                assert_int_equal(merge_at(0.5), 1);
                assert_box(0, box);
            }
    assert_true(most >= 9);
}

/* A bar around the corner of tiles, as four of them show it. */
static void four_tiles(void **state)
{
    static const double box[5] = { 70, 70, 10, 50, 0.6 };
    static const size_t corners[] = { 0, 2, 10, 12 }; /* begin at 0 or 80 on each axis */

    (void)state;
    photo();
    for (size_t k = 0; k < PM_COUNT(corners); k++)
        add_view(corners[k], 0, 0.9 - 0.1 * (double)k, box);
    assert_int_equal(count, 4);
    assert_int_equal(merge_at(0.5), 1);
    assert_box(0, box);
    assert_float_equal(list[kept[0]].score, 0.9, 1e-12);
}

/* A part that ends too early: it touches no border, and has less than half of the whole. It agrees
 * with what its tile shows of the whole, 26 of 36 pixels. At another angle it is an object. */
static void short_part(void **state)
{
    static const double whole[5] = { 50, 95, 12, 60, 0.6 };
    double part[5] = { 50 - 17 * sin(0.6), 95 - 17 * cos(0.6), 12, 26, 0.6 };

    (void)state;
    assert_true(pm_box_rotated.overlap(part, whole, false) < 0.45);
    photo();
    add(0, 0, 0.9, part);
    add(1, 0, 0.8, whole);
    assert_int_equal(merge_at(0.5), 1);
    assert_box(0, whole);
    list[0].rotated[4] = -0.6;
    assert_int_equal(merge_at(0.5), 2);
}

/* Two parallel bars side by side, whose upright boxes overlap by far more than the bars, stay two;
 * and crossed bars. Upright suppression would lose one of them. */
static void dense_bars(void **state)
{
    (void)state;
    for (int turn = 0; turn < 12; turn++) {
        const double angle = -1.5 + 0.27 * turn;
        const double one[5] = { 100, 100, 8, 50, angle };
        const double two[5] = { 100 + 8 * cos(angle), 100 - 8 * sin(angle), 8, 50, angle };
        const double across[5] = { 100, 100, 8, 50, angle + 1.2 };

        photo();
        for (size_t k = 0; k < pm_tile_count(&grid); k++) {
            add_view(k, 0, 0.9, one);
            add_view(k, 0, 0.8, two);
            add_view(k, 1, 0.7, across);
        }
        assert_int_equal(merge_at(0.3), 3);
        assert_box(0, one);
        assert_box(1, two);
        assert_box(2, across);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agreement),  cmocka_unit_test(whole_windows),
        cmocka_unit_test(once_everywhere), cmocka_unit_test(four_tiles),
        cmocka_unit_test(short_part), cmocka_unit_test(dense_bars),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
