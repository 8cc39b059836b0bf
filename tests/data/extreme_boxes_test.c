/* Boxes at the limits, from the converter to the filter of training: one pixel, the whole picture,
 * touching the borders, twice with two classes, 300 in a picture, and a split without any. */
#include "boxes_common.h"

enum { BOXES = 300 };

static void make(void)
{
    struct pm_str s = { 0 };

    put_bright("c/a.png", 0); /* 20 x 30 pixels */
    put_bright("c/b.png", 0);
    put_bright("c/many.png", 0);
    pm_str_add(&s, "image,class,xmin,ymin,xmax,ymax\n"
                   "a.png,pixel,29,19,30,20\n" /* the last pixel */
                   "a.png,whole,0,0,30,20\n"
                   "a.png,edge,0,5,1,6\n"
                   "a.png,edge,29,0,30,20\n"
                   "a.png,whole,3,3,9,9\n" /* one box, two classes */
                   "a.png,edge,3,3,9,9\n"
                   "b.png,,,,,\n");
    for (int i = 0; i < BOXES; i++)
        pm_str_add(&s, "many.png,pixel,%d,%d,%d,%d\n", i % 30, i / 30, i % 30 + 1, i / 30 + 1);
    put_text("c/train.csv", s.text);
    put_text("c/val.csv", "image,class,xmin,ymin,xmax,ymax\nb.png,,,,,\n");
    pm_str_free(&s);
}

/* Training's filter with this least side keeps so many objects and clips none. */
static void assert_kept(struct record *r, double min_side, size_t kept)
{
    struct pm_object_counts counts = { 0 };

    assert_int_equal(pm_objects_filter(&r->o, &(struct pm_object_filter){ .min_side = min_side },
                                       "record", &counts), PM_OK);
    assert_int_equal(r->o.count, kept);
    assert_int_equal(counts.clipped + counts.outside + counts.degenerate, 0);
}

static void limits(void **state)
{
    (void)state;
    scratch_make();
    make();
    assert_int_equal(pm_dataset_convert("boxes", in_scratch("c"), in_scratch("d"),
                                        "num_shards=1"), PM_OK);
    struct record r = record_open("d", "train", 3, 0);
    assert_int_equal(r.o.count, 6);
    assert_object(&r.o, 0, "pixel", 2, 19, 29, 20, 30);
    assert_object(&r.o, 1, "whole", 3, 0, 0, 20, 30);
    assert_object(&r.o, 4, "whole", 3, 3, 3, 9, 9);
    assert_object(&r.o, 5, "edge", 1, 3, 3, 9, 9);
    assert_kept(&r, 1, 6);       /* a side of exactly one pixel stays */
    assert_kept(&r, 1.0001, 3);  /* the two edges and the pixel go */
    record_close(&r);
    r = record_open("d", "train", 3, 1);
    assert_kept(&r, 1, 0); /* without objects */
    record_close(&r);
    r = record_open("d", "train", 3, 2);
    assert_kept(&r, 1, BOXES);
    assert_object(&r.o, BOXES - 1, "pixel", 2, 9, 29, 10, 30); /* their order stays */
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("d"), "validation", 1), 0);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(limits) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
