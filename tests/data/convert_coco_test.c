/* The converter coco: boxes, polygons, runs, crowds and keypoints become records; pictures that
 * EXIF rotates; damaged files. */
#include "convert_common.h"
#include "exif_common.h"

#include <pumice/objects.h>

#define IMAGES "\"images\":[{\"id\":7,\"file_name\":\"a.png\",\"height\":5,\"width\":6,\"x\":{}}]"
#define KINDS "\"categories\":[{\"id\":90,\"name\":\"dog\"},{\"id\":3,\"name\":\"cat\"}]"
#define BOX "{\"image_id\":7,\"category_id\":3,\"bbox\":[1,1,2,3],\"area\":5"
#define FILE_OF(annotations) "{" IMAGES ",\"annotations\":[" annotations "]," KINDS "}"

static char *folder(void)
{
    scratch_make();
    assert_int_equal(pm_make_folders(in_scratch("s/train2017")), PM_OK);
    assert_int_equal(pm_make_folders(in_scratch("s/annotations")), PM_OK);
    put_png(in_scratch("s/train2017/a.png"), 9, 5);
    return scratch;
}

static void put_json(const char *text)
{
    put_text("s/annotations/instances_train2017.json", text);
}

static int run(const char *options)
{
    pm_remove_tree(in_scratch("d"));
    return pm_dataset_convert("coco", in_scratch("s"), in_scratch("d"), options);
}

static void run_ok(const char *options)
{
    if (run(options) < 0)
        fail_msg("%s", pm_error_text());
}

/* The objects of record i; the caller frees both. */
static struct pm_example *objects(const char *split, size_t count, size_t i, struct pm_objects *o)
{
    struct pm_dataset *d = opened(in_scratch("d"), split, count);
    struct pm_example *e = example(d, i);

    if (pm_objects_parse(e, true, "record", o) < 0)
        fail_msg("%s", pm_error_text());
    pm_dataset_close(&d);
    return e;
}

static void assert_pixels(const struct pm_object *o, const struct pm_objects *all, float y0,
                          float x0, float y1, float x1)
{
    const float want[4] = { y0, x0, y1, x1 };

    for (int k = 0; k < 4; k++) {
        const float side = (float)(k % 2 ? all->width : all->height);
        if (o->box[k] * side - want[k] > 1e-5F || want[k] - o->box[k] * side > 1e-5F)
            fail_msg("side %d is %g pixels, not %g", k, (double)(o->box[k] * side),
                     (double)want[k]);
    }
}

static void assert_mask(const struct pm_objects *o, size_t i, const char *want)
{
    uint8_t out[64];

    assert_int_equal(pm_objects_mask(o, i, "record", out), PM_OK);
    for (int k = 0; k < o->height * o->width; k++)
        if (out[k] != (want[k] == '#'))
            fail_msg("pixel %d of mask %zu is %d", k, i, out[k]);
}

/* ---- written records ------------------------------------------------------------------------ */

static void shapes(void **state)
{
    struct pm_objects o;

    (void)state;
    folder();
    put_json(FILE_OF(
        BOX ",\"id\":1,\"iscrowd\":0,\"segmentation\":[[1,1,3,1,3,4,1,4],[4,0,6,0,6,1,4,1]]}," BOX
            ",\"id\":2,\"iscrowd\":1,\"segmentation\":{\"counts\":[6,3,21],\"size\":[5,6]}}," BOX
            ",\"id\":3,\"segmentation\":{\"size\":[5,6],\"counts\":\"63e0\"}}," BOX
            ",\"id\":4,\"segmentation\":[]}"));
    for (int rle = 0; rle < 2; rle++) {
        run_ok(rle ? "masks=rle" : "masks=true");
        struct pm_example *e = objects("train", 1, 0, &o);
        assert_true(o.count == 4 && o.height == 5 && o.width == 6);
        assert_int_equal(o.has, PM_HAS_TEXT | PM_HAS_LABEL | PM_HAS_AREA | PM_HAS_CROWD |
                                    PM_HAS_MASK | (rle ? PM_HAS_RLE : 0));
        for (int i = 0; i < 4; i++) {
            assert_pixels(&o.item[i], &o, 1, 1, 4, 3);
            assert_string_equal(o.item[i].text, "cat");
            assert_true(o.item[i].label == 3 && o.item[i].area == 5);
            assert_int_equal(o.item[i].is_crowd, i == 1);
        }
        assert_mask(&o, 0, "....##.##....##....##.........");
        assert_mask(&o, 1, ".......#.....#.....#..........");
        assert_mask(&o, 2, ".......#.....#.....#..........");
        assert_mask(&o, 3, "..............................");
        assert_text(e, "image/format", "png");
        assert_text(e, "image/filename", "a.png");
        assert_text(e, "image/source_id", "7");
        assert_int_equal(integer(e, "image/height"), 5);
        pm_objects_free(&o);
        pm_example_destroy(&e);
    }
    for (int given = 0; given < 2; given++) { /* masks are not written by default */
        run_ok(given ? "masks=false" : NULL);
        struct pm_example *e = objects("train", 1, 0, &o);
        assert_int_equal(o.has, PM_HAS_TEXT | PM_HAS_LABEL | PM_HAS_AREA | PM_HAS_CROWD);
        pm_objects_free(&o);
        pm_example_destroy(&e);
    }
    scratch_remove();
}

/* Keypoints of the other file are matched by ids. Objects without keypoints have no labelled
 * ones. */
static void keypoints(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_label_map map;
    struct pm_objects o;

    (void)state;
    folder();
    put_json(FILE_OF(BOX ",\"id\":5}," BOX ",\"id\":6}"));
    put_text(
        "s/annotations/person_keypoints_train2017.json",
        "{\"categories\":[{\"id\":3,\"name\":\"cat\",\"keypoints\":[\"nose\",\"tail\"]}]," IMAGES
        ",\"annotations\":[" BOX ",\"id\":99,\"keypoints\":[1,1,1,1,1,1]}," BOX
        ",\"id\":6,\"keypoints\":[3,1,2,0,0,0],\"num_keypoints\":1}]}");
    run_ok(NULL);
    struct pm_example *e = objects("train", 1, 0, &o);
    assert_true(o.count == 2 && o.points == 2);
    assert_int_equal(o.item[0].keypoints[0].visibility, 0);
    assert_int_equal(o.item[1].keypoints[0].visibility, 2);
    assert_true(o.item[1].keypoints[0].x == 0.5F && o.item[1].keypoints[0].y == 0.2F);
    assert_int_equal(o.item[1].keypoints[1].visibility, 0);
    assert_int_equal(pm_label_map_read(a, in_scratch("d/label_map.pbtxt"), &map), PM_OK);
    assert_string_equal(map.item[1].points[1], "tail");
    pm_objects_free(&o);
    pm_example_destroy(&e);
    /* A file of keypoints without an instances file. */
    remove(in_scratch("s/annotations/instances_train2017.json"));
    run_ok(NULL);
    e = objects("train", 1, 0, &o);
    assert_true(o.count == 2 && o.item[0].keypoints[1].visibility == 1);
    pm_objects_free(&o);
    pm_example_destroy(&e);
    pm_arena_destroy(&a);
    scratch_remove();
}

static size_t kept(const char *options)
{
    struct pm_objects o;

    run_ok(options);
    struct pm_example *e = objects("train", 1, 0, &o);
    const size_t count = o.count;
    pm_objects_free(&o);
    pm_example_destroy(&e);
    return count;
}

#define BOX_OF(box) "{\"image_id\":7,\"category_id\":3,\"bbox\":[" box "]}"

static void filter(void **state)
{
    struct pm_objects o;

    (void)state;
    folder();
    put_json(FILE_OF(BOX_OF("0,0,6,5") "," BOX_OF("1,1,0,3") "," BOX_OF("1,1,3,-1") "," BOX_OF(
        "4,3,4,1") "," BOX_OF("-2,0,3,5") "," BOX_OF("7,0,3,5")));
    assert_int_equal(kept(NULL), 3);
    assert_int_equal(kept("min_side=1"), 3);
    assert_int_equal(kept("min_side=1.5"), 1);
    assert_int_equal(kept("strict=true"), 2); /* -2 is not checked there */
    run_ok(NULL);
    struct pm_example *e = objects("train", 1, 0, &o);
    assert_pixels(&o.item[1], &o, 3, 4, 4, 6);
    assert_pixels(&o.item[2], &o, 0, 0, 5, 1);
    assert_true(o.item[1].area == 4); /* without an area: that of the box */
    pm_objects_free(&o);
    pm_example_destroy(&e);
    assert_fails(run("bad=error"), PM_EDATA, "a.png: object 2 (cat): the box ymin 1, xmin 1",
                 "bad=skip");
    scratch_remove();
}

static void printed(void **state)
{
    (void)state;
    folder();
    put_json(FILE_OF(BOX ",\"iscrowd\":1}," BOX_OF("1,1,0,3") "," BOX_OF(
        "4,3,4,1") ",{\"image_id\":8,\"category_id\":3,\"bbox\":[0,0,1,1]}"));
    const char *text = output_of("dataset convert coco s d masks=true", 0);
    assert_says(text, "train: 1 picture (0 without boxes), 2 boxes (1 crowd), 1 clipped at the "
                      "border, 1 dropped without area");
    assert_says(text, "train: 1 of 2 classes have boxes: cat 2");
    assert_says(text, "1 annotations belong to images that it does not list");
    assert_says(text, "3 boxes have no segmentation; their masks are empty");
    assert_says(text, "d: train 1; 2 classes");
    text = output_of("dataset inspect d", 0);
    assert_says(text, "d: 2 classes of boxes (dog, cat)");
    assert_says(text, "image/object/class/text              bytes       2  \"cat\", \"cat\"");
    scratch_remove();
}

/* Polygons of two points, without an area, that cross themselves, and outside of the picture. */
static void odd_polygons(void **state)
{
    (void)state;
    folder();
    put_json(FILE_OF(BOX ",\"id\":1,\"segmentation\":[[1,1,3,4],[1,1,4,1,4,3,1,3]]},"
                     BOX ",\"id\":2,\"segmentation\":[[1,1,2,2,3,3]]},"
                     BOX ",\"id\":3,\"segmentation\":[[1,1,4,3,4,1,1,3]]},"
                     BOX ",\"id\":4,\"segmentation\":[[9,1,12,1,12,3]]}"));
    const char *text = output_of("dataset convert coco s d masks=rle", 0);
    assert_says(text, "1 polygon of fewer than three corners is left out");
    assert_says(text, "annotation 2: the polygon has no area");
    assert_says(text, "annotation 3: two sides of the polygon cross");
    assert_says(text, "annotation 4: the polygon is outside of its picture");
    assert_null(strstr(text, "annotation 1:"));
    text = output_of("dataset inspect d --check", 0);
    assert_says(text, "masks have no pixel; their boxes are kept");
    assert_says(output_of("dataset convert coco s e masks=png", 2), "is not one of false|true|rle");
    scratch_remove();
}

/* ---- classes -------------------------------------------------------------------------------- */

static void classes(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_label_map map;
    struct pm_objects o;

    (void)state;
    folder();
    put_json(FILE_OF(BOX "}"));
    run_ok(NULL);
    assert_int_equal(pm_label_map_of_folder(a, in_scratch("d"), &map), PM_OK);
    assert_true(map.count == 2 && map.item[0].id == 90 && map.item[1].id == 3);
    put_text("map", "item { name: '/m/1' id: 12 display_name: 'cat' } item { name: 'dog' id: 4 }");
    char options[1100];
    snprintf(options, sizeof options, "label_map=%s", in_scratch("map"));
    run_ok(options);
    struct pm_example *e = objects("train", 1, 0, &o);
    assert_int_equal(o.item[0].label, 12);
    assert_string_equal(o.item[0].text, "cat");
    assert_int_equal(pm_label_map_of_folder(a, in_scratch("d"), &map), PM_OK);
    assert_string_equal(map.item[0].name, "/m/1");
    assert_says(output_of("dataset inspect d", 0), "d: 2 classes of boxes (cat, dog)");
    pm_objects_free(&o);
    pm_example_destroy(&e);
    put_text("map", "item { name: 'cats' id: 12 } item { name: 'dog' id: 4 }");
    assert_fails(run(options), PM_EDATA, "map: has no class \"cat\"", "did you mean \"cats\"?");
    /* Ids from 0 move up by one. */
    put_json("{" IMAGES ",\"annotations\":[" BOX_OF(
        "0,0,1,1") "],\"categories\":["
                   "{\"id\":3,\"name\":\"cat\"},{\"id\":0,\"name\":\"dog\"}]}");
    run_ok(NULL);
    e = objects("train", 1, 0, &o);
    assert_int_equal(o.item[0].label, 4);
    pm_objects_free(&o);
    pm_example_destroy(&e);
    pm_arena_destroy(&a);
    scratch_remove();
}

/* ---- EXIF ----------------------------------------------------------------------------------- */

enum { HEIGHT = 16, WIDTH = 24 }; /* as stored */

/* Writes a picture whose left third, as stored, is bright. */
static void put_turned(int orientation)
{
    struct pm_image8 im = { HEIGHT, WIDTH, 3, pm_malloc(HEIGHT * WIDTH * 3) };
    uint8_t body[EXIF_SIZE], *png = NULL;
    size_t size = 0;

    for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
        im.pixels[i] = i / 3 % WIDTH < 8 ? 200 : 40;
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    exif_body(true, orientation, body);
    uint8_t *more = exif_png(png, size, body, EXIF_SIZE);
    assert_int_equal(pm_file_write(in_scratch("s/train2017/a.png"), more, size + EXIF_PNG_MORE),
                     PM_OK);
    pm_free(more);
    pm_free(png);
    pm_image_free(&im);
}

/* The mask and the box of object 0 must cover the bright pixels; the box of object 1 must
 * surround the keypoint. */
static void assert_turned(int orientation)
{
    struct pm_objects o;
    struct pm_example *e = objects("train", 1, 0, &o);
    struct pm_image8 im = image(e, "image/encoded", 1);
    uint8_t mask[HEIGHT * WIDTH];
    const struct pm_object *one = &o.item[0], *two = &o.item[1];

    assert_true(o.height == im.height && o.width == im.width && o.count == 2);
    assert_int_equal(im.height, orientation < 5 ? HEIGHT : WIDTH);
    assert_int_equal(pm_objects_mask(&o, 0, "record", mask), PM_OK);
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        const float y = ((float)(i / im.width) + 0.5F) / (float)im.height;
        const float x = ((float)(i % im.width) + 0.5F) / (float)im.width;
        const bool inside =
            y > one->box[0] && y < one->box[2] && x > one->box[1] && x < one->box[3];

        if (mask[i] != (im.pixels[i] > 100) || mask[i] != inside)
            fail_msg("orientation %d, pixel %d: %d, mask %d, box %d", orientation, i, im.pixels[i],
                     mask[i], inside);
    }
    const struct pm_keypoint *p = &two->keypoints[0];
    const float dy = p->y * 2 - two->box[0] - two->box[2];
    const float dx = p->x * 2 - two->box[1] - two->box[3];
    assert_true(dy * dy + dx * dx < 1e-8F && p->visibility == 1);
    pm_image_free(&im);
    pm_objects_free(&o);
    pm_example_destroy(&e);
}

static void orientation(void **state)
{
    static const char json[] =
        "{\"images\":[{\"id\":7,\"file_name\":\"a.png\",\"height\":%d,\"width\":%d}],"
        "\"annotations\":[{\"image_id\":7,\"category_id\":3,\"bbox\":[0,0,8,16],"
        "\"segmentation\":[[0,0,8,0,8,16,0,16]]},"
        "{\"image_id\":7,\"category_id\":3,\"bbox\":[2,3,1,1],\"keypoints\":[2.5,3.5,1]}]," KINDS
        "}";
    char text[sizeof json + 32];

    (void)state;
    folder();
    for (int k = 1; k <= 8; k++) {
        put_turned(k);
        snprintf(text, sizeof text, json, HEIGHT, WIDTH);
        put_json(text);
        run_ok("masks=true");
        assert_turned(k);
        run_ok("masks=rle");
        assert_turned(k);
        if (k >= 5) /* annotations of the upright picture */
            snprintf(text, sizeof text, json, WIDTH, HEIGHT);
        put_json(text);
        run_ok(k < 5 ? "exif=shown" : NULL);
        struct pm_objects o;
        struct pm_example *e = objects("train", 1, 0, &o);
        assert_pixels(&o.item[0], &o, 0, 0, 16, 8);
        pm_objects_free(&o);
        pm_example_destroy(&e);
    }
    assert_fails(run("bad=error exif=stored"), PM_EDATA, "a.png: the picture has 16 x 24 pixels",
                 "before EXIF turns it, its annotations are for 24 x 16");
    put_turned(3);
    assert_fails(run("bad=error"), PM_EDATA, "a.png: the picture has 16 x 24 pixels",
                 "its annotations are for 24 x 16");
    scratch_remove();
}

/* ---- errors --------------------------------------------------------------------------------- */

static void broken(void **state)
{
    static const struct {
        const char *text, *first, *second;
    } bad[] = {
        { "{" IMAGES ",\"annotations\":[" BOX, "json:1: the file ends here; expected", "" },
        { "{" IMAGES "," KINDS, "json:1: the file ends here; expected", "" },
        { "[]", "expected an object", "" },
        { "{" KINDS "}", "has 0 images and 2 categories", "is this a file of instances?" },
        { FILE_OF("{\"image_id\":7,\"bbox\":[1,1,2,3]}"), "an annotation with image_id",
          "is this a file of instances?" },
        { FILE_OF("{\"image_id\":7,\"category_id\":3,\"bbox\":[1,1,2]}"), "a bbox of four numbers",
          "" },
        { FILE_OF("{\"image_id\":7,\"category_id\":3,\"bbox\":[1,1,2,NaN]}"), "expected a number",
          "" },
        { FILE_OF("{\"image_id\":7,\"category_id\":3,\"bbox\":[1,1,2,1e999]}"), "expected a number",
          "" },
        { FILE_OF("{\"image_id\":7,\"category_id\":4,\"bbox\":[1,1,2,3],\"id\":12}"),
          "annotation 12 (place 1 in the list) has the category id 4", "2 categories: add it" },
        { FILE_OF(BOX ",\"segmentation\":[[1,2,3,4,5]]}"), "a polygon of pairs x, y, not 5", "" },
        { FILE_OF(BOX ",\"segmentation\":[[1,2,3,4,5,1e9]]}"), "a coordinate in pixels, not 1e+09",
          "" },
        { FILE_OF(BOX ",\"segmentation\":[1,2,3]}"), "expected a list", "" },
        { FILE_OF(BOX ",\"segmentation\":{\"counts\":[1]}}"), "a mask with counts and size", "" },
        { FILE_OF(BOX ",\"segmentation\":{\"size\":[1,2,3],\"counts\":[1]}}"),
          "a size of height and width", "" },
        { FILE_OF(BOX ",\"segmentation\":{\"size\":[5,6],\"counts\":[-1]}}"),
          "a whole number of 0..268435456, not -1", "" },
        { FILE_OF(BOX ",\"id\":4,\"segmentation\":{\"size\":[5,6],\"counts\":[20,9]}}"),
          "a.png: annotation 4: its runs add up to 29 pixels", "5 x 6 has 30" },
        { FILE_OF(BOX ",\"id\":4,\"segmentation\":{\"size\":[6,5],\"counts\":[30]}}"),
          "annotation 4: the mask's size is [6, 5], the picture's 5 x 6", "another picture" },
        { FILE_OF(BOX ",\"id\":4,\"segmentation\":{\"size\":[5,6],\"counts\":\"~\"}}"),
          "annotation 4: the mask's text has an unknown character", "" },
        { FILE_OF(BOX ",\"keypoints\":[1,2]}"), "keypoints x, y, visibility, not 2 numbers", "" },
        { FILE_OF(BOX ",\"keypoints\":[1,2,3]}"), "visibility of 0, 1 or 2, not 3", "" },
        { FILE_OF(BOX ",\"keypoints\":[1e300,2,2]}"), "a number of pixels, not 1e+300", "" },
        { FILE_OF(BOX ",\"area\":1e39}"), "a number of pixels, not 1e+39", "" },
        { FILE_OF("{\"image_id\":8,\"category_id\":3,\"bbox\":[1,1,2,3],\"segmentation\":{"
                  "\"size\":[5,6],\"counts\":\"00000000\"}}," BOX ",\"id\":4,\"segmentation\":{"
                  "\"size\":[5,6],\"counts\":\"0\",\"counts\":[]}}"),
          "a.png: annotation 4: its runs add up to 0 pixels", "5 x 6 has 30" },
        { FILE_OF(BOX ",\"iscrowd\":2}"), "a whole number of 0..1, not 2", "" },
        { "{" IMAGES ",\"categories\":[{\"id\":1,\"name\":\"a\\nb\"}]}", "a name of one line",
          "\"a\\x0Ab\"" },
        { "{" IMAGES ",\"categories\":[{\"id\":1}]}", "a category with id and name", "" },
        { "{" IMAGES ",\"categories\":[{\"id\":1,\"name\":\"a\"},{\"id\":1,\"name\":\"b\"}]}",
          "a unique id for the category \"b\": 1 is \"a\"", "" },
        { "{" IMAGES ",\"categories\":[{\"id\":1,\"name\":\"a\"},{\"id\":2,\"name\":\"a\"}]}",
          "a second item has the name \"a\"", "unique" },
        { "{" IMAGES ",\"categories\":[{\"id\":1048576,\"name\":\"a\"}]}", "0..1048575", "" },
        { "{\"images\":[{\"id\":7,\"file_name\":\"../a.png\",\"height\":5,\"width\":6}]," KINDS "}",
          "within the folder, not \"../a.png\"", "" },
        { "{\"images\":[{\"id\":7,\"file_name\":\"b.png\",\"height\":5,\"width\":6}]," KINDS "}",
          "train2017/b.png", "" },
        { "{\"images\":[{\"id\":7,\"file_name\":\"a.png\",\"height\":5,\"width\":7}]," KINDS "}",
          "a.png: the picture has 5 x 6 pixels", "its annotations are for 5 x 7" },
        { "{\"images\":[{\"id\":7,\"file_name\":\"a.png\",\"height\":5,\"width\":6},"
          "{\"id\":7,\"file_name\":\"a.png\",\"height\":5,\"width\":6}]," KINDS "}",
          "two images have the id 7", "unique" },
    };

    (void)state;
    folder();
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        put_json(bad[i].text);
        if (run("bad=error masks=true") != PM_EDATA)
            fail_msg("not refused: %s", bad[i].text);
        assert_fails(PM_EDATA, PM_EDATA, bad[i].first, bad[i].second);
    }
    assert_only(1); /* no data folder is left */
    scratch_remove();
}

/* A million levels or digits need little stack and memory. */
static void large(void **state)
{
    enum { DEEP = 1000000 };
    struct pm_str text = { 0 };

    (void)state;
    folder();
    pm_str_add(&text, "{" IMAGES "," KINDS ",\"annotations\":[" BOX ",\"more\":");
    for (int i = 0; i < DEEP; i++)
        pm_str_add(&text, "[");
    put_json(text.text);
    assert_fails(run(NULL), PM_EDATA, "the file ends here; expected a value");
    for (int i = 0; i < DEEP; i++)
        pm_str_add(&text, "]");
    pm_str_add(&text, "}]}");
    put_json(text.text);
    run_ok(NULL);
    text.length = 0;
    pm_str_add(&text, "{" IMAGES "," KINDS ",\"annotations\":[{\"image_id\":");
    for (int i = 0; i < DEEP; i++)
        pm_str_add(&text, "7");
    put_json(text.text);
    assert_fails(run(NULL), PM_EDATA, "a whole number of 0..9007199254740992, not 777");
    pm_str_free(&text);
    scratch_remove();
}

static void splits(void **state)
{
    (void)state;
    folder();
    put_json(FILE_OF(BOX ",\"id\":5}"));
    put_text("s/annotations/instances_val2017.json",
             "{" IMAGES ",\"categories\":[{\"id\":3,\"name\":\"mouse\"}]}");
    assert_fails(run(NULL), PM_EDATA, "val2017: no such folder",
                 "annotations=FILE and images=FOLDER");
    assert_int_equal(pm_make_folders(in_scratch("s/images/val2017")), PM_OK);
    put_png(in_scratch("s/images/val2017/a.png"), 9, 5);
    assert_fails(run(NULL), PM_EDATA, "instances_val2017.json: the category 3 is \"mouse\"",
                 "instances_train2017.json it is \"cat\"");
    put_text("s/annotations/instances_val2017.json",
             "{" IMAGES ",\"categories\":[{\"id\":4,\"name\":\"mouse\"}]}");
    run_ok(NULL); /* classes of one split only; no annotations */
    struct pm_dataset *d = opened(in_scratch("d"), "val", 1);
    pm_dataset_close(&d);
    put_text("s/annotations/person_keypoints_train2017.json",
             FILE_OF(BOX ",\"id\":5}," BOX ",\"id\":5}"));
    assert_fails(run(NULL), PM_EDATA,
                 "person_keypoints_train2017.json: two annotations have the "
                 "id 5",
                 "unique");
    assert_fails(run("images=train2017"), PM_ECONFIG, "annotations is not given");
    run_ok("images=train2017 annotations=annotations/instances_train2017.json split=test");
    d = opened(in_scratch("d"), "test", 1);
    pm_dataset_close(&d);
    assert_fails(pm_dataset_convert("coco", in_scratch("s/images"), in_scratch("f"), NULL),
                 PM_EDATA, "has neither annotations/instances", "give annotations and images");
    scratch_remove();
}

/* Roboflow's layout, whose first category has the id 0 and no boxes. */
static void beside(void **state)
{
    static const char json[] = "{" IMAGES ",\"annotations\":[" BOX_OF("0,0,1,1") "],"
                               "\"categories\":[{\"id\":0,\"name\":\"pets\"},"
                               "{\"id\":3,\"name\":\"cat\"}]}";
    struct pm_objects o;

    (void)state;
    scratch_make();
    for (int k = 0; k < 2; k++) {
        assert_int_equal(pm_make_folders(in_scratch(k ? "s/valid" : "s/train")), PM_OK);
        put_png(in_scratch(k ? "s/valid/a.png" : "s/train/a.png"), 9, 5);
        put_text(k ? "s/valid/_annotations.coco.json" : "s/train/_annotations.coco.json", json);
    }
    run_ok(NULL);
    struct pm_example *e = objects("val", 1, 0, &o);
    assert_true(o.count == 1 && o.item[0].label == 4);
    pm_objects_free(&o);
    pm_example_destroy(&e);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(keypoints),
        cmocka_unit_test(filter),
        cmocka_unit_test(printed), cmocka_unit_test(odd_polygons),
        cmocka_unit_test(classes),
        cmocka_unit_test(orientation),
        cmocka_unit_test(broken),
        cmocka_unit_test(large),
        cmocka_unit_test(splits),
        cmocka_unit_test(beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
