/* The converter hrsc: annotation files, lists, and mistakes. */
#include "base/shared_data.h"
#include "rotated_common.h"

#define OBJECT(cx, cy, w, h, ang, more)                                                            \
    "<HRSC_Object><Class_ID>100000013</Class_ID><mbox_cx>" cx "</mbox_cx><mbox_cy>" cy             \
    "</mbox_cy>\n<mbox_w>" w "</mbox_w><mbox_h>" h "</mbox_h><mbox_ang>" ang "</mbox_ang>" more    \
    "</HRSC_Object>\n"
#define PICTURE(objects)                                                                           \
    "<HRSC_Image>\n<Img_SizeWidth>140</Img_SizeWidth><Img_SizeHeight>100</Img_SizeHeight>\n"       \
    "<Img_Resolution>1.07</Img_Resolution><HRSC_Objects>\n" objects                                \
    "</HRSC_Objects></HRSC_Image>\n"

static void make_photo(const char *name)
{
    char path[200];

    snprintf(path, sizeof path, "h/FullDataSet/AllImages/%s.png", name);
    put_blank(path, 100, 140);
}

static void put_objects(const char *name, const char *text)
{
    char path[200];

    snprintf(path, sizeof path, "h/FullDataSet/Annotations/%s.xml", name);
    put_file(path, text);
}

static void boxes(void **state)
{
    (void)state;
    scratch_make();
    make_photo("1");
    put_objects("1", PICTURE(
        OBJECT("70", "50", "40", "10", "0.5", "<difficult>1</difficult>")
        OBJECT("70", "50", "10", "40", "0.5", "<truncated>1</truncated>") /* w below h */
        OBJECT("70", "50", "40", "10", "1.5707963267948966", "")
        OBJECT("-5", "50", "40", "10", "-0.25", "")));
    convert_ok("hrsc", "h", "d", "validation=0");
    struct record r = record_open("d", "train", 1, 0);
    const double degree = 180 / 3.14159265358979323846;
    assert_int_equal(r.o.count, 4);
    assert_rotated(&r.o, 0, 50, 70, 10, 40, 0.5 * degree);
    assert_rotated(&r.o, 1, 50, 70, 10, 40, 0.5 * degree - 90);
    assert_rotated(&r.o, 2, 50, 70, 10, 40, 90);
    assert_rotated(&r.o, 3, 50, -5, 10, 40, -0.25 * degree); /* its centre is outside */
    assert_true(r.o.item[0].difficult && !r.o.item[1].difficult && r.o.item[1].truncated);
    assert_string_equal(r.o.item[0].text, "ship");
    assert_true(r.o.gsd == 1.07F);
    record_close(&r);
    convert_ok("hrsc", "h", "e", "validation=0 classes=id");
    r = record_open("e", "train", 1, 0);
    assert_string_equal(r.o.item[0].text, "100000013");
    record_close(&r);
    scratch_remove();
}

static void refused(void **state)
{
    static const struct {
        const char *text, *first, *second;
    } cases[] = {
        { PICTURE("<HRSC_Object><mbox_cx>1</mbox_cx></HRSC_Object>"), "1.xml:4:",
          "the object that begins in line 4 has no <mbox_cy>" },
        { PICTURE(OBJECT("1", "1", "-4", "2", "0", "")), "1.xml:5:", "has the sides mbox_w -4" },
        { PICTURE(OBJECT("1", "x", "4", "2", "0", "")), "1.xml:4:", "<mbox_cy> is \"x\"" },
        { PICTURE(OBJECT("1", "1", "4", "2", "nan", "")), "1.xml:5:", "<mbox_ang> is \"nan\"" },
        { PICTURE(OBJECT("1", "1", "4", "2", "0", "<mbox_w>5</mbox_w>")), "1.xml:5:",
          "the object has two <mbox_w>" },
        { PICTURE(OBJECT("1", "1", "4", "2", "0", "<difficult>5</difficult>")), "1.xml:5:",
          "<difficult> is \"5\"" },
        { "<annotation></annotation>", "1.xml:1:", "not with <HRSC_Image>" },
        { "<HRSC_Image>", "1.xml:", "not well-formed XML" },
        { "", "1.xml: is empty", "<HRSC_Image></HRSC_Image>" },
        { PICTURE(OBJECT("900", "900", "4", "2", "0", "")), "1 of 1 boxes are outside of",
          "use the picture that was labelled" },
    };

    (void)state;
    scratch_make();
    make_photo("1");
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        put_objects("1", cases[i].text);
        assert_fails(run_on("hrsc", "h", "e", "validation=0"), PM_EDATA, cases[i].first,
                     cases[i].second);
    }
    scratch_remove();
}

/* A zero side, an angle beyond a turn, files without a partner. */
static void odd_files(void **state)
{
    (void)state;
    scratch_make();
    make_photo("1");
    put_objects("1", PICTURE(OBJECT("70", "50", "40", "0", "0.5", "")
                             OBJECT("70", "50", "40", "10", "7", "")));
    assert_int_equal(warned("hrsc", "h", "validation=0", "dropped 1 box without an area"), 1);
    assert_int_equal(warned("hrsc", "h", "validation=0",
                            "1.xml:6: mbox_ang is 7, beyond a full turn of radians; the angle is "
                            "wrapped: if the file has degrees, divide them by 57.29578"), 1);
    convert_ok("hrsc", "h", "d", "validation=0");
    struct record r = record_open("d", "train", 1, 0);
    assert_rotated(&r.o, 0, 50, 70, 10, 40, 7 * 180 / 3.14159265358979323846);
    record_close(&r);
    put_objects("2", PICTURE(""));
    assert_int_equal(warned("hrsc", "h", "validation=0", "1 label file has no picture in "), 1);
    assert_int_equal(warned("hrsc", "h", "validation=0", "the first is 2.xml: add the picture"), 1);
    make_photo("3");
    assert_fails(run_on("hrsc", "h", "e", NULL), PM_EDATA, "3.png has no annotations",
                 "3.xml does not exist");
    assert_fails(run_on("hrsc", "h/FullDataSet/AllImages", "e", NULL), PM_EDATA,
                 "no folder AllImages in it");
    scratch_remove();
}

static void lists(void **state)
{
    static const char *const names[] = { "1", "2", "3", "4" };

    (void)state;
    scratch_make();
    for (int k = 0; k < 4; k++) {
        make_photo(names[k]);
        put_objects(names[k], PICTURE(OBJECT("70", "50", "40", "10", "0.5", "")));
    }
    put_file("h/ImageSets/trainval.txt", "1\n2\n3\n");
    put_file("h/ImageSets/test.txt", "4\r\n\n");
    convert_ok("hrsc", "h", "d", NULL);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 3), 3);
    assert_int_equal(boxes_of(in_scratch("d"), "test", 1), 1);
    put_file("h/ImageSets/train.txt", "1\n2\n");
    put_file("h/ImageSets/val.txt", "3\n");
    convert_ok("hrsc", "h", "e", NULL);
    assert_int_equal(boxes_of(in_scratch("e"), "train", 2), 2);
    assert_int_equal(boxes_of(in_scratch("e"), "validation", 1), 1);
    put_file("h/ImageSets/val.txt", "3\n9\n");
    assert_fails(run_on("hrsc", "h", "f", NULL), PM_EDATA, "val.txt:2: ", "has no picture 9.bmp");
    put_file("h/ImageSets/val.txt", "../3\n");
    assert_fails(run_on("hrsc", "h", "f", NULL), PM_EDATA, "val.txt:1: \"../3\" is not the name");
    scratch_remove();
}

/* The annotation of the shared data, whose picture is not there: a blank one takes its place. */
static void shared_file(void **state)
{
    const char *from = shared_data("rotated-boxes/hrsc/FullDataSet/Annotations/100000006.xml");
    char *text = NULL;
    size_t size = 0;

    (void)state;
    scratch_make();
    assert_int_equal(pm_file_read(from, &text, &size), PM_OK);
    put_blank("h/FullDataSet/AllImages/100000006.png", 816, 1172);
    make_folder_of("h/FullDataSet/Annotations/100000006.xml");
    assert_int_equal(pm_file_write(in_scratch("h/FullDataSet/Annotations/100000006.xml"), text,
                                   size), PM_OK);
    pm_free(text);
    convert_ok("hrsc", "h", "d", "validation=0");
    struct record r = record_open("d", "train", 1, 0);
    assert_int_equal(r.o.count, 1);
    assert_rotated(&r.o, 0, 443.3325, 341.2143, 178.2595, 778.4297,
                   -1.122944 * 180 / 3.14159265358979323846);
    /* The file has the ship's upright box, too. The label's box is wider than the ship: their
     * overlap shows the turning direction, because turned the other way the box would not have the
     * ship's head, 143 776, on its axis. */
    const struct pm_rectangle box = rectangle(&r.o, 0);
    const double x = 143 - box.cx, y = 776 - box.cy;
    assert_true(fabs(y * cos(box.angle) - x * sin(box.angle)) < box.h / 2);
    assert_true(fabs(x * cos(box.angle) + y * sin(box.angle)) > 0.9 * box.w / 2);
    record_close(&r);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(boxes), cmocka_unit_test(refused),
                                        cmocka_unit_test(odd_files), cmocka_unit_test(lists),
                                        cmocka_unit_test(shared_file) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
