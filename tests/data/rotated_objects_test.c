/* Records of rotated boxes: read with and without upright boxes, damaged, and filtered. The numbers
 * of the objects' own round trip are in objects_test. */
#include <math.h>

#include "convert_common.h"

#include <pumice/objects.h>

enum { HEIGHT = 100, WIDTH = 200 };

struct rotated {
    float v[5]; /* cy, cx, h, w, angle */
};

/* A record with these boxes and no upright ones. size: with image/height and image/width. */
static struct pm_example *record(const struct rotated *boxes, size_t count, bool size)
{
    static const char *const keys[5] = { "image/object/rbbox/cy", "image/object/rbbox/cx",
                                         "image/object/rbbox/h", "image/object/rbbox/w",
                                         "image/object/rbbox/ang" };
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_example *e = NULL;
    uint8_t *data = NULL;
    size_t bytes = 0;

    for (int k = 0; k < 5; k++) {
        float v[16];

        for (size_t i = 0; i < count; i++)
            v[i] = boxes[i].v[k];
        pm_example_add_floats(b, keys[k], v, count);
    }
    if (size) {
        pm_example_add_ints(b, "image/height", (const int64_t[]){ HEIGHT }, 1);
        pm_example_add_ints(b, "image/width", (const int64_t[]){ WIDTH }, 1);
    }
    pm_example_serialise(b, &data, &bytes);
    assert_int_equal(pm_example_parse(data, bytes, "r", &e), PM_OK);
    pm_free(data);
    pm_example_builder_destroy(&b);
    return e;
}

static int parse(const struct rotated *boxes, size_t count, bool size, struct pm_objects *o)
{
    struct pm_example *e = record(boxes, count, size);
    const int err = pm_objects_parse(e, false, "part record 7", o);

    pm_example_destroy(&e);
    return err;
}

static void assert_box(const float *got, double a, double b, double c, double d)
{
    const double want[4] = { a, b, c, d };

    for (int k = 0; k < 4; k++) /* a few roundings of float32 */
        if (!(fabs((double)got[k] - want[k]) <= 4 * 6e-8 * fmax(1, fabs(want[k]))))
            fail_msg("number %d is %.9g, expected %.9g", k, (double)got[k], want[k]);
}

/* Boxes of a record without upright ones: 20 x 40 pixels at 50, 100, flat, upright, and turned by
 * 90 degrees beyond a half turn. */
static void alone(void **state)
{
    static const float half = 1.57079637F;
    const struct rotated boxes[] = {
        { { 0.5F, 0.5F, 0.2F, 0.2F, 0 } },
        { { 0.5F, 0.5F, 0.2F, 0.2F, half } },
        { { 0.5F, 0.5F, 0.2F, 0.2F, 3 * half } },
        { { 0.5F, 0.5F, 0.2F, 0.2F, -2 * half } },
    };
    struct pm_objects o;

    (void)state;
    assert_int_equal(parse(boxes, 4, true, &o), PM_OK);
    assert_int_equal(o.count, 4);
    assert_int_equal(o.has, PM_HAS_ROTATED);
    assert_box(o.item[0].box, 0.4, 0.4, 0.6, 0.6);
    assert_box(o.item[1].box, 0.3, 0.45, 0.7, 0.55);
    assert_box(o.item[2].box, 0.3, 0.45, 0.7, 0.55);
    assert_box(o.item[3].box, 0.4, 0.4, 0.6, 0.6);
    assert_true(o.item[1].rotated[4] == half);
    assert_true(fabsf(o.item[2].rotated[4]) <= half && fabsf(o.item[2].rotated[4]) > 1.5F);
    assert_true(fabsf(o.item[3].rotated[4]) < 1e-6F);
    assert_true(o.gsd == 0 && !o.sensor);
    pm_objects_free(&o);
}

static void damaged(void **state)
{
    static const struct {
        struct rotated box;
        const char *first, *second;
    } cases[] = {
        { { { 50, 0.5F, 0.2F, 0.2F, 0 } }, "object 1: image/object/rbbox/cy is 50", "divide" },
        { { { 0.5F, 0.5F, 0.2F, 40, 0 } }, "object 1: image/object/rbbox/w is 40", "divide" },
        { { { 0.5F, 0.5F, -0.2F, 0.2F, 0 } }, "rbbox/h is -0.2; sides are shares", "again" },
        { { { 0.5F, 0.5F, 0.2F, 0.2F, 45 } }, "rbbox/ang is 45, beyond a full turn", "57.29578" },
        { { { 0.5F, NAN, 0.2F, 0.2F, 0 } }, "object 1: image/object/rbbox/cx is nan", "finite" },
    };
    const struct rotated good = { { 0.5F, 0.5F, 0.2F, 0.2F, 0 } };
    struct pm_objects o;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        assert_fails(parse(&cases[i].box, 1, true, &o), PM_ECORRUPT, cases[i].first,
                     cases[i].second);
        pm_objects_free(&o);
    }
    assert_fails(parse(&good, 1, false, &o), PM_ECORRUPT,
                 "part record 7: has rotated boxes, but no image/height");
    pm_objects_free(&o);
}

/* Lists of unequal lengths. */
static void unequal(void **state)
{
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_example *e = NULL;
    struct pm_objects o;
    uint8_t *data = NULL;
    size_t bytes = 0;

    (void)state;
    pm_example_add_floats(b, "image/object/rbbox/cy", (const float[]){ 0, 0 }, 2);
    pm_example_add_floats(b, "image/object/rbbox/cx", (const float[]){ 0 }, 1);
    pm_example_add_ints(b, "image/height", (const int64_t[]){ HEIGHT }, 1);
    pm_example_add_ints(b, "image/width", (const int64_t[]){ WIDTH }, 1);
    pm_example_serialise(b, &data, &bytes);
    assert_int_equal(pm_example_parse(data, bytes, "r", &e), PM_OK);
    assert_fails(pm_objects_parse(e, false, "r", &o), PM_ECORRUPT,
                 "r: image/object/rbbox/cx has 1 values for 2 boxes");
    pm_objects_free(&o);
    pm_example_destroy(&e);
    pm_free(data);
    pm_example_builder_destroy(&b);
}

static void filtered(void **state)
{
    const struct rotated boxes[] = {
        { { 0.5F, 0.5F, 0.2F, 0.2F, 0.3F } },
        { { 0.5F, 0.5F, 0, 0.2F, 0.3F } },     /* a side of zero */
        { { 0, 0.5F, 0.2F, 0.2F, 0 } },        /* the upper half is outside */
        { { -0.2F, 0.5F, 0.2F, 0.2F, 0 } },    /* above the picture */
        { { -0.1F, 0.5F, 0.2F, 0.3F, 1 } },    /* its centre is outside, a part is inside */
        { { 0.5F, 0.5F, 0.01F, 0.2F, 1 } },    /* one pixel high */
        { { -0.12F, -0.06F, 0.02F, 0.2F, -0.785F } }, /* only the box around it is inside */
    };
    struct pm_object_counts c = { 0 };
    const struct pm_object_filter f = { .min_side = 2 }, strict = { .error = true };
    struct pm_objects o;

    (void)state;
    assert_int_equal(parse(boxes, 7, true, &o), PM_OK);
    assert_true(o.item[6].box[2] > 0 && o.item[6].box[3] > 0);
    assert_int_equal(pm_objects_filter(&o, &f, "p", &c), PM_OK);
    assert_int_equal(o.count, 3);
    assert_true(c.boxes == 3 && c.degenerate == 1 && c.outside == 2 && c.small == 1 &&
                c.clipped == 2);
    assert_box(o.item[1].box, 0, 0.4, 0.1, 0.6);
    assert_true(o.item[1].rotated[0] == 0 && o.item[1].rotated[2] == 0.2F); /* not clipped */
    assert_true(o.item[2].rotated[4] == 1);
    pm_objects_free(&o);
    assert_int_equal(parse(boxes, 7, true, &o), PM_OK);
    assert_fails(pm_objects_filter(&o, &strict, "a.jpg", &c), PM_EDATA,
                 "a.jpg: object 2: the box cy 50, cx 100, h 0, w 40 (pixels) has no area");
    pm_objects_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(alone), cmocka_unit_test(damaged),
                                        cmocka_unit_test(unequal), cmocka_unit_test(filtered) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
