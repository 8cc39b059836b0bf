/* The converter open_images: splits, names of classes, group-of boxes, the hierarchy, and
 * mistakes. */
#include "boxes_common.h"

#define HEADER "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated," \
               "IsGroupOf,IsDepiction,IsInside\n"

static void make(void)
{
    put_picture("o/images/train/a.jpg", 1);
    put_picture("o/images/train/b.png", 2);
    put_picture("o/images/validation/c.jpg", 3);
    put_file("o/annotations/oidv6-train-annotations-bbox.csv", HEADER
             "b,xclick,/m/1,1,0,1,0.5,1,0,1,0,0,0\n"
             "elsewhere,xclick,/m/9,1,0,1,0,1,0,0,0,0,0\n"
             "a,xclick,/m/0,1,0,0.333333,0,0.5,0,-1,1,0,0\n"
             "b,xclick,/m/0,1,0,1,0,1,0,0,0,0,0\n");
    put_file("o/annotations/oidv6-class-descriptions.csv",
             "LabelName,DisplayName\n/m/1,\"Cat, small\"\n/m/0,Animal\n");
    put_file("o/annotations/h.hierarchy.json",
             "{\"LabelName\": \"/m/x\", \"Subcategory\": [{\"LabelName\": \"/m/0\", "
             "\"Subcategory\": [{\"LabelName\": \"/m/1\", \"Part\": "
             "[{\"LabelName\": \"/m/7\"}]}]}, "
             "{\"LabelName\": \"/m/y\", \"Subcategory\": [{\"LabelName\": \"/m/1\"}]}]}");
}

static void splits(void **state)
{
    (void)state;
    scratch_make();
    make();
    FILE *log = tmpfile();
    pm_log_file(log);
    convert_ok("open_images", "o", "d", NULL);
    pm_log_file(NULL);
    assert_int_equal(lines_with(log, "1 box is of pictures that are not in"), 1);
    assert_int_equal(lines_with(log, "1 of 3 pictures has no annotations and is kept"), 1);
    fclose(log);
    struct record r = record_open("d", "train", 2, 0);
    assert_text(r.e, "image/filename", "a.jpg");
    assert_int_equal(r.o.count, 1);
    assert_object(&r.o, 0, "Animal", 1, 0, 0, 1, 0.999999);
    assert_true(r.o.item[0].group_of && !r.o.item[0].truncated);
    record_close(&r);
    r = record_open("d", "train", 2, 1);
    assert_int_equal(r.o.count, 2);
    assert_object(&r.o, 0, "Cat, small", 2, 1, 0, 2, 3);
    assert_true(!r.o.item[0].group_of && r.o.item[0].truncated);
    assert_object(&r.o, 1, "Animal", 1, 0, 0, 2, 3);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("d"), "validation", 1), 0);
    convert_ok("open_images", "o", "e", "unannotated=skip");
    assert_int_equal(boxes_of(in_scratch("e"), "train", 2), 3);
    assert_fails(run_on("open_images", "o", "f", "unannotated=error"), PM_EDATA, "c.jpg",
                 "*validation-annotations-bbox.csv does not exist");
    scratch_remove();
}

/* Labels in a label map like TensorFlow's, V5's names without a header row, flat folders. */
static void names(void **state)
{
    char options[400];

    (void)state;
    scratch_make();
    make();
    put_text("map.pbtxt", "item { id: 5 name: '/m/0' display_name: 'Animal' }\n"
                          "item { id: 8 name: '/m/1' display_name: 'Cat' }\n");
    snprintf(options, sizeof options, "label_map=%s", in_scratch("map.pbtxt"));
    convert_ok("open_images", "o", "d", options);
    struct record r = record_open("d", "train", 2, 1);
    assert_object(&r.o, 0, "/m/1", 8, 1, 0, 2, 3);
    assert_object(&r.o, 1, "/m/0", 5, 0, 0, 2, 3);
    record_close(&r);
    put_text("map.pbtxt", "item { id: 5 name: '/m/0' }\n");
    assert_fails(run_on("open_images", "o", "e", options), PM_EDATA, "bbox.csv:2",
                 "class \"Cat, small\"");
    put_picture("p/train/a.jpg", 1);
    put_file("p/train-annotations-bbox.csv", HEADER "a,x,/m/1,1,0,1,0,1,0,0,0,0,0\n"
             "a,x,/m/2,1,0,1,0,1,0,0,0,0,0\n");
    put_file("p/class-descriptions-boxable.csv", "/m/1,Dog\n");
    convert_ok("open_images", "p", "e", NULL);
    r = record_open("e", "train", 1, 0);
    assert_object(&r.o, 0, "Dog", 2, 0, 0, 2, 3);
    assert_object(&r.o, 1, "/m/2", 1, 0, 0, 2, 3);
    record_close(&r);
    scratch_remove();
}

static void hierarchy(void **state)
{
    (void)state;
    scratch_make();
    make();
    convert_ok("open_images", "o", "d", "expand_hierarchy=true");
    struct record r = record_open("d", "train", 2, 1);
    assert_int_equal(r.o.count, 4);
    assert_object(&r.o, 0, "Cat, small", 3, 1, 0, 2, 3);
    assert_object(&r.o, 1, "Animal", 2, 1, 0, 2, 3);
    assert_object(&r.o, 2, "/m/y", 1, 1, 0, 2, 3);
    assert_object(&r.o, 3, "Animal", 2, 0, 0, 2, 3);
    record_close(&r);
    /* A cycle: each of the 3 boxes gets the other label once. */
    put_file("o/annotations/h.hierarchy.json",
             "{\"LabelName\": \"/m/x\", \"Subcategory\": [{\"LabelName\": \"/m/0\", "
             "\"Subcategory\": [{\"LabelName\": \"/m/1\", "
             "\"Subcategory\": [{\"LabelName\": \"/m/0\"}]}]}]}");
    convert_ok("open_images", "o", "c", "expand_hierarchy=true");
    assert_int_equal(boxes_of(in_scratch("c"), "train", 2), 6);
    put_file("o/annotations/h.hierarchy.json", "{\"LabelName\": \"/m/x\", \"Subcategory\": [{}]}");
    assert_fails(run_on("open_images", "o", "e", "expand_hierarchy=true"), PM_EDATA,
                 "hierarchy.json", "no LabelName");
    assert_int_equal(remove(in_scratch("o/annotations/h.hierarchy.json")), 0);
    assert_fails(run_on("open_images", "o", "e", "expand_hierarchy=true"), PM_EDATA,
                 "no *hierarchy.json");
    scratch_remove();
}

static void refused(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "ImageID,LabelName,XMin,XMax,YMin\n", "bbox.csv:1: has no column YMax" },
        { HEADER "a,x,/m/0,1,0,nan,0,1,0,0,0,0,0\n", "bbox.csv:2: XMax is \"nan\"" },
        { HEADER "a,x,/m/0,1,0,300,0,1,0,0,0,0,0\n", "bbox.csv:2: XMax is 300" },
        { HEADER "a,x,/m/0,1,0\n", "bbox.csv:2: YMin is \"\"" },
        { HEADER "a\n", "bbox.csv:2: has no ImageID or no LabelName" },
        { "", "bbox.csv: is empty" },
        { HEADER, "none of the 3 pictures has annotations" },
    };

    (void)state;
    scratch_make();
    make();
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        put_file("o/annotations/oidv6-train-annotations-bbox.csv", cases[i].text);
        assert_fails(run_on("open_images", "o", "d", NULL), PM_EDATA, cases[i].wanted);
    }
    put_file("o/annotations/oidv6-class-descriptions.csv", "LabelName,DisplayName\n/m/1\n");
    assert_fails(run_on("open_images", "o", "d", NULL), PM_EDATA, "descriptions.csv:2");
    assert_fails(run_on("open_images", "o/annotations", "d", NULL), PM_EDATA, "descriptions.csv:2");
    assert_int_equal(remove(in_scratch("o/annotations/oidv6-class-descriptions.csv")), 0);
    assert_fails(run_on("open_images", "o/annotations", "d", NULL), PM_EDATA, "no folder train");
    scratch_remove();
}

static void real_layouts(void **state)
{
    const char *root = shared_data("layouts/open_images_dataset");
    char src[1200];

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/v6", root);
    assert_int_equal(pm_dataset_convert("open_images", src, in_scratch("d"),
                                        "expand_hierarchy=true"), PM_OK);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 2), 1);
    assert_int_equal(boxes_of(in_scratch("d"), "validation", 1), 0);
    assert_int_equal(boxes_of(in_scratch("d"), "test", 1), 1);
    struct record r = record_open("d", "test", 1, 0);
    assert_object(&r.o, 0, "Generic label #3", 2, 0, 3.5, 5, 4);
    assert_true(r.o.item[0].group_of);
    record_close(&r);
    /* This data set has pictures but no boxes. */
    snprintf(src, sizeof src, "%s/v5", root);
    assert_fails(pm_dataset_convert("open_images", src, in_scratch("e"), NULL), PM_EDATA,
                 "none of the 2 pictures has annotations");
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits),  cmocka_unit_test(names),        cmocka_unit_test(hierarchy),
        cmocka_unit_test(refused), cmocka_unit_test(real_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
