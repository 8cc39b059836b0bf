/* The input steps of rotated boxes as config keys: data.swap_sides, data.subtract_angle and
 * data.cutoff_boxes. The net finds upright boxes, which are made anew from the rotated ones. */
#include "samples_common.h"

#define TEXT CONFIG(", \"augment\": []}}")

/* A box of height and width in 0..1 at the centre, at this angle, of object `label` in a list. */
static void add_rotated(struct pm_objects *o, const char *text, float h, float w, float angle)
{
    struct pm_object *one = add(o, text, 0.5f - h / 2, 0.5f - w / 2, 0.5f + h / 2, 0.5f + w / 2);

    memcpy(one->rotated, (float[]){ 0.5f, 0.5f, h, w, angle }, sizeof one->rotated);
}

static void start(struct pm_objects *o)
{
    pm_objects_start(o, SIDE, SIDE);
    o->has = PM_HAS_TEXT | PM_HAS_ROTATED;
}

/* The upright box of the only object in training, and of the truth in evaluation. */
static void check_box(const char *data, double y0, double x0, double y1, double x1)
{
    struct setup s = set_up_data(TEXT, data);
    struct pm_objects o;
    struct made m;

    start(&o);
    add_rotated(&o, "cat", 0.25f, 0.5f, 0);
    made(&s, true, &o, &m);
    assert_box(m.boxes[0], y0, x0, y1, x1);
    made(&s, false, &o, &m);
    assert_int_equal(m.truths->count, 1);
    const double *box = m.truths->truth[0].box.v, want[] = { y0, x0, y1, x1 };
    for (int k = 0; k < 4; k++)
        assert_true(fabs(box[k] - want[k] * SIDE) < 1e-4);
    pm_detection_free_truths(m.truths);
    pm_objects_free(&o);
    tear_down(&s);
}

static void sides_and_angles(void **state)
{
    (void)state;
    check_box("", 0.375, 0.25, 0.625, 0.75);
    check_box(", \"swap_sides\": true", 0.25, 0.375, 0.75, 0.625);
    check_box(", \"subtract_angle\": 1.5707963267948966", 0.25, 0.375, 0.75, 0.625);
    check_box(", \"subtract_angle\": 1.5707963267948966, \"swap_sides\": true", 0.375, 0.25, 0.625,
              0.75);
}

/* How many of the first four objects training keeps. kept: which, by their widths 0.1 to 0.4. */
static int kept_in(const struct setup *s, const struct pm_objects *o, uint64_t step, bool kept[4])
{
    struct made m;
    int count = 0;

    memset(kept, 0, 4 * sizeof *kept);
    if (make_step(s, true, o, step, &m) < 0)
        fail_msg("%s", pm_error_text());
    for (int i = 0; i < MOST; i++)
        if (m.weights[i] > 0) {
            kept[(int)lround(10 * (double)(m.boxes[i][3] - m.boxes[i][1])) - 1] = true;
            count++;
        }
    return count;
}

static void limit(void **state)
{
    struct setup s = set_up_data(TEXT, ", \"cutoff_boxes\": 2");
    struct pm_objects o;
    struct made m;
    bool kept[4], again[4];
    int drawn[4] = { 0 };

    (void)state;
    start(&o);
    for (int i = 0; i < 4; i++)
        add_rotated(&o, "cat", 0.08f, 0.1f * (float)(i + 1), 0);
    for (uint64_t step = 0; step < 60; step++) {
        assert_int_equal(kept_in(&s, &o, step, kept), 2);
        assert_true(kept[3]); /* the widest */
        kept_in(&s, &o, step, again);
        assert_memory_equal(kept, again, sizeof kept);
        for (int i = 0; i < 4; i++)
            drawn[i] += kept[i];
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(drawn[i], 5, 40); /* 20 are expected */
    made(&s, false, &o, &m);
    assert_int_equal(m.truths->count, 4);
    pm_detection_free_truths(m.truths);
    pm_objects_free(&o);
    tear_down(&s);
}

/* Whether pixel y, x of the input is black. It must be black or white. */
static bool is_black(const struct made *m, int y, int x)
{
    const float v = m->images[3 * (SIDE * y + x)];

    assert_true(fabsf(v) > 0.9f);
    return v < 0;
}

/* The dropped objects are black in the input. JPEG files with input.scaled_jpeg give the same input
 * as PNG files, although they are otherwise decoded after the objects. */
static void black_in_every_format(void **state)
{
    static const char *const texts[] = {
        TEXT, CONFIG(", \"augment\": [], \"scaled_jpeg\": true}}"),
    };

    (void)state;
    for (int k = 0; k < 4; k++) {
        struct setup s = set_up_data(texts[k / 2], ", \"cutoff_boxes\": 2");
        struct pm_objects o;

        setup_jpeg = k % 2;
        start(&o);
        for (int i = 0; i < 4; i++) { /* bars 4 pixels high, in the white half, 8 pixels apart */
            add_rotated(&o, "cat", 0.125f, 0.25f, 0);
            o.item[i].rotated[0] = 0.125f + 0.25f * (float)i;
            o.item[i].rotated[1] = 0.75f;
        }
        for (uint64_t step = 0; step < 8; step++) {
            bool kept[4] = { false };
            struct made m;
            int black = 0;

            if (make_step(&s, true, &o, step, &m) < 0)
                fail_msg("%s", pm_error_text());
            for (int i = 0; i < MOST; i++)
                if (m.weights[i] > 0)
                    kept[(int)(4 * m.boxes[i][0])] = true;
            for (int i = 0; i < 4; i++) {
                assert_int_equal(is_black(&m, 4 + 8 * i, 24), !kept[i]);
                black += !kept[i];
            }
            assert_int_equal(black, 2);
        }
        pm_objects_free(&o);
        tear_down(&s);
    }
    setup_jpeg = false;
}

static void upright_records(void **state)
{
    static const struct { const char *data, *key; } cases[] = {
        { ", \"swap_sides\": true", "data.swap_sides" },
        { ", \"subtract_angle\": -0.5", "data.subtract_angle" },
        { ", \"cutoff_boxes\": 3", "data.cutoff_boxes" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct setup s = set_up_data(TEXT, cases[i].data);
        struct pm_objects o;
        struct made m;

        pm_objects_start(&o, SIDE, SIDE);
        o.has = PM_HAS_TEXT;
        made(&s, true, &o, &m); /* no object, nothing to change */
        add(&o, "cat", 0.2f, 0.2f, 0.6f, 0.7f);
        assert_int_equal(make_step(&s, true, &o, 0, &m), PM_ECONFIG);
        assert_contains(pm_error_text(), cases[i].key);
        assert_contains(pm_error_text(), "r: ");
        assert_contains(pm_error_text(), "image/object/rbbox");
        pm_objects_free(&o);
        tear_down(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_and_angles),
        cmocka_unit_test(limit),
        cmocka_unit_test(black_in_every_format),
        cmocka_unit_test(upright_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
