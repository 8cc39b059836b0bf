/* YOLO's oriented boxes: corners become rotated boxes in the picture's pixels. */
#include "base/shared_data.h"
#include "rotated_common.h"

/* A picture of 20 x 30 with a box of 6 x 12 pixels, turned by 30 degrees around 10, 15. */
static void corners(void **state)
{
    const struct pm_rectangle r = { 10, 15, 6, 12, 0.52359877559829887308 };
    double at[PM_CORNERS][2];
    char text[400];
    int n = 0;

    (void)state;
    scratch_make();
    pm_rectangle_corners(&r, at);
    n = snprintf(text, sizeof text, "0 0.5 0.5 0.2 0.4\n0");
    for (int k = 0; k < 4; k++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %.12f %.12f", at[k][1] / 30,
                      at[k][0] / 20);
    put_blank("u/images/a.png", 20, 30);
    put_file("u/data.yaml", "train: images\nnames: [x]\n");
    put_file("u/labels/a.txt", text);
    convert_ok("yolo", "u", "d", "boxes=rotated");
    struct record rec = record_open("d", "train", 1, 0);
    assert_int_equal(rec.o.count, 2);
    assert_rotated(&rec.o, 0, 10, 15, 6, 8, 90); /* an upright box; its long side is its height */
    assert_rotated(&rec.o, 1, 10, 15, 6, 12, 30);
    record_close(&rec);
    put_blank("u/images/a.png", 20, 30);
    convert_ok("yolo", "u", "e", NULL); /* the same labels as upright boxes */
    rec = record_open("e", "train", 1, 0);
    assert_int_equal(rec.o.has & PM_HAS_ROTATED, 0);
    record_close(&rec);
    scratch_remove();
}

/* Corners follow the pixels of a picture that EXIF turns. */
static void turned(void **state)
{
    char text[200];
    const double x0 = (double)BRIGHT_X / STORED_W, x1 = (BRIGHT_X + (double)BRIGHT_W) / STORED_W;
    const double y0 = (double)BRIGHT_Y / STORED_H, y1 = (BRIGHT_Y + (double)BRIGHT_H) / STORED_H;

    (void)state;
    scratch_make();
    put_file("u/data.yaml", "train: images\nnames: [x]\n");
    snprintf(text, sizeof text, "0 %.12f %.12f %.12f %.12f %.12f %.12f %.12f %.12f\n", x0, y0, x1,
             y0, x1, y1, x0, y1);
    put_file("u/labels/a.txt", text);
    for (int orientation = 1; orientation <= 8; orientation++) {
        put_bright("u/images/a.png", orientation);
        convert_ok("yolo", "u", "d", "boxes=rotated");
        struct record r = record_open("d", "train", 1, 0);
        struct pm_objects snapped = r.o;
        struct pm_object object = r.o.item[0];

        for (int k = 0; k < 4; k++) { /* sines of quarter turns are not exact */
            const int side = k % 2 ? r.o.width : r.o.height;
            object.box[k] = (float)(rint((double)object.box[k] * side * 1e4) / 1e4 / side);
        }
        snapped.item = &object;
        assert_bright(r.e, &snapped);
        const struct pm_rectangle box = rectangle(&r.o, 0);
        assert_true(fabs(box.w - BRIGHT_W) < 1e-5 && fabs(box.h - BRIGHT_H) < 1e-5);
        record_close(&r);
        pm_remove_tree(in_scratch("d"));
    }
    scratch_remove();
}

static void refused(void **state)
{
    static const struct {
        const char *line, *first, *second;
    } cases[] = {
        { "0 0 0 1 0 1 1 0 1 0.5 0.5\n", "u/labels/a.txt:1: has 11 numbers", "four corners" },
        { "0 0 0 1 0 1 1\n", "a.txt:1: has 7 numbers", "9 (class and four corners" },
        { "0 0 0 100 0 100 9 0 9\n", "a.txt:1: number 4 is 100", "not pixels" },
        { "0 -2 0 1 0 1 1 0 1\n", "a.txt:1: number 2 is -2", "shares" },
        { "3 0 0 1 0 1 1 0 1\n", "a.txt:1: class 3 is not one of 0..0", "" },
        { "0 0 0 1 0 1 x 0 1\n", "a.txt:1: \"x\" is not a number", "" },
        { "0 1.5 1.5 1.7 1.5 1.7 1.7 1.5 1.7\n", "a.txt: 1 of 1 boxes are outside of",
          "labels are of another picture" },
    };

    (void)state;
    scratch_make();
    put_blank("u/images/a.png", 20, 30);
    put_file("u/data.yaml", "train: images\nnames: [x]\n");
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        put_file("u/labels/a.txt", cases[i].line);
        assert_fails(run_on("yolo", "u", "e", "boxes=rotated"), PM_EDATA, cases[i].first,
                     cases[i].second);
    }
    scratch_remove();
}

/* Warnings: no rectangle, no area. */
static void odd_boxes(void **state)
{
    (void)state;
    scratch_make();
    put_blank("u/images/a.png", 20, 30);
    put_file("u/data.yaml", "train: images\nnames: [x]\n");
    put_file("u/labels/a.txt", "0 0 0 0.5 0 0.3 0.5 0.1 0.5\n"      /* a trapezium */
                               "0 0 0 0.5 0 0.5 0.5 0.01 0.5\n"     /* 1 % off */
                               "0 0.2 0.2 0.2 0.2 0.2 0.2 0.2 0.2\n" /* a point */
                               "0 0.2 0.2 0.4 0.2 0.4 0.2 0.2 0.2\n" /* a line */
                               "0 0 0 1 0 1 1 0 1\n");
    assert_int_equal(warned("yolo", "u", "boxes=rotated",
                            "u/labels/a.txt:1: the corners are 30.0 % off a rectangle"), 1);
    assert_int_equal(warned("yolo", "u", "boxes=rotated", "off a rectangle"), 1);
    assert_int_equal(warned("yolo", "u", "boxes=rotated", "dropped 2 boxes without an area"), 1);
    assert_fails(run_on("yolo", "u", "e", "boxes=rotated bad=error"), PM_EDATA, "object 3",
                 "has no area");
    put_file("u/labels/a.txt", "0 -0.1 0.1 0.5 0.1 0.5 0.5 -0.1 0.5\n");
    assert_int_equal(warned("yolo", "u", "boxes=rotated", "1 box, 1 clipped at the border"), 1);
    scratch_remove();
}

/* Label files without a picture: in the folder beside the pictures' one, and in a folder of both,
 * where other texts are usual. */
static void orphans(void **state)
{
    static const char line[] = "0 0 0 0.5 0 0.5 0.5 0 0.5\n";

    (void)state;
    scratch_make();
    put_blank("u/images/a/one.png", 20, 30);
    put_file("u/data.yaml", "train: images\nnames: [x]\n");
    put_file("u/labels/a/one.txt", line);
    assert_int_equal(warned("yolo", "u", "boxes=rotated", "no picture in"), 0);
    put_file("u/labels/a/two.txt", line);
    put_file("u/labels/a/one.json", line);
    put_file("u/labels/a/classes.txt", "x\n"); /* some programs write it there */
    assert_int_equal(warned("yolo", "u", "boxes=rotated", "u/labels/a: 1 label file has no picture "
                            "in "), 1);
    assert_int_equal(warned("yolo", "u", "boxes=rotated", "the first is two.txt: add the picture, "
                            "or remove the file"), 1);
    put_blank("v/one.png", 20, 30);
    put_file("v/one.txt", line);
    put_file("v/classes.txt", "x\n");
    assert_int_equal(warned("yolo", "v", "boxes=rotated", "no picture in"), 0);
    scratch_remove();
}

/* The folder of datumaro's tests: two boxes, by hand 3 x 4 and 2 x 6 pixels, both at -60
 * degrees. */
static void shared_layout(void **state)
{
    const char *src = shared_data("layouts/yolo_dataset/yolov8_oriented_boxes");

    (void)state;
    scratch_make();
    assert_int_equal(pm_dataset_convert("yolo", src, in_scratch("d"), "boxes=rotated"), PM_OK);
    struct record r = record_open("d", "train", 1, 0);
    assert_int_equal(r.o.count, 2);
    assert_string_equal(r.o.item[0].text, "label_2");
    assert_string_equal(r.o.item[1].text, "label_4");
    for (size_t i = 0; i < 2; i++) {
        const struct pm_rectangle box = rectangle(&r.o, i);

        /* The file has six digits: 5e-7 of 15 pixels at each corner. */
        assert_true(fabs(box.h - (i ? 2 : 3)) < 2e-5 && fabs(box.w - (i ? 6 : 4)) < 2e-5);
        assert_true(fabs(box.angle + 3.14159265 / 3) < 2e-5);
    }
    record_close(&r);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corners),   cmocka_unit_test(turned),        cmocka_unit_test(refused),
        cmocka_unit_test(odd_boxes), cmocka_unit_test(orphans),
        cmocka_unit_test(shared_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
