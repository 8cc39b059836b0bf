/* predict in tiles, by the program on drawn shapes: a photo of 36 pictures side by side gives what
 * the pictures give one by one; a photo that is not larger than a tile gives what it gives whole;
 * the drawing, the limits of the photo, damaged files, and what is refused. */
#include "e2e/tile_pictures.h"

enum { SIDE = 64, COLUMNS = 6, PICTURES = COLUMNS * COLUMNS };

/* Room for the detections of the whole photo. */
#define ROOM                                             \
    "model.post_processing.max_detections_per_class=1000 " \
    "model.post_processing.max_total_detections=1000 "

static char path[PICTURES][512];

/* Trains the demo's net for 15 seconds. A trial had a map_50 of 0.77. */
static int make_net(void **state)
{
    const char *source = getenv("PUMICE_SOURCE");
    char net[2048];
    const char *files[PICTURES];

    (void)state;
    if (make_shapes("{}", SIDE, 4000, 500) < 0)
        return -1;
    snprintf(net, sizeof net,
             "{ \"base\": [\"%s/configs/shapes_detection.json\"], \"devices\": [\"cpu\"],\n"
             "  \"data\": { \"folder\": \"%s\", \"eval_split\": \"test\" },\n"
             "  \"run\": { \"folder\": \"%s\", \"steps\": 400 },\n"
             "  \"eval\": { \"every_steps\": 0, \"score_threshold\": 0.35 } }\n",
             source ? source : ".", in("data"), in("learns"));
    put_net(net);
    train("learns", "");
    check(run(NULL, "dataset inspect %s/shapes_test_00000-of-00001.tfrecord --records %d "
              "--pictures %s", in("data"), PICTURES, in("pictures")), 0);
    for (int k = 0; k < PICTURES; k++) {
        snprintf(path[k], sizeof path[k], "%s",
                 in("pictures/shapes_test_00000-of-00001.tfrecord_%05d.png", k));
        files[k] = path[k];
    }
    join_pictures(in("photo.png"), files, PICTURES, COLUMNS, SIDE);
    return 0;
}

/* ---- comparison ----------------------------------------------------------------------------- */

static void box_of(const cJSON *row, double y, double x, double out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = cJSON_GetArrayItem(cJSON_GetObjectItem(row, "box"), i)->valuedouble +
                 (i % 2 ? x : y);
}

static double overlap(const double a[4], const double b[4])
{
    const double h = fmin(a[2], b[2]) - fmax(a[0], b[0]), w = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    const double both = h > 0 && w > 0 ? h * w : 0;

    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

/* Whether a row above the threshold has this box's label, and an overlap of at least a half. */
static bool has_box(const cJSON *list, double label, const double box[4], double threshold)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, list)
    {
        double other[4];

        box_of(row, 0, 0, other);
        if (number_of(row, "label") == label && number_of(row, "score") > threshold &&
            overlap(box, other) >= 0.5)
            return true;
    }
    return false;
}

/* Counts the boxes of picture k above the threshold, and those that the photo has, too. */
static void count_picture(const cJSON *one, int k, const cJSON *photo, int *boxes, int *found)
{
    const double threshold = number_of(one, "score_threshold");
    const cJSON *row;

    cJSON_ArrayForEach(row, cJSON_GetObjectItem(one, "boxes"))
    {
        double box[4];

        if (!(number_of(row, "score") > threshold))
            continue;
        box_of(row, k / COLUMNS * SIDE, k % COLUMNS * SIDE, box);
        ++*boxes;
        *found += has_box(cJSON_GetObjectItem(photo, "boxes"), number_of(row, "label"), box,
                          threshold);
    }
}

/* The same of all pictures. */
static void count_found(const cJSON *photo, int *boxes, int *found)
{
    struct result r = run(NULL, "predict %s run.folder=%s %s --json %s", in("net.json"),
                          in("learns"), in("pictures"), ROOM);
    cJSON *report = json_of(&r);
    const cJSON *images = cJSON_GetObjectItem(report, "images");

    *boxes = *found = 0;
    assert_int_equal(cJSON_GetArraySize(images), PICTURES);
    for (int k = 0; k < PICTURES; k++) {
        const cJSON *one = cJSON_GetArrayItem(images, k);

        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(one, "file")), path[k]);
        count_picture(one, k, photo, boxes, found);
    }
    cJSON_Delete(report);
    check(r, 0);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Tiles have a picture's size. With an overlap of half a tile they find what the pictures give.
 * Without overlap they are the pictures, so they give the same boxes, and no others. */
static void finds_all(void **state)
{
    cJSON *photo = predict_file("learns", in("photo.png"),
                                ROOM "predict.tile=64 predict.overlap=32");
    int boxes, found, above = 0;
    const cJSON *row;

    (void)state;
    assert_true(number_of(photo, "tiles") == 121);
    count_found(photo, &boxes, &found);
    print_message("%d boxes, %d found\n", boxes, found);
    assert_true(boxes >= 20);
    assert_true(found >= 0.98 * boxes);
    cJSON_Delete(photo);
    photo = predict_file("learns", in("photo.png"), ROOM "predict.tile=64 predict.overlap=0");
    assert_true(number_of(photo, "tiles") == PICTURES);
    count_found(photo, &boxes, &found);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(photo, "boxes"))
        above += number_of(row, "score") > number_of(photo, "score_threshold");
    assert_int_equal(found, boxes);
    assert_int_equal(above, boxes);
    cJSON_Delete(photo);
}

/* A tile that is larger than the photo, or as large, is the photo. */
static void large_tile(void **state)
{
    cJSON *whole = predict_file("learns", in("photo.png"), "");

    (void)state;
    for (int side = COLUMNS * SIDE; side <= 1000; side += 1000 - COLUMNS * SIDE) {
        char more[64];
        cJSON *photo;

        snprintf(more, sizeof more, "predict.tile=%d", side);
        photo = predict_file("learns", in("photo.png"), more);
        assert_true(number_of(photo, "tiles") == 1);
        cJSON_DeleteItemFromObject(photo, "tiles");
        assert_true(cJSON_Compare(whole, photo, true));
        cJSON_Delete(photo);
    }
    cJSON_Delete(whole);
}

/* Pictures of several sizes and a damaged file, with each picture's own size and without. */
static void several_files(void **state)
{
    static const char *const own[] = { "", "eval.resize=false" };

    (void)state;
    assert_int_equal(pm_make_folders(in("mixed")), PM_OK);
    put_text(in("mixed/damaged.png"), "no picture");
    for (size_t i = 0; i < PM_COUNT(own); i++) {
        struct result r = run(NULL, "predict %s run.folder=%s %s %s %s %s --json "
                              "predict.tile=[64,80] predict.overlap=[0,16] eval.batch_size=3 %s",
                              in("net.json"), in("learns"), path[0], in("mixed"),
                              in("photo.png"), path[1], own[i]);
        cJSON *report = json_of(&r), *images = cJSON_GetObjectItem(report, "images");

        assert_int_equal(cJSON_GetArraySize(images), 4);
        assert_true(number_of(cJSON_GetArrayItem(images, 0), "tiles") == 1);
        assert_non_null(cJSON_GetObjectItem(cJSON_GetArrayItem(images, 1), "error"));
        assert_true(number_of(cJSON_GetArrayItem(images, 2), "tiles") == 36);
        assert_true(number_of(cJSON_GetArrayItem(images, 3), "tiles") == 1);
        assert_true(number_of(report, "damaged") == 1);
        cJSON_Delete(report);
        check(r, 3, "1 of 4 files could not be read");
    }
}

/* The drawing has the photo's size, enlarged to 600 pixels at least, and boxes. */
static void drawn(void **state)
{
    struct pm_image8 before, after;
    int changed = 0;

    (void)state;
    check(run(NULL, "predict %s run.folder=%s %s --out %s %s predict.tile=64 predict.overlap=32",
              in("net.json"), in("learns"), in("photo.png"), in("drawn"), ROOM), 0);
    before = read_picture(in("photo.png"));
    after = read_picture(in("drawn/photo.png"));
    assert_true(after.height == 2 * before.height && after.width == 2 * before.width);
    for (int y = 0; y < before.height; y++)
        for (int x = 0; x < before.width; x++)
            changed += memcmp(before.pixels + 3 * (y * before.width + x),
                              after.pixels + 3 * (2 * y * after.width + 2 * x), 3) != 0;
    assert_true(changed > before.height * before.width / 50);
    pm_image_free(&before);
    pm_image_free(&after);
}

/* The limits are those of the photo. Boxes that they leave out are reported. */
static void limited(void **state)
{
    struct result r = run(NULL, "predict %s run.folder=%s %s --json predict.tile=64 "
                          "model.post_processing.max_detections_per_class=5 "
                          "model.post_processing.max_total_detections=7", in("net.json"),
                          in("learns"), in("photo.png"));
    cJSON *report = json_of(&r);
    const cJSON *image = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "images"), 0);

    (void)state;
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(image, "boxes")), 7);
    assert_contains(r.err, "more boxes above eval.score_threshold, but model.post_processing "
                           "allows 5 per class and 7 in all for the whole photo");
    cJSON_Delete(report);
    check(r, 0);
}

static void refuse(const char *options, const char *why)
{
    check(run(NULL, "predict %s run.folder=%s %s %s", in("net.json"), in("learns"),
              in("photo.png"), options), 2, why);
}

static void refused(void **state)
{
    (void)state;
    refuse("predict.tile=64 predict.overlap=64",
           "predict.overlap: 64 is outside 0..63, because predict.tile has a side of 64 pixels: "
           "lower it, or raise predict.tile");
    refuse("predict.tile=[64,32] predict.overlap=[10,40]", "predict.overlap: 40 is outside 0..31");
    refuse("predict.tile=-5", "predict.tile: -5 is outside 0..16384");
    refuse("predict.tile=64 predict.overlap=-1", "predict.overlap: -1 is outside 0..16383");
    refuse("predict.tile=[0,64]", "predict.tile: [0, 64], but both sides must be 1..16384");
    refuse("predict.tile=[1,2,3]", "predict.tile: 3 numbers, but one number of pixels or");
    refuse("predict.overlap=8", "predict.overlap: 8 has no effect without predict.tile");
    check(run(NULL, "config show %s/configs/shapes_segmentation.json predict.tile=64",
              getenv("PUMICE_SOURCE") ? getenv("PUMICE_SOURCE") : "."), 2,
          "predict.tile: this key is for detection, but task is segmentation: remove it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_all), cmocka_unit_test(large_tile),
        cmocka_unit_test(several_files), cmocka_unit_test(drawn), cmocka_unit_test(limited),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make_net, drop_world);
}
