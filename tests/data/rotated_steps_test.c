/* The input steps of rotated boxes. */
#include "base/unit.h"

#include <math.h>

#include "data/rotated_box.h"
#include "data/rotated_steps.h"

enum { HEIGHT = 60, WIDTH = 80 };

static void add(struct pm_objects *o, double cy, double cx, double h, double w, double angle)
{
    const struct pm_rectangle r = { cy, cx, h, w, angle };

    pm_rectangle_to_box(&r, HEIGHT, WIDTH, pm_objects_add(o)->rotated);
    o->item[o->count - 1].label = (int64_t)o->count;
}

static void assert_rectangle(const struct pm_objects *o, size_t i, double h, double w, double angle)
{
    struct pm_rectangle r;
    double around[4];

    pm_rectangle_of_box(o->item[i].rotated, HEIGHT, WIDTH, &r);
    assert_true(fabs(r.h - h) < 1e-5 && fabs(r.w - w) < 1e-5 && fabs(r.angle - angle) < 1e-6);
    pm_rectangle_around(&r, around);
    for (int k = 0; k < 4; k++) {
        const int side = k % 2 ? WIDTH : HEIGHT;

        assert_true(fabs((double)o->item[i].box[k] - fmin(fmax(around[k] / side, 0), 1)) < 1e-6);
    }
}

static void sides_and_angles(void **state)
{
    struct pm_objects o;

    (void)state;
    pm_objects_start(&o, HEIGHT, WIDTH);
    o.has = PM_HAS_ROTATED;
    add(&o, 30, 40, 10, 24, 0.5);
    add(&o, 2, 40, 10, 24, -1.25);
    pm_rotated_swap_sides(&o);
    assert_rectangle(&o, 0, 24, 10, 0.5);
    assert_rectangle(&o, 1, 24, 10, -1.25);
    pm_rotated_swap_sides(&o);
    pm_rotated_subtract_angle(&o, 0.75);
    assert_rectangle(&o, 0, 10, 24, -0.25);
    assert_rectangle(&o, 1, 10, 24, 3.14159265358979323846 - 2);
    pm_rotated_subtract_angle(&o, -20);
    assert_rectangle(&o, 0, 10, 24, remainder(19.75, 3.14159265358979323846));
    pm_objects_free(&o);
}

/* Ten objects. The third and the eighth are the longest. */
static void cutoff(void **state)
{
    uint8_t pixels[HEIGHT * WIDTH * 3];
    struct pm_image8 im = { HEIGHT, WIDTH, 3, pixels };
    size_t random[10] = { 0 };

    (void)state;
    for (uint32_t n = 0; n < 400; n++) {
        struct pm_rng r = pm_rng_make(1, 2, n, 0);
        struct pm_objects o;

        memset(pixels, 100, sizeof pixels);
        pm_objects_start(&o, HEIGHT, WIDTH);
        o.has = PM_HAS_ROTATED;
        for (int i = 0; i < 10; i++)
            add(&o, i < 5 ? 15 : 45, 8 + 16 * (i % 5), 4, i == 2 || i == 7 ? 12 : 10, 0.6);
        assert_int_equal(pm_rotated_cutoff(&o, 10, &r, &im), 0);
        assert_int_equal(pm_rotated_cutoff(&o, 5, &r, &im), 5);
        assert_int_equal(o.count, 5);
        bool third = false, eighth = false;
        uint8_t here[10] = { 0 };
        for (size_t i = 0; i < 5; i++) {
            const size_t k = (size_t)o.item[i].label - 1;

            assert_true(i == 0 || o.item[i].label > o.item[i - 1].label);
            third |= k == 2, eighth |= k == 7;
            here[k] = 1;
            random[k]++;
        }
        assert_true(third && eighth);
        size_t black = 0;
        for (int i = 0; i < 10; i++) { /* the centres of dropped objects are black */
            const size_t at = 3 * ((size_t)(i < 5 ? 15 : 45) * WIDTH + (size_t)(8 + 16 * (i % 5)));

            assert_int_equal(pixels[at], here[i] ? 100 : 0);
        }
        for (size_t i = 0; i < sizeof pixels; i++)
            black += pixels[i] == 0;
        /* 40 pixels each; a border of 28 pixels crosses at most 2 * 28 cells, half of it counts. */
        assert_true(fabs((double)black / 3 - 5 * 40) < 5 * 28);
        pm_objects_free(&o);
    }
    /* Three of the other eight each time: 150 of 400, with a deviation of 9.7. */
    for (int i = 0; i < 10; i++)
        if (i != 2 && i != 7)
            assert_true(fabs((double)random[i] - 150) < 5 * 9.7);
}

/* A kept object under a dropped one stays visible; boxes beyond the picture are allowed. */
static void cutoff_overlap(void **state)
{
    uint8_t pixels[HEIGHT * WIDTH];
    struct pm_image8 im = { HEIGHT, WIDTH, 1, pixels };
    struct pm_rng r = pm_rng_make(1, 2, 3, 0);
    struct pm_objects o;

    (void)state;
    memset(pixels, 9, sizeof pixels);
    pm_objects_start(&o, HEIGHT, WIDTH);
    o.has = PM_HAS_ROTATED;
    add(&o, 30, 40, 10, 10, 0);
    add(&o, 30, 40, 6, 40, 0); /* the longest */
    add(&o, 500, -40, 6, 7, 1);
    assert_int_equal(pm_rotated_cutoff(&o, 2, &r, &im), 1);
    assert_true(o.item[0].label == 2 || o.item[1].label == 2);
    assert_int_equal(pixels[30 * WIDTH + 40], 9);
    if (o.item[0].label != 1)
        assert_int_equal(pixels[26 * WIDTH + 40], 0);
    assert_int_equal(pm_rotated_cutoff(&o, 0, &r, &im), 2);
    assert_int_equal(o.count, 0);
    assert_int_equal(pixels[30 * WIDTH + 40], 0);
    pm_objects_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sides_and_angles),
                                        cmocka_unit_test(cutoff),
                                        cmocka_unit_test(cutoff_overlap) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
