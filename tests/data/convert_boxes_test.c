/* The converters of boxes in text files: a CSV file with a row for each box, and KITTI's files. */
#include "boxes_common.h"

#include "data/convert/csv_reader.h"

/* ---- CSV --------------------------------------------------------------------------------- */

/* All fields of a file as text, with '|' after a row and '^' after a field; or the error. */
static const char *fields_of(const char *text)
{
    static char out[4096];
    static struct pm_csv c;
    size_t n = 0;
    int err;

    put_text("x.csv", text);
    out[0] = '\0';
    err = pm_csv_open(in_scratch("x.csv"), &c);
    for (err = err < 0 ? err : 1; err == 1; err = pm_csv_row(&c)) {
        for (int i = 0; i < c.count; i++)
            n += (size_t)snprintf(out + n, sizeof out - n, "%s^", c.field[i]);
        n += (size_t)snprintf(out + n, sizeof out - n, "%u|", c.line);
    }
    pm_csv_close(&c);
    return err < 0 ? pm_error_text() : out;
}

static void rows(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "a,b\n1,2\n", "a^b^1|1^2^2|" },
        { "a,b\r\n1,2\r\n\r\n\n3,4", "a^b^1|1^2^2|3^4^5|" },
        { "\xef\xbb\xbf" "a,b\n", "a^b^1|" },
        { "\"a b\",\"c,\"\"d\"\"\"\n\"x\ny\",\n1,2\n", "a b^c,\"d\"^1|x\ny^^2|1^2^4|" },
        { "a;b\n1,5;2\n", "a^b^1|1,5^2^2|" },
        { "a\tb\n1\t2", "a^b^1|1^2^2|" },
        { "a, b ,\"\" , \"q\" \n", "a^b^^q^1|" },
        { "a,5\" nail\n", "a^5\" nail^1|" },
        { ",\n", "^^1|" },
        { "", "is empty" },
        { "\n\n", "is empty" },
        { "a,b\n\"1,2\n3\n", "x.csv:2: a quote that begins in this row is not closed" },
        { "a,b\n\"1\"2,3\n", "x.csv:2: has text behind a closing quote" },
    };

    (void)state;
    scratch_make();
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        assert_says(fields_of(cases[i].text), cases[i].wanted);
    struct pm_str s = { 0 };
    for (int i = 0; i < 70; i++)
        pm_str_add(&s, ",");
    assert_says(fields_of(s.text), "x.csv:1: has more than 64 fields");
    s.length = 0;
    for (int i = 0; i < 70000; i++)
        pm_str_add(&s, "a");
    assert_says(fields_of(s.text), "x.csv:1: the row is longer");
    pm_str_free(&s);
    scratch_remove();
}

static void make_pictures(void)
{
    put_picture("c/a.jpg", 1);
    put_picture("c/images/b c,d.jpg", 2);
    put_picture("c/images/train/e.png", 3);
}

static void csv(void **state)
{
    (void)state;
    scratch_make();
    make_pictures();
    put_text("c/train.csv", "filename,width,height,class,xmin,ymin,xmax,ymax\n"
                            "e.png,3,2,cat,0,0,3,2\n"
                            "a.jpg,3,2,dog,1,1,2,2\n"
                            "\"b c,d.jpg\",3,2,\"a \"\"big\"\" dog\",0,0,1.5,2\n"
                            "a.jpg,3,2,cat,-1,0,1,9\n"
                            "a.jpg,3,2,cat,1,0,1,1\n");
    convert_ok("boxes", "c", "d", NULL);
    struct record r = record_open("d", "train", 3, 0);
    assert_text(r.e, "image/filename", "a.jpg");
    assert_int_equal(r.o.count, 2);
    assert_object(&r.o, 0, "dog", 3, 1, 1, 2, 2);
    assert_object(&r.o, 1, "cat", 2, 0, 0, 2, 1);
    record_close(&r);
    r = record_open("d", "train", 3, 1);
    assert_text(r.e, "image/filename", "b c,d.jpg");
    assert_object(&r.o, 0, "a \"big\" dog", 1, 0, 0, 2, 1.5);
    record_close(&r);
    /* Other orders, names and delimiters; a picture without objects; splits in a column. */
    assert_int_equal(remove(in_scratch("c/train.csv")), 0);
    put_text("c/all.csv", "x1;Y_Max;label;split;image;y1;X_max\n"
                          "0;2;cat;train;a.jpg;1;3\n"
                          ";;;val;b c,d.jpg;;\n"
                          "0;1;cat;train;e.png;0;1\n");
    convert_ok("boxes", "c", "e", NULL);
    r = record_open("e", "train", 2, 0);
    assert_object(&r.o, 0, "cat", 1, 1, 0, 2, 3);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("e"), "val", 1), 0);
    /* Coordinates as shares of the picture; x, y, width, height. */
    put_text("c/all.csv", "image,name,x,y,w,h\na.jpg,cat,0.5,0,0.5,1\n");
    convert_ok("boxes", "c", "f", NULL);
    r = record_open("f", "train", 1, 0);
    assert_object(&r.o, 0, "cat", 1, 0, 1.5, 2, 3);
    record_close(&r);
    convert_ok("boxes", "c", "g", "units=pixels");
    r = record_open("g", "train", 1, 0);
    assert_object(&r.o, 0, "cat", 1, 0, 0.5, 1, 1);
    record_close(&r);
    /* Without the ending of the picture. */
    put_text("c/all.csv", "image_id,name,x,y,w,h\ntrain/e,cat,0,0,1,1\n");
    convert_ok("boxes", "c", "h", NULL);
    r = record_open("h", "train", 1, 0);
    assert_text(r.e, "image/format", "png");
    record_close(&r);
    pm_remove_tree(in_scratch("h"));
    put_text("c/all.csv", "image,name,x,y,w,h\n\na.jpg,cat,1,0,2,1\n");
    assert_fails(run_on("boxes", "c", "h", "units=shares"), PM_EDATA, "all.csv:3", "number 3");
    scratch_remove();
}

/* A share becomes the validation split; the same seed chooses the same pictures. */
static void share(void **state)
{
    struct pm_str s = { 0 };
    char name[32];

    (void)state;
    scratch_make();
    pm_str_add(&s, "file,class,xmin,ymin,xmax,ymax\n");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "c/%02d.jpg", i);
        put_picture(name, i);
        pm_str_add(&s, "%02d.jpg,x,0,0,3,2\n", i);
    }
    put_text("c/b.csv", s.text);
    convert_ok("boxes", "c", "d", "validation=0.25");
    assert_int_equal(boxes_of(in_scratch("d"), "train", 15), 15);
    assert_int_equal(boxes_of(in_scratch("d"), "validation", 5), 5);
    pm_str_free(&s);
    scratch_remove();
}

/* Boxes turn with a picture that EXIF turns. */
static void turned(void **state)
{
    char text[200];

    (void)state;
    scratch_make();
    snprintf(text, sizeof text, "file,class,xmin,ymin,xmax,ymax\na.png,x,%d,%d,%d,%d\n", BRIGHT_X,
             BRIGHT_Y, BRIGHT_X + BRIGHT_W, BRIGHT_Y + BRIGHT_H);
    for (int k = 1; k <= 8; k++) {
        put_bright("c/a.png", k);
        put_text("c/b.csv", text);
        convert_ok("boxes", "c", "d", NULL);
        struct record r = record_open("d", "train", 1, 0);
        assert_bright(r.e, &r.o);
        record_close(&r);
        pm_remove_tree(in_scratch("d"));
    }
    scratch_remove();
}

static void csv_refused(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "file,class,xmin,ymin,xmax\na.jpg,x,0,0,1\n", "t.csv:1: has neither columns xmax and" },
        { "class,xmin,ymin,xmax,ymax\n", "t.csv:1: has no column filename" },
        { "file,class,xmin,ymin,xmax,ymax\n", "t.csv: has no rows" },
        { "file,class,xmin,ymin,xmax,ymax\n\na.jpg,x,0,0,1,nan\n", "t.csv:3: ymax is \"nan\"" },
        { "file,class,xmin,ymin,xmax,ymax\na.jpg,x,0,,1,1\n", "t.csv:2: ymin is \"\"" },
        { "file,class,xmin,ymin,xmax,ymax\na.jpg,,0,0,1,1\n", "t.csv: line 2 has the class name" },
        { "file,class,xmin,ymin,xmax,ymax\n,x,0,0,1,1\n", "t.csv:2: has no filename" },
        { "file,class,xmin,ymin,xmax,ymax\nb.jpg,x,0,0,1,1\n", "t.csv:2: the picture \"b.jpg\"" },
        { "file,class,xmin,ymin,xmax,ymax\n../c/a.jpg,x,0,0,1,1\n", "a.jpg\" is outside" },
        { "file,class,xmin,ymin,xmax,ymax,width\na.jpg,x,0,0,1,1,-3\n", "t.csv:2: width is -3" },
        { "file,class,xmin,ymin,xmax,ymax,split\na.jpg,x,0,0,1,1,../x\n", "t.csv:2: split is" },
    };

    (void)state;
    scratch_make();
    make_pictures();
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        put_text("c/t.csv", cases[i].text);
        assert_fails(run_on("boxes", "c", "d", NULL), PM_EDATA, cases[i].wanted);
    }
    put_text("c/u.csv", "");
    assert_fails(run_on("boxes", "c", "d", NULL), PM_EDATA, "csv=FILE");
    scratch_remove();
}

/* ---- KITTI ------------------------------------------------------------------------------- */

static void kitti(void **state)
{
    (void)state;
    scratch_make();
    put_picture("k/training/image_2/0.png", 1);
    put_picture("k/training/image_2/1.png", 2);
    put_picture("k/training/image_2/2.png", 3);
    put_file("k/training/label_2/0.txt",
             "Car 0.00 0 -1.57 0 0 1.5 2 1.6 1.7 4.1 -16.5 2.4 58.5 -1.59\n"
             "Pedestrian 0.5 1 0.2 2 1 3 2 1 1 1 1 1 1 1\n"
             "DontCare -1 -1 -10 1 0 2 1 -1 -1 -1 -1000 -1000 -1000 -10\n");
    put_file("k/training/label_2/1.txt", "Car 0 0 0 0 0 3 2 1 1 1 1 1 1 1 0.9\r\n");
    put_file("k/training/label_2/2.txt", "");
    convert_ok("kitti", "k", "d", "validation_set_size=1");
    struct record r = record_open("d", "validation", 1, 0);
    assert_int_equal(r.o.count, 2);
    assert_object(&r.o, 0, "car", 1, 0, 0, 2, 1.5);
    assert_object(&r.o, 1, "pedestrian", 2, 1, 2, 2, 3);
    assert_true(!r.o.item[0].truncated && r.o.item[1].truncated);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 2), 1);
    /* The car overlaps the region that is not annotated. */
    convert_ok("kitti", "k", "e",
               "validation_set_size=1 classes=[\"car\",\"pedestrian\",\"dontcare\"]");
    r = record_open("e", "validation", 1, 0);
    assert_int_equal(r.o.count, 1);
    assert_object(&r.o, 0, "pedestrian", 2, 1, 2, 2, 3);
    record_close(&r);
    convert_ok("kitti", "k/training", "f", "classes=car validation=0");
    assert_int_equal(boxes_of(in_scratch("f"), "train", 3), 2);
    put_file("k/training/label_2/2.txt", "\nCar 0 0 x 0 0 3 2\n");
    assert_fails(run_on("kitti", "k", "g", NULL), PM_EDATA, "2.txt:2: alpha is \"x\"");
    put_file("k/training/label_2/2.txt", "Car 0 0 0 0 0 3\n");
    assert_fails(run_on("kitti", "k", "g", NULL), PM_EDATA, "2.txt:1: bottom is \"\"");
    assert_int_equal(remove(in_scratch("k/training/label_2/2.txt")), 0);
    assert_fails(run_on("kitti", "k", "g", NULL), PM_EDATA, "2.txt does not exist");
    assert_fails(run_on("kitti", "k/training/label_2", "g", NULL), PM_EDATA, "no folder label_2");
    scratch_remove();
}

static void real_kitti(void **state)
{
    const char *src = shared_data("layouts/kitti_dataset/kitti_detection");

    (void)state;
    scratch_make();
    assert_int_equal(pm_dataset_convert("kitti", src, in_scratch("d"), "validation=0"), PM_OK);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 2), 5);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),        cmocka_unit_test(csv),   cmocka_unit_test(share),
        cmocka_unit_test(turned),      cmocka_unit_test(csv_refused),
        cmocka_unit_test(kitti),       cmocka_unit_test(real_kitti),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
