/* The converter dota: label files, tiles, scale, splits, and mistakes. */
#include "base/shared_data.h"
#include "rotated_common.h"

/* Photos of 100 x 140 pixels. */
enum { HIGH = 100, WIDE = 140 };

static void put_labels(const char *text)
{
    put_file("s/labelTxt/a.txt", text);
}

static void make_photo(void)
{
    put_blank("s/images/a.png", HIGH, WIDE);
}

static void whole(void **state)
{
    (void)state;
    scratch_make();
    make_photo();
    /* An upright box; one of 30 x 10 pixels turned by 90 degrees; one turned by 45, whose corners
     * begin elsewhere and whose upper half is outside. */
    put_labels("imagesource:GoogleEarth\r\ngsd:0.125\r\n"
               "10.0 20.0 40.0 20.0 40.0 30.0 10.0 30.0 plane 0\r\n"
               "60 10 60 40 50 40 50 10 small-vehicle 1\n"
               "100 -20 120 0 100 20 80 0 plane 2\n"
               "\n"
               "10 20 40 20 40 30 10 30 ship\n");
    convert_ok("dota", "s", "d", "validation=0");
    struct record r = record_open("d", "train", 1, 0);
    assert_int_equal(r.o.count, 4);
    assert_string_equal(r.o.sensor, "GoogleEarth");
    assert_true(r.o.gsd == 0.125F);
    assert_rotated(&r.o, 0, 25, 25, 10, 30, 0);
    assert_rotated(&r.o, 1, 25, 55, 10, 30, 90);
    const struct pm_rectangle square = rectangle(&r.o, 2);
    assert_true(fabs(square.h - square.w) < 1e-4 && fabs(fabs(square.angle) - 0.78539816) < 1e-5);
    assert_true(fabs(square.cy) < 1e-4 && fabs(square.cx - 100) < 1e-4);
    assert_object(&r.o, 2, "plane", 1, 0, 80, 20, 120); /* the upright box is clipped */
    assert_true(!r.o.item[0].difficult && r.o.item[1].difficult && r.o.item[2].difficult &&
                !r.o.item[3].difficult);
    assert_string_equal(r.o.item[1].text, "small-vehicle");
    assert_string_equal(r.o.item[3].text, "ship");
    record_close(&r);
    put_labels("imagesource:\ngsd:null\n"); /* no objects, unknown ground distance */
    put_blank("s/images/b.png", 20, 30);
    put_file("s/labelTxt/b.txt", "1 1 5 1 5 5 1 5 plane 0");
    convert_ok("dota", "s", "e", "validation=0 num_shards=1");
    r = record_open("e", "train", 2, 0);
    const struct pm_objects none = r.o;
    assert_true(!none.sensor && none.gsd == 0);
    record_close(&r);
    assert_int_equal(boxes_of(in_scratch("e"), "train", 2), 1);
    scratch_remove();
}

static void refused(void **state)
{
    static const struct {
        const char *labels, *first, *second;
    } cases[] = {
        { "1 1 5 1 5 5 1 plane 0\n", "s/labelTxt/a.txt:1: number 8 is \"plane\"", "x4 y4" },
        { "1 1 5 1 5 5 1 5\n", "a.txt:1: has 8 words", "class difficult" },
        { "1 1 5 1 5 5 1 5 0 3 plane 0\n", "a.txt:1: has five points", "remove a point" },
        { "imagesource:x\n1 1 5 1 5 5 1 5 3 3 plane\n", "a.txt:2: has five points",
          "four corners" },
        { "1 1 5 1 5 5 1 5 large vehicle 0\n", "a.txt:1: has 11 words", "x4 y4" },
        { "1 1 5 1 5 5 1 5 plane 3\n", "a.txt:1: difficult is \"3\"", "write 0, 1 or 2" },
        { "1 1 5 1 5 5 1 5 plane 0\n1 nan 5 1 5 5 1 5 plane 0\n", "a.txt:2: number 2 is \"nan\"",
          "pixels" },
        { "1 1 5 1 5 5 1 1e9 plane 0\n", "a.txt:1: number 8 is \"1e9\"", "pixels" },
        { "1 1 5 1 5 5 1 5 plane 0\nimagesource:x\n", "a.txt:2: has 1 words", "" },
        { "201 201 205 201 205 205 201 205 plane 0\n", "1 of 1 boxes are outside of", "set scale" },
        { "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", "a.txt:1: has more than 16 words", "" },
        { "", "none of the 1 pictures has an object", "label_map" },
    };

    (void)state;
    scratch_make();
    make_photo();
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        for (int tiles = 0; tiles < 2; tiles++) {
            if (tiles && i + 1 == PM_COUNT(cases))
                continue; /* then no tile is left, which has another message */
            put_labels(cases[i].labels);
            assert_fails(run_on("dota", "s", "e",
                                tiles ? "size=64 overlap=8 validation=0" : "validation=0"),
                         PM_EDATA, cases[i].first, cases[i].second);
        }
    put_labels("1 1 5 1 5 5 1 5 plane 0\n");
    assert_fails(run_on("dota", "s", "e", "size=64 overlap=64"), PM_ECONFIG,
                 "overlap: 64 is not below size, 64");
    assert_fails(run_on("dota", "s", "e", "size=2 overlap=1"), PM_ECONFIG, "size: 2 is below 16");
    scratch_remove();
}

/* Boxes without an area, corners that are no rectangle, files without a partner. */
static void odd_files(void **state)
{
    (void)state;
    scratch_make();
    make_photo();
    put_labels("10 10 10 10 10 10 10 10 plane 0\n10 10 50 10 40 30 20 30 plane 0\n"
               "60 10 100 10 60 10 100 10 plane 0\n");
    assert_int_equal(warned("dota", "s", "validation=0", "dropped 2 boxes without an area"), 1);
    assert_int_equal(warned("dota", "s", "validation=0",
                            "s/labelTxt/a.txt:2: the corners are 25.0 % off a rectangle"), 1);
    assert_fails(run_on("dota", "s", "e", "validation=0 bad=error"), PM_EDATA, "object 1",
                 "has no area");
    put_file("s/labelTxt/b.txt", "");
    put_file("s/labelTxt/c.txt", "");
    assert_int_equal(warned("dota", "s", "validation=0",
                            "2 label files have no picture in "), 1);
    assert_int_equal(warned("dota", "s", "validation=0", "the first is b.txt: add the pictures"),
                     1);
    put_blank("s/images/d.png", 20, 20);
    assert_fails(run_on("dota", "s", "e", NULL), PM_EDATA, "d.png has no annotations",
                 "labelTxt/d.txt does not exist");
    convert_ok("dota", "s", "e", "unannotated=empty validation=0");
    assert_int_equal(boxes_of(in_scratch("e"), "train", 2), 1);
    assert_fails(run_on("dota", "s/labelTxt", "f", NULL), PM_EDATA, "has no pictures");
    scratch_remove();
}

/* ---- tiles --------------------------------------------------------------------------------- */

/* Tiles of 64 pixels with an overlap of 16: rows from 0, 36; columns from 0, 48, 76. */
static void tiles(void **state)
{
    static const char *const names[] = { "a__64__0___0.png", "a__64__48___0.png",
                                         "a__64__76___0.png", "a__64__0___36.png",
                                         "a__64__48___36.png", "a__64__76___36.png" };
    size_t found = 0, middle = 0;

    (void)state;
    scratch_make();
    make_photo();
    put_labels("imagesource:K3\ngsd:0.5\n"
               "50 44 60 44 60 50 50 50 in-four 0\n"    /* of tiles 0, 1, 3 and 4 */
               "130 90 138 90 138 98 130 98 corner 1\n" /* in the last tile only */
               "40 2 80 2 80 6 40 6 cut 0\n"            /* 0.6 of it is in tile 0, 0.8 in tile 1 */
               "0 60 140 60 140 64 0 64 long 0\n");     /* in none */
    assert_int_equal(warned("dota", "s", "size=64 overlap=16 validation=0 num_shards=1",
                            "1 object is in no tile with a share of 0.7 of the area, the first at"),
                     1);
    assert_int_equal(warned("dota", "s", "size=64 overlap=16 validation=0 empty=true",
                            "a.txt:6: set a larger size"), 1);
    convert_ok("dota", "s", "d", "size=64 overlap=16 validation=0 num_shards=1 empty=true");
    for (size_t i = 0; i < 6; i++) {
        struct record r = record_open("d", "train", 6, i);

        assert_text(r.e, "image/filename", names[i]);
        assert_true(r.o.height == 64 && r.o.width == 64);
        assert_string_equal(r.o.sensor, "K3");
        for (size_t k = 0; k < r.o.count; k++) {
            const struct pm_rectangle box = rectangle(&r.o, k);
            const double y = (i < 3 ? 0 : 36) + box.cy, x = (i % 3 ? i % 3 == 1 ? 48 : 76 : 0) +
                             box.cx;

            if (!strcmp(r.o.item[k].text, "in-four")) {
                assert_true(i == 0 || i == 1 || i == 3 || i == 4);
                assert_true(fabs(y - 47) < 1e-4 && fabs(x - 55) < 1e-4);
                middle++;
            } else if (!strcmp(r.o.item[k].text, "corner")) {
                assert_true(i == 5 && r.o.item[k].difficult);
                assert_true(fabs(y - 94) < 1e-4 && fabs(x - 134) < 1e-4);
            } else {
                assert_string_equal(r.o.item[k].text, "cut");
                assert_true(i == 1 && fabs(x - 60) < 1e-4); /* its centre, not cut */
            }
            found++;
        }
        record_close(&r);
    }
    assert_true(found == 6 && middle == 4);
    convert_ok("dota", "s", "e", "size=64 overlap=16 validation=0 inside=0.5");
    assert_int_equal(boxes_of(in_scratch("e"), "train", 5), 7); /* tile 2 has nothing */
    convert_ok("dota", "s", "f", "size=512 validation=0"); /* a tile larger than the photo */
    struct record r = record_open("f", "train", 1, 0);
    assert_true(r.o.count == 4 && r.o.height == HIGH && r.o.width == WIDE);
    record_close(&r);
    scratch_remove();
}

/* Photos without labels are counted among the photos, however many tiles the others have. */
static void tiles_without_labels(void **state)
{
#define TILES "size=64 overlap=16 validation=0 "
    (void)state;
    scratch_make();
    make_photo();
    put_labels("50 44 60 44 60 50 50 50 plane 0\n");
    put_blank("s/images/d.png", 20, 20);
    assert_int_equal(warned("dota", "s", TILES "unannotated=skip", "1 of 2 photos has no "
                            "annotations and is skipped; the first one: "), 1);
    assert_int_equal(warned("dota", "s", TILES "unannotated=empty", "1 of 2 photos has no "
                            "annotations and is cut into tiles without objects"), 1);
    assert_int_equal(warned("dota", "s", TILES "unannotated=empty", "4 tiles of 64 pixels; 3 "
                            "without objects are left out"), 1);
    assert_int_equal(warned("dota", "s", "validation=0 unannotated=skip", "1 of 2 pictures has no "
                            "annotations and is skipped"), 1);
    put_blank("t/images/d.png", 20, 20);
    put_file("t/labelTxt/e.txt", "");
    assert_fails(run_on("dota", "t", "e", TILES "unannotated=empty"), PM_EDATA,
                 "none of the 1 photos has annotations", "labelTxt/d.txt does not exist");
    scratch_remove();
#undef TILES
}

/* The pixels of a tile are those of the photo. */
static void tile_pixels(void **state)
{
    uint8_t pixels[HIGH * WIDE * 3], *png = NULL;
    const struct pm_image8 im = { HIGH, WIDE, 3, pixels };
    size_t size = 0;

    (void)state;
    scratch_make();
    for (int i = 0; i < HIGH * WIDE; i++) {
        pixels[3 * i] = (uint8_t)(i / WIDE);
        pixels[3 * i + 1] = (uint8_t)(i % WIDE);
        pixels[3 * i + 2] = 9;
    }
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    make_folder_of("s/images/a.png");
    assert_int_equal(pm_file_write(in_scratch("s/images/a.png"), png, size), PM_OK);
    pm_free(png);
    put_labels("130 90 138 90 138 98 130 98 x 0\n");
    convert_ok("dota", "s", "d", "size=64 overlap=16 validation=0");
    struct record r = record_open("d", "train", 1, 0);
    struct pm_image8 tile = image(r.e, "image/encoded", 3);
    for (int y = 0; y < 64; y++)
        for (int x = 0; x < 64; x++) {
            const uint8_t *p = tile.pixels + 3 * (64 * y + x);

            assert_true(p[0] == 36 + y && p[1] == 76 + x && p[2] == 9);
        }
    pm_image_free(&tile);
    record_close(&r);
    scratch_remove();
}

/* Tiles of one photo are in one split. */
static void shares(void **state)
{
    (void)state;
    scratch_make();
    for (int k = 0; k < 10; k++) {
        char name[100];

        snprintf(name, sizeof name, "s/images/p%d.png", k);
        put_blank(name, HIGH, WIDE);
        snprintf(name, sizeof name, "s/labelTxt/p%d.txt", k);
        put_file(name, "50 44 60 44 60 50 50 50 x 0\n");
    }
    convert_ok("dota", "s", "d", "size=64 overlap=16 validation=0.3 seed=4");
    assert_int_equal(boxes_of(in_scratch("d"), "validation", 12), 12);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 28), 28);
    char held[3] = { 0 };
    size_t photos = 0;
    for (size_t i = 0; i < 12; i++) {
        struct record r = record_open("d", "validation", 12, i);
        const uint8_t *name = NULL;
        size_t size = 0;

        assert_int_equal(pm_example_bytes(r.e, "image/filename", &name, &size), 1);
        if (!memchr(held, name[1], photos)) {
            assert_true(photos < 3);
            held[photos++] = (char)name[1];
        }
        record_close(&r);
    }
    assert_int_equal(photos, 3);
    scratch_remove();
}

static void folders(void **state)
{
    (void)state;
    scratch_make();
    put_blank("s/train/images/a.png", HIGH, WIDE);
    put_file("s/train/labelTxt-v1.5/a.txt", "50 44 60 44 60 50 50 50 x 0\n");
    put_blank("s/val/images/b.png", HIGH, WIDE);
    put_file("s/val/annfiles/b.txt", "50 44 60 44 60 50 50 50 x 0\n1 1 9 1 9 9 1 9 x 0\n");
    convert_ok("dota", "s", "d", NULL);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 1), 1);
    assert_int_equal(boxes_of(in_scratch("d"), "validation", 1), 2);
    scratch_remove();
}

/* A photo of 170 pixels with the labels of 1024. */
static void shared_tile(void **state)
{
    const char *src = shared_data("rotated-boxes/dota");

    (void)state;
    scratch_make();
    assert_fails(pm_dataset_convert("dota", src, in_scratch("d"), "validation=0"), PM_EDATA,
                 "4 of 4 boxes are outside of", "has 170 x 170 pixels", "set scale");
    assert_int_equal(pm_dataset_convert("dota", src, in_scratch("d"),
                                        "validation=0 scale=0.166015625"), PM_OK);
    struct record r = record_open("d", "train", 1, 0);
    assert_int_equal(r.o.count, 4); /* lines of the file */
    for (size_t i = 0; i < 4; i++) {
        const struct pm_rectangle box = rectangle(&r.o, i);

        assert_string_equal(r.o.item[i].text, "plane");
        assert_true(pm_rectangle_inside(&box, 170, 170) == 1);
        assert_true(box.h > 20 && box.w < 40 && box.w >= box.h);
    }
    /* The mean of the corners 359 663, 369 497, 543 509, 531 677, scaled; the photo's centre of the
     * least rectangle is near it. */
    const struct pm_rectangle first = rectangle(&r.o, 0);
    assert_true(fabs(first.cy - 586.5 * 170 / 1024) < 1.5);
    assert_true(fabs(first.cx - 450.5 * 170 / 1024) < 1.5);
    record_close(&r);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),       cmocka_unit_test(refused), cmocka_unit_test(odd_files),
        cmocka_unit_test(tiles), cmocka_unit_test(tiles_without_labels),
        cmocka_unit_test(tile_pixels), cmocka_unit_test(shares),
        cmocka_unit_test(folders),     cmocka_unit_test(shared_tile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
