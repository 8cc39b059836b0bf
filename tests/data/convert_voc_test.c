/* The converter voc: splits, boxes, flags and classes of PASCAL VOC's XML files, boxes that turn
 * with their pictures, and mistakes. */
#include "base/small_process.h"
#include "boxes_common.h"

/* Writes an annotation file; objects: XML text after the size. */
static void put_xml(const char *name, int width, int height, const char *objects)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "<?xml version=\"1.0\"?>\n<annotation><filename>x.jpg</filename>\n");
    if (width)
        pm_str_add(&s, "<size><width>%d</width><height>%d</height><depth>3</depth></size>", width,
                   height);
    pm_str_add(&s, "%s</annotation>\n", objects);
    put_file(name, s.text);
    pm_str_free(&s);
}

/* An object with its box, in static storage. */
static const char *object(const char *name, double xmin, double ymin, double xmax, double ymax,
                          const char *more)
{
    static char text[8][400];
    static int next;

    next = (next + 1) % 8;
    snprintf(text[next], sizeof text[next],
             "<object><name>%s</name><bndbox><xmax>%g</xmax><ymin>%g</ymin><xmin>%g</xmin>"
             "<ymax>%g</ymax></bndbox>%s</object>\n", name, xmax, ymin, xmin, ymax, more);
    return text[next];
}

/* Makes pictures of H x W = 2 x 3 pixels: a.jpg, b.png (grey, 16 bits), c.jpg, d.jpg. */
static void make_voc(void)
{
    static const uint8_t grey[2 * H * W] = { 0 };
    char text[1600];

    put_picture("v/JPEGImages/a.jpg", 10);
    put_map("v/JPEGImages/b.png", 16, 0, grey);
    put_picture("v/JPEGImages/c.jpg", 20);
    put_picture("v/JPEGImages/d.jpg", 30);
    snprintf(text, sizeof text, "%s%s%s%s",
             object("cat", 0, 0, 3, 2, "<pose>Left</pose><truncated>1</truncated>"),
             object("dog", 1, 1, 2, 2, "<difficult>1</difficult>"),
             object("dog", 2, 0, 2, 2, ""), /* no area */
             object("cat", 2, 1, 9, 1.5, "<part><name>head</name></part>"));
    put_xml("v/Annotations/a.xml", W, H, text);
    put_xml("v/Annotations/b.xml", 0, 0, object("ape", 1, 0, 3, 2, ""));
    put_xml("v/Annotations/c.xml", W, H, "");
    put_file("v/ImageSets/Main/train.txt", "# a comment\na\n\nb  \n");
    put_file("v/ImageSets/Main/val.txt", "c\n");
    put_file("v/ImageSets/Main/trainval.txt", "a\nb\nc\n");
    put_file("v/ImageSets/Main/test.txt", "\"d\"\n");
    put_file("v/ImageSets/Main/cat_train.txt", "a  1\nb -1\n");
}

static void lists(void **state)
{
    (void)state;
    scratch_make();
    make_voc();
    FILE *log = tmpfile();
    pm_log_file(log);
    convert_ok("voc", "v", "d", NULL);
    pm_log_file(NULL);
    assert_int_equal(lines_with(log, "1 of 4 pictures has no annotations and is kept"), 1);
    fclose(log);
    struct record r = record_open("d", "train", 2, 0);
    assert_text(r.e, "image/filename", "a.jpg");
    assert_text(r.e, "image/format", "jpeg");
    assert_int_equal(r.o.count, 3);
    assert_object(&r.o, 0, "cat", 2, 0, 0, 2, 3); /* the whole picture */
    assert_object(&r.o, 1, "dog", 3, 1, 1, 2, 2); /* one pixel, at the border */
    assert_object(&r.o, 2, "cat", 2, 1, 2, 1.5, 3); /* clipped */
    assert_true(r.o.item[0].truncated && !r.o.item[0].difficult);
    assert_true(!r.o.item[1].truncated && r.o.item[1].difficult);
    assert_string_equal(r.o.item[0].view, "Left");
    record_close(&r);
    r = record_open("d", "train", 2, 1);
    assert_text(r.e, "image/filename", "b.png");
    assert_int_equal(r.o.count, 1);
    assert_object(&r.o, 0, "ape", 1, 0, 1, 2, 3);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("d"), "val", 1), 0);
    assert_int_equal(boxes_of(in_scratch("d"), "test", 1), 0);
    assert_int_not_equal(access(in_scratch("d/trainval.record-00000-of-00003"), R_OK), 0);
    assert_int_not_equal(access(in_scratch("d/cat_train.record-00000-of-00002"), R_OK), 0);
    /* Boxes below a pixel after clipping are dropped. */
    convert_ok("voc", "v", "e", "ignore_difficult=true splits=trainval min_side=1");
    assert_int_equal(boxes_of(in_scratch("e"), "trainval", 3), 2);
    assert_fails(run_on("voc", "v", "f", "splits=trian"), PM_ECONFIG, "trian.txt");
    assert_fails(run_on("voc", "v", "f", "bad=error"), PM_EDATA, "a.xml", "object 3 (dog)",
                 "no area");
    /* A picture of the training list has no annotation file. */
    put_file("v/ImageSets/Main/train.txt", "a\nd\n");
    assert_fails(run_on("voc", "v", "f", NULL), PM_EDATA, "d.xml does not exist", "unannotated");
    convert_ok("voc", "v", "f", "unannotated=empty");
    assert_int_equal(boxes_of(in_scratch("f"), "train", 2), 3);
    convert_ok("voc", "v", "g", "unannotated=skip");
    assert_int_equal(boxes_of(in_scratch("g"), "train", 1), 3);
    put_file("v/ImageSets/Main/train.txt", "a\n../a\n");
    assert_fails(run_on("voc", "v", "h", NULL), PM_EDATA, "train.txt:2: \"../a\"");
    scratch_remove();
}

/* Without lists: folders of splits as made by Roboflow, one folder, or two years. */
static void folders(void **state)
{
    char name[64];

    (void)state;
    scratch_make();
    put_picture("r/train/a.rf.1.jpg", 1);
    put_xml("r/train/a.rf.1.xml", W, H, object("x", 0, 0, 3, 2, ""));
    put_picture("r/valid/b.jpg", 1);
    put_xml("r/valid/b.xml", W, H, object("y", 0, 0, 3, 2, ""));
    convert_ok("voc", "r", "d", NULL);
    struct record r = record_open("d", "validation", 1, 0);
    assert_object(&r.o, 0, "y", 2, 0, 0, 2, 3);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 1), 1);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "w/images/%d.jpg", i);
        put_picture(name, i);
        snprintf(name, sizeof name, "w/Annotations/%d.xml", i);
        put_xml(name, W, H, object("x", 0, 0, 3, 2, ""));
    }
    convert_ok("voc", "w", "e", "validation=0.3 num_shards=2");
    assert_int_equal(boxes_of(in_scratch("e"), "train", 7), 7);
    assert_int_equal(boxes_of(in_scratch("e"), "validation", 3), 3);
    assert_int_equal(access(in_scratch("e/train.record-00001-of-00002"), R_OK), 0);
    for (int year = 2007; year <= 2012; year += 5) {
        snprintf(name, sizeof name, "k/VOCdevkit/VOC%d/JPEGImages/%d.jpg", year, year);
        put_picture(name, 1);
        snprintf(name, sizeof name, "k/VOCdevkit/VOC%d/Annotations/%d.xml", year, year);
        put_xml(name, W, H, object("x", 0, 0, 3, 2, ""));
        snprintf(name, sizeof name, "k/VOCdevkit/VOC%d/ImageSets/Main/train.txt", year);
        put_file(name, year == 2007 ? "2007\n" : "2012\n");
    }
    convert_ok("voc", "k", "f", NULL);
    assert_int_equal(boxes_of(in_scratch("f"), "train", 2), 2);
    assert_fails(run_on("voc", "k/none", "g", NULL), PM_EDATA, "no such folder");
    assert_fails(run_on("voc", "k/VOCdevkit/VOC2007/ImageSets", "g", NULL), PM_EDATA,
                 "has no pictures");
    scratch_remove();
}

/* Boxes turn with the pixels, for each EXIF orientation. */
static void orientations(void **state)
{
    static const char *const options[] = { NULL, "exif=stored" };
    char objects[400];

    (void)state;
    scratch_make();
    snprintf(objects, sizeof objects, "%s",
             object("x", BRIGHT_X, BRIGHT_Y, BRIGHT_X + BRIGHT_W, BRIGHT_Y + BRIGHT_H, ""));
    for (int k = 0; k <= 8; k++)
        for (size_t i = 0; i < PM_COUNT(options); i++) {
            put_bright("v/JPEGImages/a.png", k);
            put_xml("v/Annotations/a.xml", STORED_W, STORED_H, objects);
            convert_ok("voc", "v", "d", options[i]);
            struct record r = record_open("d", "train", 1, 0);
            assert_int_equal(r.o.height, k >= 5 ? STORED_W : STORED_H);
            assert_bright(r.e, &r.o);
            record_close(&r);
            pm_remove_tree(in_scratch("d"));
        }
    /* Boxes of the upright picture: the size in the annotations shows it, or an option. */
    put_bright("v/JPEGImages/a.png", 6);
    const int xmin = STORED_H - BRIGHT_Y - BRIGHT_H;
    for (int given = 0; given < 2; given++) {
        put_xml("v/Annotations/a.xml", given ? 0 : STORED_H, given ? 0 : STORED_W,
                object("x", xmin, BRIGHT_X, xmin + BRIGHT_H, BRIGHT_X + BRIGHT_W, ""));
        convert_ok("voc", "v", "d", given ? "exif=shown" : NULL);
        struct record r = record_open("d", "train", 1, 0);
        assert_bright(r.e, &r.o);
        record_close(&r);
        pm_remove_tree(in_scratch("d"));
    }
    scratch_remove();
}

/* The size of the picture has priority, with a warning. */
static void sizes(void **state)
{
    (void)state;
    scratch_make();
    put_picture("v/JPEGImages/a.jpg", 1);
    put_xml("v/Annotations/a.xml", 300, 200, object("x", 0, 0, 3, 2, ""));
    FILE *log = tmpfile();
    pm_log_file(log);
    convert_ok("voc", "v", "d", NULL);
    pm_log_file(NULL);
    assert_int_equal(lines_with(log, "a.xml: states a size of 300 x 200 pixels"), 1);
    fclose(log);
    struct record r = record_open("d", "train", 1, 0);
    assert_object(&r.o, 0, "x", 1, 0, 0, 2, 3);
    record_close(&r);
    scratch_remove();
}

static void classes(void **state)
{
    (void)state;
    scratch_make();
    make_voc();
    put_text("map.pbtxt", "item { id: 7 name: 'cat' display_name: 'a cat' }\n"
                         "item { id: 3 name: 'dog' }\nitem { id: 9 name: 'ape' }\n");
    char options[400];
    snprintf(options, sizeof options, "label_map=%s", in_scratch("map.pbtxt"));
    convert_ok("voc", "v", "d", options);
    struct record r = record_open("d", "train", 2, 0);
    assert_object(&r.o, 0, "cat", 7, 0, 0, 2, 3);
    assert_object(&r.o, 1, "dog", 3, 1, 1, 2, 2);
    record_close(&r);
    snprintf(options, sizeof options, "label_map=%s", in_scratch("names.pbtxt"));
    put_text("names.pbtxt", "item { id: 1 name: 'dog' } item { id: 2 name: 'cat' } "
                            "item { id: 3 name: 'ape' }");
    convert_ok("voc", "v", "e", options);
    r = record_open("e", "train", 2, 0);
    assert_object(&r.o, 0, "cat", 2, 0, 0, 2, 3);
    record_close(&r);
    put_text("names.pbtxt", "item { id: 1 name: 'dog' } item { id: 2 name: 'cats' }");
    assert_fails(run_on("voc", "v", "f", options), PM_EDATA, "a.xml:3", "class \"cat\"",
                 "names.pbtxt", "did you mean \"cats\"");
    put_text("names.pbtxt", "item { id: 1 name: 'dog' } item { id: 2 name: 'dog' }");
    assert_fails(run_on("voc", "v", "f", options), PM_EDATA, "names.pbtxt");
    /* One class, and no class. */
    put_xml("v/Annotations/a.xml", W, H, "");
    put_xml("v/Annotations/b.xml", W, H, "");
    assert_fails(run_on("voc", "v", "f", NULL), PM_EDATA, "has an object", "label_map");
    put_text("names.pbtxt", "item { id: 1 name: 'cell' }");
    convert_ok("voc", "v", "f", options);
    assert_int_equal(boxes_of(in_scratch("f"), "train", 2), 0);
    scratch_remove();
}

/* Each mistake gives one line with the file, its line and the value. */
static void refused(void **state)
{
    static const char box[] = "<bndbox><xmin>0</xmin><ymin>0</ymin><xmax>3</xmax><ymax>2</ymax>"
                              "</bndbox>";
    static const struct {
        const char *xml, *wanted;
    } cases[] = {
        { "", "a.xml: is empty" },
        { "<html></html>", "a.xml:1: begins with <html>" },
        { "<annotation>\n<object>", "not well-formed XML" },
        { "<annotation></anotation>", "not well-formed XML" },
        { "<!DOCTYPE a>\n<annotation></annotation>", "a.xml:1: has a document type declaration" },
        { "<?xml version='1.0'?>\n\n<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>\n"
          "<annotation><filename>&x;</filename></annotation>",
          "a.xml:3: has a document type declaration" },
        { "<annotation><filename>&x;</filename></annotation>", "Entity 'x' not defined" },
        { "<annotation>\n<object><name>x</name></object></annotation>",
          "a.xml:2: the object that begins in line 2 has no <bndbox> with <ymin>" },
        { "<annotation>\n<object>BOX</object></annotation>", "line 2 has no <name>" },
        { "<annotation>\n<object><name> </name>BOX</object></annotation>", "no <name>" },
        { "<annotation>\n<object><name>x</name><name>y</name>BOX</object></annotation>",
          "a.xml:2: the object has two <name>" },
        { "<annotation>\n<object><name>x<b/></name>BOX</object></annotation>",
          "<name> contains an element <b>" },
        { "<annotation>\n\n<object><name>x</name><difficult>yes</difficult>BOX</object>"
          "</annotation>", "a.xml:3: <difficult> is \"yes\"; write 0 or 1" },
        { "<annotation><size><width>-1</width></size></annotation>", "<width> is \"-1\"" },
        { "<annotation><size><width>1e125</width></size></annotation>", "<width> is \"1e125\"" },
        { "<annotation>\n<object><name>x</name><bndbox><xmin>nan</xmin></bndbox></object>"
          "</annotation>", "a.xml:2: <xmin> is \"nan\"" },
        { "<annotation>\n<object><name>x</name><bndbox><xmin>1,5</xmin></bndbox></object>"
          "</annotation>", "<xmin> is \"1,5\"" },
        { "<annotation>\n<object><name>a\nb</name>BOX</object></annotation>", "class name" },
    };

    (void)state;
    scratch_make();
    put_picture("v/JPEGImages/a.jpg", 1);
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_str s = { 0 };
        const char *mark = strstr(cases[i].xml, "BOX");

        if (mark)
            pm_str_add(&s, "%.*s%s%s", (int)(mark - cases[i].xml), cases[i].xml, box, mark + 3);
        else
            pm_str_add(&s, "%s", cases[i].xml);
        put_file("v/Annotations/a.xml", s.text);
        pm_str_free(&s);
        assert_fails(run_on("voc", "v", "d", "validation=0"), PM_EDATA, cases[i].wanted);
        assert_int_not_equal(access(in_scratch("d"), R_OK), 0);
    }
    scratch_remove();
}

/* The folder v is refused, also in a process with little memory. */
static bool refuses_voc(const char *to)
{
    return pm_dataset_convert("voc", in_scratch("v"), to, NULL) == PM_EDATA;
}

/* 10^6 nested elements, long texts and 10 GB are refused with little memory. */
static void huge(void **state)
{
    enum { LEVELS = 1000000 };
    struct pm_str s = { 0 };

    (void)state;
    scratch_make();
    put_picture("v/JPEGImages/a.jpg", 1);
    pm_str_add(&s, "<annotation>");
    for (int i = 0; i < LEVELS; i++)
        pm_str_add(&s, "<a>");
    put_file("v/Annotations/a.xml", s.text);
    assert_fails(run_on("voc", "v", "d", NULL), PM_EDATA, "a.xml:1", "257 deep");
    assert_true(in_small_process(refuses_voc, in_scratch("d")));
    s.length = 0;
    pm_str_add(&s, "<annotation><object><name>");
    for (int i = 0; i < LEVELS; i++)
        pm_str_add(&s, "abc");
    put_file("v/Annotations/a.xml", s.text);
    assert_fails(run_on("voc", "v", "d", NULL), PM_EDATA, "a.xml:1", "<name> has more than 1024");
    assert_true(in_small_process(refuses_voc, in_scratch("d")));
    assert_int_equal(truncate(in_scratch("v/Annotations/a.xml"), 10LL << 30), 0);
    assert_fails(run_on("voc", "v", "d", NULL), PM_EDATA, "a.xml", "10 GiB", "16 MiB");
    assert_true(in_small_process(refuses_voc, in_scratch("d")));
    pm_str_free(&s);
    scratch_remove();
}

static void real_bccd(void **state)
{
    const char *src = shared_data("bccd");

    (void)state;
    scratch_make();
    FILE *log = tmpfile();
    pm_log_file(log);
    assert_int_equal(pm_dataset_convert("voc", src, in_scratch("d"), NULL), PM_OK);
    pm_log_file(NULL);
    /* The files hold 2,805 and 1,138 boxes; one in each has no area. */
    assert_int_equal(boxes_of(in_scratch("d"), "train", 205), 2804);
    assert_int_equal(boxes_of(in_scratch("d"), "val", 87), 1137);
    assert_int_equal(boxes_of(in_scratch("d"), "test", 72), 945);
    assert_int_equal(lines_with(log, "BloodImage_00343.xml: dropped 1 box without an area"), 1);
    assert_int_equal(lines_with(log, "BloodImage_00338.xml: dropped 1 box without an area"), 1);
    assert_int_equal(lines_with(log, "dropped 1 box without an area"), 2);
    fclose(log);
    assert_fails(pm_dataset_convert("voc", src, in_scratch("e"), "bad=error"), PM_EDATA,
                 "BloodImage_00343.xml", "object 4 (RBC)");
    scratch_remove();
}

static void real_layouts(void **state)
{
    const char *src = shared_data("layouts/voc_dataset/voc_dataset1");

    (void)state;
    scratch_make();
    assert_int_equal(pm_dataset_convert("voc", src, in_scratch("d"), NULL), PM_OK);
    struct record r = record_open("d", "train", 1, 0);
    assert_int_equal(r.o.count, 2);
    assert_object(&r.o, 0, "cat", 1, 2, 1, 4, 3);
    assert_object(&r.o, 1, "person", 2, 5, 4, 7, 6);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("d"), "test", 1), 0);
    src = shared_data("layouts/voc_dataset/voc_dataset3");
    assert_int_equal(pm_dataset_convert("voc", src, in_scratch("e"), NULL), PM_OK);
    assert_int_equal(boxes_of(in_scratch("e"), "train", 1), 1);
    /* This data set has no pictures. */
    src = shared_data("layouts/voc_dataset/voc_dataset2");
    assert_fails(pm_dataset_convert("voc", src, in_scratch("f"), NULL), PM_EDATA, "trainval");
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),   cmocka_unit_test(folders), cmocka_unit_test(orientations),
        cmocka_unit_test(sizes),   cmocka_unit_test(classes), cmocka_unit_test(refused),
        cmocka_unit_test(huge),    cmocka_unit_test(real_bccd),
        cmocka_unit_test(real_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
