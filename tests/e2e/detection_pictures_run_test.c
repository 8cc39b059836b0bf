/* Detection by the program on pictures and records that are rare: CMYK, grey, 16-bit and palette
 * files, turned ones, training data without an object, more boxes than there is room for, draws
 * that end at a step. */
#include "e2e/program.h"
#include "e2e/same_run.h"
#include "e2e/small_detector.h"

#include "data/exif_common.h"
#include "data/png_common.h"

/* ---- files ----------------------------------------------------------------------------------- */

static const char *const jpegs[] = { "cmyk.jpg", "gray.jpg", "rgb.jpg", "progressive_420.jpg" };
static const struct { const char *name; int depth, color; } pngs[] = {
    { "deep.png", 16, 2 }, { "deep_grey.png", 16, 0 }, { "palette.png", 8, 3 },
    { "palette_2.png", 2, 3 }, { "alpha.png", 8, 4 },
};
static const char *const turned[] = { "1.jpg", "2.jpg", "3.jpg", "4.jpg",
                                      "5.jpg", "6.jpg", "7.jpg", "8.jpg" }; /* rgb.jpg with EXIF */
enum { JPEGS = PM_COUNT(jpegs), PNGS = PM_COUNT(pngs), TURNED = PM_COUNT(turned),
       FILES = JPEGS + PNGS + TURNED, PNG_SIDE = 15 };

static const char *file_name(size_t i)
{
    return i < JPEGS ? jpegs[i] : i < JPEGS + PNGS ? pngs[i - JPEGS].name
                                                   : turned[i - JPEGS - PNGS];
}

static void put_bytes(const char *path, const void *data, size_t size)
{
    assert_int_equal(pm_file_write(path, data, size), PM_OK);
}

/* Writes copies of rgb.jpg with the EXIF orientations 1 to 8. */
static void put_turned(const char *data, size_t size)
{
    for (int i = 0; i < TURNED; i++) {
        uint8_t body[EXIF_SIZE], *jpeg;

        exif_body(i % 2, i + 1, body);
        jpeg = exif_jpeg((const uint8_t *)data, size, body, EXIF_SIZE);
        put_bytes(in("src/%s", turned[i]), jpeg, size + EXIF_JPEG_MORE);
        pm_free(jpeg);
    }
}

/* Copies the JPEG files of the goldens and writes PNG files of 15 x 15 pixels. */
static void put_pictures(void)
{
    uint8_t rows[2048];

    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (uint8_t)(i * 7 % 251);
    for (size_t i = 0; i < JPEGS; i++) {
        const char *source = getenv("PUMICE_SOURCE");
        char path[1024], *data = NULL;
        size_t size = 0;

        snprintf(path, sizeof path, "%s/tests/golden/jpeg/%s", source ? source : ".", jpegs[i]);
        assert_int_equal(pm_file_read(path, &data, &size), PM_OK);
        put_bytes(in("src/%s", jpegs[i]), data, size);
        if (strcmp(jpegs[i], "rgb.jpg") == 0)
            put_turned(data, size);
        pm_free(data);
    }
    for (size_t i = 0; i < PNGS; i++) {
        const struct png p = png_of(PNG_SIDE, PNG_SIDE, pngs[i].depth, pngs[i].color, rows);

        put_bytes(in("src/%s", pngs[i].name), p.bytes, p.size);
    }
}

/* Writes FOLDER/src/LIST.csv: each picture with one box, or without. */
static void put_list(const char *list, bool boxes)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "image,class,xmin,ymin,xmax,ymax\n");
    for (size_t i = 0; i < FILES; i++)
        if (boxes)
            pm_str_add(&s, "%s,kind%d,2,3,11,13\n", file_name(i), (int)(i % 4));
        else
            pm_str_add(&s, "%s,,,,,\n", file_name(i));
    put_text(in("src/%s.csv", list), s.text);
    pm_str_free(&s);
}

static int make_data(void **state)
{
    (void)state;
    if (make_world(false) < 0)
        return -1;
    assert_int_equal(mkdir(in("src"), 0777), 0);
    put_net(small_detector);
    put_pictures();
    put_list("train", true);
    put_list("test", true);
    check(run(NULL, "dataset convert boxes %s %s", in("src"), in("data")), 0);
    put_text(in("map.pbtxt"), "item { name: 'kind0' id: 1 } item { name: 'kind1' id: 2 }\n"
                              "item { name: 'kind2' id: 3 } item { name: 'kind3' id: 4 }\n");
    return 0;
}

static void train(const char *name, int steps, const char *more)
{
    check(run(NULL, "train %s run.folder=%s run.steps=%d run.batch_size=4 %s", in("net.json"),
              in("%s", name), steps, more), 0);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Predicts a file. Returns its size and boxes as text; the caller frees it. */
static char *predicted(const char *path)
{
    struct result r = run(NULL, "predict %s run.folder=%s %s --json", in("net.json"), in("whole"),
                          path);
    cJSON *report = json_of(&r);
    cJSON *image = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "images"), 0);
    cJSON *kept = cJSON_CreateObject();
    char *text;

    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(image, "boxes")) > 0);
    cJSON_AddItemToObject(kept, "size", cJSON_DetachItemFromObject(image, "size"));
    cJSON_AddItemToObject(kept, "boxes", cJSON_DetachItemFromObject(image, "boxes"));
    text = cJSON_PrintUnformatted(kept);
    cJSON_Delete(kept);
    cJSON_Delete(report);
    check(r, 0);
    return text;
}

/* Writes a picture file in three colours as FOLDER/plain.ppm. */
static void put_plain(size_t i)
{
    struct pm_image8 im = { 0 };
    struct pm_str ppm = { 0 };
    char *data = NULL;
    size_t size = 0, bytes;
    uint8_t *all;

    assert_int_equal(pm_file_read(in("src/%s", file_name(i)), &data, &size), PM_OK);
    assert_int_equal(pm_image_decode(data, size, 3, 0, file_name(i), &im), PM_OK);
    pm_str_add(&ppm, "P6 %d %d 255\n", im.width, im.height);
    bytes = 3 * (size_t)im.height * (size_t)im.width;
    all = pm_malloc(ppm.length + bytes);
    memcpy(all, ppm.text, ppm.length);
    memcpy(all + ppm.length, im.pixels, bytes);
    put_bytes(in("plain.ppm"), all, ppm.length + bytes);
    pm_free(all);
    pm_str_free(&ppm);
    pm_image_free(&im);
    pm_free(data);
}

/* Every file is learnt and evaluated, and its boxes are those of the same pixels in a PPM file. */
static void formats(void **state)
{
    struct result r;
    cJSON *report;

    (void)state;
    train("whole", 6, "");
    r = run(NULL, "eval %s run.folder=%s --json", in("net.json"), in("whole"));
    report = json_of(&r);
    assert_true(number_of(report, "count") == FILES);
    assert_true(isfinite(number_of(cJSON_GetObjectItem(report, "metrics"), "map_50")));
    cJSON_Delete(report);
    check(r, 0);
    for (size_t i = 0; i < FILES; i++) {
        char *own = predicted(in("src/%s", file_name(i))), *plain;

        put_plain(i);
        plain = predicted(in("plain.ppm"));
        assert_string_equal(own, plain);
        cJSON_free(plain);
        cJSON_free(own);
    }
}

/* ---- without objects ------------------------------------------------------------------------- */

/* Each picture, batch, epoch and split has no object: everything is background. */
static void no_objects(void **state)
{
    char more[300];
    struct result r;
    cJSON *report;

    (void)state;
    put_list("train", false);
    put_list("test", false);
    check(run(NULL, "dataset convert boxes %s %s label_map=%s", in("src"), in("empty"),
              in("map.pbtxt")), 0);
    snprintf(more, sizeof more, "data.folder=%s", in("empty"));
    train("nothing", 6, more);
    r = run(NULL, "eval %s run.folder=%s %s --json", in("net.json"), in("nothing"), more);
    report = json_of(&r);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetObjectItem(report, "metrics"),
                                                 "map_50")));
    assert_true(number_of(cJSON_GetObjectItem(report, "metrics"), "loss") > 0);
    cJSON_Delete(report);
    check(r, 0);
}

/* A picture has more boxes than data.max_boxes: training says that it keeps the largest. */
static void many_boxes(void **state)
{
    struct pm_str s = { 0 };
    struct result r;

    (void)state;
    pm_str_add(&s, "image,class,xmin,ymin,xmax,ymax\n");
    for (int i = 0; i < 4; i++)
        pm_str_add(&s, "rgb.jpg,kind%d,%d,1,%d,9\ngray.jpg,kind0,0,0,5,%d\n", i, i, 3 * i + 4,
                   i == 0 ? 5 : 9);
    put_text(in("src/train.csv"), s.text);
    put_text(in("src/test.csv"), s.text);
    pm_str_free(&s);
    check(run(NULL, "dataset convert boxes %s %s", in("src"), in("crowded")), 0);
    r = run(NULL, "train %s run.folder=%s data.folder=%s data.max_boxes=2 run.batch_size=2 "
            "run.steps=4", in("net.json"), in("kept"), in("crowded"));
    assert_contains(r.err, ": 4 boxes; training keeps the largest 2 (data.max_boxes)");
    check(r, 0);
}

/* ---- draws ----------------------------------------------------------------------------------- */

#define MOSAIC(until)                                                                              \
    "'input.augment=[{\"name\":\"mosaic\",\"until_steps\":" until "},"                             \
    "{\"name\":\"ssd_random_crop\"},{\"name\":\"random_flip\"},{\"name\":\"resize\"}]' "

/* mosaic ends at step 5. A run that stops before and goes on beyond, with other threads, gives the
 * same bits as an undisturbed one. */
static void draws_until_a_step(void **state)
{
    size_t n = 0, m = 0;
    char *a, *b;

    (void)state;
    train("one", 8, MOSAIC("5") "data.threads=1");
    train("parts", 3, MOSAIC("5") "data.threads=3");
    train("parts", 6, MOSAIC("5") "data.threads=1");
    train("parts", 8, MOSAIC("5") "data.threads=2");
    same_bytes(in("one/checkpoints/step-000008.safetensors"),
               in("parts/checkpoints/step-000008.safetensors"));
    train("longer", 8, MOSAIC("6") "data.threads=2");
    a = run_text(in("one"), "checkpoints/step-000008.safetensors", &n);
    b = run_text(in("longer"), "checkpoints/step-000008.safetensors", &m);
    assert_true(n == m && memcmp(a, b, n) != 0);
    pm_free(a);
    pm_free(b);
}

/* An empty list is no augmentation: pictures are resized only, as without the random rows. */
static void empty_list(void **state)
{
    (void)state;
    train("empty", 3, "'input.augment=[]' data.threads=3");
    train("resized", 3, "'input.augment=[{\"name\":\"resize\"}]' data.threads=1");
    same_bytes(in("empty/checkpoints/step-000003.safetensors"),
               in("resized/checkpoints/step-000003.safetensors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(no_objects),
        cmocka_unit_test(many_boxes),
        cmocka_unit_test(draws_until_a_step),
        cmocka_unit_test(empty_list),
    };
    return cmocka_run_group_tests(tests, make_data, drop_world);
}
