/* The converter yolo: lines of labels, data.yaml, darknet's lists, folders with classes.txt, and
 * mistakes. */
#include "boxes_common.h"

#include "data/convert/yaml_entries.h"

/* ---- YAML -------------------------------------------------------------------------------- */

/* All entries as KEY/SUB=VALUE@LINE, or the error. */
static const char *entries_of(const char *text)
{
    static char out[4096];
    struct pm_arena *a = pm_arena_create();
    struct pm_yaml y = { 0 };
    size_t n = 0;

    put_text("x.yaml", text);
    out[0] = '\0';
    const int err = pm_yaml_read(a, in_scratch("x.yaml"), &y);
    for (size_t i = 0; err == PM_OK && i < y.count && n < sizeof out; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s/%s=%s@%u ", y.entry[i].key,
                              y.entry[i].sub, y.entry[i].value, y.entry[i].line);
    if (err < 0)
        snprintf(out, sizeof out, "%s", pm_error_text());
    pm_yaml_free(&y);
    pm_arena_destroy(&a);
    return out;
}

static void yaml(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "a: b\nc: [d, 'e f']\n", "a/=b@1 c/0=d@2 c/1=e f@2 " },
        { "# c\nn:\n  0: x\n  2: \"y\"\nt:\n- u\n- v\n", "n/0=x@3 n/2=y@4 t/0=u@6 t/1=v@7 " },
        { "a:\nb: {c: {d: e}, f: g}\nh: [[1], 2]\n", "a/=@1 b/f=g@2 h/1=2@3 " },
        { "---\na: b\n---\na: c\n", "a/=b@2 " },
        { "a: &x b\nc: *x\n", "x.yaml:2: has an alias" },
        { "- a\n", "x.yaml:1: begins with a list" },
        { "abc", "x.yaml:1: is not a map" },
        { "", "x.yaml: is empty" },
        { "a: [b\nc: d", "not YAML" },
        { "a: b: c\n", "x.yaml:1: not YAML" },
        { "[a, b]: c\n", "x.yaml:1: has a list or map as a key" },
        { "x:\n  [a, b]: c\n", "x.yaml:2: has a list or map as a key" },
    };
    struct pm_str s = { 0 };

    (void)state;
    scratch_make();
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        assert_says(entries_of(cases[i].text), cases[i].wanted);
    pm_str_add(&s, "a: ");
    for (int i = 0; i < 1000000; i++)
        pm_str_add(&s, "[");
    assert_says(entries_of(s.text), "x.yaml:1: has more than 64 levels");
    pm_str_free(&s);
    scratch_remove();
}

/* ---- ultralytics --------------------------------------------------------------------------- */

static void make_pictures(void)
{
    put_picture("u/images/train/a.jpg", 1);
    put_picture("u/images/train/deep/b.png", 2);
    put_picture("u/images/val/c.jpg", 3);
    put_file("u/labels/train/a.txt", "1 0.5 0.5 1 1\n\n0 0.833334 0.25 0.333333 0.5\r\n"
                                     "0 0.9 0.5 0.4 1\n");
    put_file("u/labels/train/deep/b.txt", "");
}

static void ultralytics(void **state)
{
    static const char *const files[] = {
        "path: .\ntrain: images/train\nval: images/val\ntest:\nnames:\n  0: cat\n  1: a dog\n",
        "path: /home/me/datasets/u\ntrain: ./images/train/\nval: [images/val/c.jpg]\n"
        "nc: 2\nnames: [cat, 'a dog']\n",
        "train: ../u/images/train\nval: val.txt\nnames: ['cat', 'a dog']\nnc: 2\n",
    };
    FILE *log = tmpfile();

    (void)state;
    scratch_make();
    make_pictures();
    put_text("u/val.txt", "/content/u/images/val/c.jpg\n");
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        put_text("u/data.yaml", files[i]);
        pm_log_file(log);
        convert_ok("yolo", "u", "d", NULL);
        pm_log_file(NULL);
        struct record r = record_open("d", "train", 2, 0);
        assert_text(r.e, "image/filename", "a.jpg");
        assert_int_equal(r.o.count, 3);
        assert_object(&r.o, 0, "a dog", 2, 0, 0, 2, 3);
        assert_int_equal(r.o.item[1].label, 1);
        assert_true(r.o.item[1].box[3] == 1 && r.o.item[1].box[0] == 0);
        assert_object(&r.o, 2, "cat", 1, 0, 2.1, 2, 3); /* clipped */
        record_close(&r);
        assert_int_equal(boxes_of(in_scratch("d"), "validation", 1), 0);
        pm_remove_tree(in_scratch("d"));
    }
    assert_int_equal(lines_with(log, "1 of 3 pictures has no annotations and is kept"), 3);
    assert_int_equal(lines_with(log, "1 clipped"), 3); /* rounding at a border does not count as
                                                        * clipping */
    fclose(log);
    convert_ok("yolo", "u", "d", "unannotated=skip data=data.yaml");
    assert_int_equal(boxes_of(in_scratch("d"), "train", 2), 3);
    assert_fails(run_on("yolo", "u", "e", "unannotated=error"), PM_EDATA, "c.txt does not exist");
    assert_int_equal(remove(in_scratch("u/labels/train/a.txt")), 0);
    assert_int_equal(remove(in_scratch("u/labels/train/deep/b.txt")), 0);
    assert_fails(run_on("yolo", "u", "e", NULL), PM_EDATA,
                 "none of the 3 pictures has annotations", "labels/train/a.txt");
    scratch_remove();
}

/* Polygons and rotated boxes become the box around them; poses have keypoints. */
static void shapes(void **state)
{
    (void)state;
    scratch_make();
    make_pictures();
    put_text("u/data.yaml", "train: images/train\nnames: [x]\n");
    put_file("u/labels/train/a.txt", "0 0 0 0.5 0 0.5 0.5\n0 0.2 0.1 0.8 0.2 0.6 0.9 0.1 0.5\n");
    convert_ok("yolo", "u", "d", NULL);
    struct record r = record_open("d", "train", 2, 0);
    assert_object(&r.o, 0, "x", 1, 0, 0, 1, 1.5);
    assert_object(&r.o, 1, "x", 1, 0.2, 0.3, 1.8, 2.4);
    record_close(&r);
    put_text("u/data.yaml", "train: images/train\nnames: [x]\nkpt_shape: [2, 3]\n");
    put_file("u/labels/train/a.txt", "0 0.5 0.5 1 1 0.25 0.5 2 0.1 0.2 0\n0 0.5 0.5 1 1\n");
    convert_ok("yolo", "u", "e", NULL);
    r = record_open("e", "train", 2, 0);
    assert_int_equal(r.o.points, 2);
    assert_true(r.o.item[0].keypoints[0].x == 0.25f && r.o.item[0].keypoints[0].y == 0.5f);
    assert_int_equal(r.o.item[0].keypoints[0].visibility, 2);
    assert_int_equal(r.o.item[0].keypoints[1].visibility, 0);
    assert_int_equal(r.o.item[1].keypoints[0].visibility, 0);
    record_close(&r);
    put_text("u/data.yaml", "train: images/train\nnames: [x]\nkpt_shape: [2, 2]\n"
                            "flip_idx: [1, 0]\n");
    put_file("u/labels/train/a.txt", "0 0.5 0.5 1 1 0.25 0.5 0 0\n");
    convert_ok("yolo", "u", "f", NULL);
    r = record_open("f", "train", 2, 0);
    assert_int_equal(r.o.item[0].keypoints[0].visibility, 2);
    assert_int_equal(r.o.item[0].keypoints[1].visibility, 0);
    const struct pm_ints *mirrored = &pm_dataset_get_info(r.d)->mirrored_points;
    assert_true(mirrored->count == 2 && mirrored->v[0] == 1 && mirrored->v[1] == 0);
    record_close(&r);
    scratch_remove();
}

/* Polygons become masks that turn with the pixels; their area counts pixels. */
static void masks(void **state)
{
    char text[300];
    const double x0 = (double)BRIGHT_X / STORED_W, x1 = (BRIGHT_X + (double)BRIGHT_W) / STORED_W;
    const double y0 = (double)BRIGHT_Y / STORED_H, y1 = (BRIGHT_Y + (double)BRIGHT_H) / STORED_H;

    (void)state;
    scratch_make();
    put_file("u/data.yaml", "train: images\nnames: [x]\n");
    snprintf(text, sizeof text, "0 %.9f %.9f %.9f %.9f %.9f %.9f %.9f %.9f\n"
             "0 0.5 0.5 0.2 0.2\n", x0, y0, x1, y0, x1, y1, x0, y1);
    put_file("u/labels/a.txt", text);
    for (int n = 0; n < 16; n++) { /* both forms in each orientation */
        put_bright("u/images/a.png", 1 + n / 2);
        convert_ok("yolo", "u", "d", n % 2 ? "masks=true" : "masks=rle");
        struct record r = record_open("d", "train", 1, 0);
        struct pm_image8 im = image(r.e, "image/encoded", 1);
        uint8_t *mask = pm_malloc((size_t)im.height * (size_t)im.width);
        assert_int_equal(r.o.item[0].area, BRIGHT_H * BRIGHT_W);
        assert_int_equal(pm_objects_mask(&r.o, 0, "record", mask), PM_OK);
        for (int i = 0; i < im.height * im.width; i++)
            assert_int_equal(mask[i], im.pixels[i] == 255);
        /* A box without a polygon has an empty mask. */
        assert_true(fabsf(r.o.item[1].area - 24) < 1e-3f);
        assert_int_equal(pm_objects_mask(&r.o, 1, "record", mask), PM_OK);
        for (int i = 0; i < im.height * im.width; i++)
            assert_int_equal(mask[i], 0);
        pm_free(mask);
        pm_image_free(&im);
        record_close(&r);
        pm_remove_tree(in_scratch("d"));
    }
    scratch_remove();
}

/* Boxes and keypoints turn with a picture that EXIF turns. */
static void turned(void **state)
{
    char text[200];
    const double x = (BRIGHT_X + 0.5) / STORED_W, y = (BRIGHT_Y + 0.5) / STORED_H;

    (void)state;
    scratch_make();
    put_file("u/data.yaml", "train: images\nnames: [x]\nkpt_shape: [1, 3]\n");
    snprintf(text, sizeof text, "0 %.9f %.9f %.9f %.9f %.9f %.9f 1\n",
             (BRIGHT_X + BRIGHT_W / 2.0) / STORED_W, (BRIGHT_Y + BRIGHT_H / 2.0) / STORED_H,
             (double)BRIGHT_W / STORED_W, (double)BRIGHT_H / STORED_H, x, y);
    put_file("u/labels/a.txt", text);
    for (int k = 1; k <= 8; k++) {
        put_bright("u/images/a.png", k);
        convert_ok("yolo", "u", "d", NULL);
        struct record r = record_open("d", "train", 1, 0);
        assert_bright(r.e, &r.o);
        /* The keypoint is the corner of the rectangle that came first. */
        const struct pm_keypoint *p = &r.o.item[0].keypoints[0];
        struct pm_image8 im = image(r.e, "image/encoded", 3);
        const int row = (int)(p->y * (float)im.height), column = (int)(p->x * (float)im.width);
        assert_int_equal(im.pixels[3 * (row * im.width + column)], 255);
        const float *box = r.o.item[0].box;
        const float dy = fminf(p->y - box[0], box[2] - p->y) * (float)im.height;
        const float dx = fminf(p->x - box[1], box[3] - p->x) * (float)im.width;
        assert_true(fabsf(dy - 0.5f) < 1e-3f && fabsf(dx - 0.5f) < 1e-3f);
        const bool left = k == 1 || k == 4 || k == 5 || k == 8;
        const bool top = k == 1 || k == 2 || k == 5 || k == 6;
        assert_int_equal(p->x - box[1] < box[3] - p->x, left);
        assert_int_equal(p->y - box[0] < box[2] - p->y, top);
        assert_int_equal(p->visibility, 1);
        pm_image_free(&im);
        record_close(&r);
        pm_remove_tree(in_scratch("d"));
    }
    scratch_remove();
}

/* ---- darknet and folders ------------------------------------------------------------------- */

/* A list with one path of many folders: trying each part of it would need 10 GB. */
static void put_long_path(const char *name)
{
    struct pm_str s = { 0 };

    for (int i = 0; i < 100000; i++)
        pm_str_add(&s, "a/");
    pm_str_add(&s, "x.jpg\n");
    put_text(name, s.text);
    pm_str_free(&s);
}

static void darknet(void **state)
{
    (void)state;
    scratch_make();
    put_picture("k/obj/a.jpg", 1);
    put_picture("k/obj/b c.jpg", 1);
    put_file("k/obj/a.txt", "1 0.5 0.5 1 1\n");
    put_file("k/obj/b c.txt", "0 0.5 0.5 1 1\n1 0.5 0.5 1 1\n");
    put_text("k/obj.names", "cat\nbig dog\n\n");
    put_text("k/train.txt", "data/obj/a.jpg\n");
    put_text("k/valid.txt", "/home/me/darknet/data/obj/b c.jpg\n");
    put_text("k/obj.data", "classes=2\ntrain  = data/train.txt\nvalid=data/valid.txt\n"
                           "names = data/obj.names\nbackup = backup/\n");
    convert_ok("yolo", "k", "d", NULL);
    struct record r = record_open("d", "train", 1, 0);
    assert_object(&r.o, 0, "big dog", 2, 0, 0, 2, 3);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("d"), "validation", 1), 2);
    put_text("k/train.txt", "data/obj/a.jpg\n\ndata/obj/none.jpg\n");
    assert_fails(run_on("yolo", "k", "e", NULL), PM_EDATA, "train.txt:3", "data/obj/none.jpg");
    put_long_path("k/train.txt");
    assert_fails(run_on("yolo", "k", "e", NULL), PM_EDATA, "train.txt:1", "is not a picture");
    put_text("k/train.txt", "../../../obj/a.jpg\n"); /* stays inside the folder */
    convert_ok("yolo", "k", "e", NULL);
    put_text("k/obj.data", "train = train.txt\nnames = none.names\n");
    assert_fails(run_on("yolo", "k", "f", NULL), PM_EDATA, "obj.data: names = none.names");
    put_text("k/obj.data", "names = obj.names\n");
    assert_fails(run_on("yolo", "k", "f", NULL), PM_EDATA, "names no pictures");
    put_text("k/obj.names", "cat\n\ndog\n");
    assert_fails(run_on("yolo", "k", "f", NULL), PM_EDATA, "obj.names: class 2");
    scratch_remove();
}

static void folders(void **state)
{
    char name[64];

    (void)state;
    scratch_make();
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "f/images/%d.jpg", i);
        put_picture(name, 1);
        snprintf(name, sizeof name, "f/labels/%d.txt", i);
        put_file(name, "0 0.5 0.5 1 1\n");
    }
    put_text("f/classes.txt", "\xef\xbb\xbf" "cell\r\n"); /* as Notepad writes it */
    convert_ok("yolo", "f", "d", "validation=0.25");
    struct record r = record_open("d", "train", 3, 0);
    assert_object(&r.o, 0, "cell", 1, 0, 0, 2, 3);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 3), 3);
    assert_int_equal(boxes_of(in_scratch("d"), "validation", 1), 1);
    put_picture("g/valid/images/x.jpg", 1);
    put_picture("g/train/images/y.jpg", 1);
    put_file("g/train/labels/y.txt", "0 0.5 0.5 1 1\n");
    put_text("g/classes.txt", "cell\n");
    convert_ok("yolo", "g", "e", NULL);
    assert_int_equal(boxes_of(in_scratch("e"), "train", 1), 1);
    assert_int_equal(boxes_of(in_scratch("e"), "validation", 1), 0);
    assert_fails(run_on("yolo", "g/train", "h", NULL), PM_EDATA, "data.yaml", "data=FILE");
    scratch_remove();
}

static void refused(void **state)
{
    static const struct {
        const char *yaml, *labels, *wanted;
    } cases[] = {
        { "names: [x]\n", NULL, "data.yaml: names no pictures" },
        { "train: images/train\n", NULL, "data.yaml: has no names" },
        { "train: images/none\nnames: [x]\n", NULL, "data.yaml:1: \"images/none\" is not a path" },
        { "train: data.yaml\nnames: [x]\n", NULL, "data.yaml:1: \"data.yaml\" is neither" },
        { "train: ../../etc\nnames: [x]\n", NULL, "\"../../etc\" is not a path below" },
        { "train: images/train\nnames: [x]\nnc: 2\n", NULL, "nc is \"2\", but names has 1" },
        { "train: images/train\nnames: {0: x, 2: y}\n", NULL, "has 2 classes, but class 1" },
        { "train: images/train\nnames: {a: x}\n", NULL, "names: \"a\" is not a number" },
        { "train: images/train\nnames: [x, x]\n", NULL, "data.yaml: class 2 is named \"x\"" },
        { "train: images/train\nnames: [x]\nkpt_shape: [2, 4]\n", NULL, "data.yaml:3: kpt_shape" },
        { "train: images/train\nnames: [x]\nkpt_shape: [2]\n", NULL, "kpt_shape" },
        { "train: images/train\nnames: [x]\nkpt_shape: [2, 2]\nflip_idx: [0]\n", NULL,
          "data.yaml:4: flip_idx: has 1 numbers for 2 points" },
        { "train: images/train\nnames: [x]\nkpt_shape: [2, 2]\nflip_idx: [0, 2]\n", NULL,
          "flip_idx: \"2\" is entry 2" },
        { "train: images/train\nnames: [x]\nkpt_shape: [3, 2]\nflip_idx: [1, 2, 0]\n", NULL,
          "exchange keypoints in pairs" },
        { "train: images/train\nnames: [x]\nflip_idx: [0]\n", NULL, "flip_idx" },
        { NULL, "0 0.5 0.5 1\n", "a.txt:1: has 4 numbers" },
        { NULL, "0 0.5 0.5 1 1 1\n", "a.txt:1: has 6 numbers" },
        { NULL, "\n1 0.5 0.5 1 1\n", "a.txt:2: class 1 is not one of 0..0" },
        { NULL, "-1 0.5 0.5 1 1\n", "class -1" },
        { NULL, "0.5 0.5 0.5 1 1\n", "class 0.5" },
        { NULL, "0 320 200 10 10\n", "a.txt:1: number 2 is 320; write shares" },
        { NULL, "0 nan 0.5 1 1\n", "a.txt:1: \"nan\" is not a number" },
        { NULL, "cat 0.5 0.5 1 1\n", "\"cat\" is not a number" },
    };

    (void)state;
    scratch_make();
    make_pictures();
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        put_text("u/data.yaml",
                 cases[i].yaml ? cases[i].yaml : "train: images/train\nnames: [x]\n");
        put_file("u/labels/train/a.txt", cases[i].labels ? cases[i].labels : "");
        assert_fails(run_on("yolo", "u", "d", NULL), PM_EDATA, cases[i].wanted);
    }
    put_text("u/data.yaml", "train: images/train\nnames: [x]\nkpt_shape: [1, 2]\n");
    put_file("u/labels/train/a.txt", "0 0.5 0.5 1 1 0.5 1e300\n");
    assert_fails(run_on("yolo", "u", "d", NULL), PM_EDATA, "a.txt:1: keypoint 1 is at 0.5 1e+300");
    assert_fails(run_on("yolo", "u", "d", "label_map=x.pbtxt"), PM_ECONFIG, "label_map");
    scratch_remove();
}

static void real_layouts(void **state)
{
    static const struct {
        const char *name;
        size_t boxes;
    } cases[] = {
        { "yolo", 2 },
        { "yolov8_detection", 2 },
        { "yolov8_detection_with_list_of_imgs", 2 },
        { "yolov8_detection_with_list_of_names", 2 },
        { "yolov8_detection_with_subset_txt", 2 },
        { "yolov8_oriented_boxes", 2 },
        { "yolov8_pose", 1 },
        { "yolov8_pose_two_values_per_point", 1 },
        { "yolov8_segmentation", 2 },
    };
    const char *root = shared_data("layouts/yolo_dataset");
    char src[1200];

    (void)state;
    scratch_make();
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        snprintf(src, sizeof src, "%s/%s", root, cases[i].name);
        if (pm_dataset_convert("yolo", src, in_scratch("d"), NULL) < 0)
            fail_msg("%s", pm_error_text());
        assert_int_equal(boxes_of(in_scratch("d"), "train", 1), cases[i].boxes);
        pm_remove_tree(in_scratch("d"));
    }
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml),    cmocka_unit_test(ultralytics), cmocka_unit_test(shapes),
        cmocka_unit_test(turned),  cmocka_unit_test(darknet),     cmocka_unit_test(folders),
        cmocka_unit_test(refused), cmocka_unit_test(masks),       cmocka_unit_test(real_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
