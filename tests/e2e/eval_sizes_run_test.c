/* eval.resize=false: evaluation and predict keep the size of each picture. Metrics equal those
 * of the pictures one by one. The maps of predict equal those of evaluation, and those of
 * pictures padded to exactly their frames. The batch size has no effect. */
#include "base/command.h"

#include <pumice/data.h>

#include <math.h>

enum { CLASSES = 3, LETTERS = 4 };
static const int sizes[][2] = {
    { 64, 64 }, { 33, 33 }, { 40, 70 }, { 70, 40 }, { 64, 64 }, { 1, 1 },   { 5, 190 },
    { 65, 65 }, { 64, 61 }, { 20, 90 }, { 91, 20 }, { 50, 50 }, { 99, 98 }, { 33, 33 },
    { 52, 53 }, { 34, 37 }, { 1, 40 },
};
enum { PICTURES = PM_COUNT(sizes) };

static const char net[] =
    "{ \"task\": \"segmentation\", \"model\": { \"layers\": ["
    "  { \"name\": \"c1\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2,"
    "    \"activation\": \"relu\" },"
    "  { \"name\": \"c2\", \"layer\": \"conv2d\", \"filters\": 12, \"stride\": 2,"
    "    \"activation\": \"relu\" },"
    "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 3 } ] },"
    "  \"data\": { \"folder\": \"mixed\", \"eval_split\": \"val\" }, \"devices\": [\"cpu\"],"
    "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 33 },"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.1 },"
    "  \"run\": { \"folder\": \"run\", \"batch_size\": 8, \"steps\": 120 },"
    "  \"eval\": { \"batch_size\": 8, \"resize\": false, \"save_raw\": true } }";
static const char letters[] =
    "{ \"model\": { \"layers\": ["
    "  { \"name\": \"conv\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2,"
    "    \"activation\": \"relu\" }, { \"layer\": \"global_pool\" },"
    "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] },"
    "  \"data\": { \"folder\": \"letters\", \"eval_split\": \"validation\" },"
    "  \"devices\": [\"cpu\"], \"input\": { \"preprocessing\": \"lenet\", \"size\": 12,"
    "  \"channels\": 3 }, \"run\": { \"folder\": \"run_letters\", \"batch_size\": 6,"
    "  \"steps\": 12 }, \"eval\": { \"batch_size\": 4, \"resize\": false } }";

/* ---- data ---------------------------------------------------------------------------------- */

static void put(const char *name, const struct pm_image8 *im)
{
    uint8_t *png = NULL;
    size_t size;

    if (pm_image_encode_png(im, &png, &size) < 0 || pm_file_write(in_folder(name), png, size) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(png);
}

/* Writes a scene: boxes of two classes on a background, with noise in the picture. */
static void put_scene(const char *split, int i, int height, int width)
{
    static const uint8_t colors[CLASSES][3] = { { 30, 60, 90 }, { 220, 40, 30 }, { 40, 200, 60 } };
    const size_t count = (size_t)height * (size_t)width;
    struct pm_image8 im = { height, width, 3, pm_malloc(3 * count) };
    struct pm_image8 map = { height, width, 1, pm_malloc(count) };
    char name[64];

    for (size_t k = 0; k < count; k++) {
        const int y = (int)(k / (size_t)width), x = (int)(k % (size_t)width);
        const int c = y / 13 % 3 == 1 && x / 11 % 2 == i % 2 ? 1 + (y / 13 + x / 11) % 2 : 0;

        map.pixels[k] = (uint8_t)c;
        for (int b = 0; b < 3; b++)
            im.pixels[3 * k + (size_t)b] =
                (uint8_t)(colors[c][b] + pm_permute((uint64_t)i, (uint64_t)b, count, k) % 25);
    }
    snprintf(name, sizeof name, "scenes/images/%s/p%02d.png", split, i);
    put(name, &im);
    snprintf(name, sizeof name, "scenes/labels/%s/p%02d.png", split, i);
    put(name, &map);
    pm_image_free(&im);
    pm_image_free(&map);
}

static void make_scenes(void)
{
    static const char *const folders[] = { "scenes/images/train", "scenes/images/val",
                                           "scenes/labels/train", "scenes/labels/val" };

    for (size_t i = 0; i < PM_COUNT(folders); i++)
        assert_int_equal(pm_make_folders(in_folder(folders[i])), PM_OK);
    for (int i = 0; i < 8; i++)
        put_scene("train", i, 48, 48);
    for (int i = 0; i < PICTURES; i++)
        put_scene("val", i, sizes[i][0], sizes[i][1]);
    assert_int_equal(pumice("dataset convert pairs scenes mixed num_shards=1"), 0);
}

static void make_letters(void)
{
    char name[80];

    for (int c = 0; c < LETTERS; c++)
        for (int split = 0; split < 2; split++) {
            snprintf(name, sizeof name, "photos/%s/c%d", split ? "validation" : "train", c);
            assert_int_equal(pm_make_folders(in_folder(name)), PM_OK);
            for (int i = 0; i < 6; i++) {
                struct pm_image8 im = { split ? 5 + 3 * i : 12, split ? 9 + 2 * i * c : 12, 3,
                                        NULL };
                const size_t count = 3 * (size_t)im.height * (size_t)im.width;

                im.pixels = pm_malloc(count);
                for (size_t k = 0; k < count; k++)
                    im.pixels[k] = (uint8_t)(60 * (int)(k % 3 == (size_t)c % 3) * (c + 1) +
                                             pm_permute((uint64_t)i, 1, count, k) % 30);
                snprintf(name, sizeof name, "photos/%s/c%d/p%d.png",
                         split ? "validation" : "train", c, i);
                put(name, &im);
                pm_image_free(&im);
            }
        }
    assert_int_equal(pumice("dataset convert folder photos letters"), 0);
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(pm_file_write(in_folder("seg.json"), net, sizeof net - 1), PM_OK);
    assert_int_equal(pm_file_write(in_folder("let.json"), letters, sizeof letters - 1), PM_OK);
    make_scenes();
    make_letters();
    if (pumice("train seg.json run.train_metrics=false") || pumice("train let.json"))
        fail_msg("%s", read_text("err"));
    return 0;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* Counts are equal; the loss is summed in another order. */
static void same_evaluation(const cJSON *a, const cJSON *b, const char *why)
{
    const cJSON *x = cJSON_GetObjectItem(a, "metrics"), *y = cJSON_GetObjectItem(b, "metrics"), *v;

    assert_true(number(a, "count") == number(b, "count"));
    if (!cJSON_Compare(cJSON_GetObjectItem(a, "per_class"), cJSON_GetObjectItem(b, "per_class"),
                       true))
        fail_msg("%s: other counts per class", why);
    cJSON_ArrayForEach(v, x)
    {
        const cJSON *w = cJSON_GetObjectItem(y, v->string);

        if (cJSON_IsNumber(v) ? fabs(v->valuedouble - w->valuedouble) > 1e-5 * fabs(v->valuedouble)
                              : !cJSON_Compare(v, w, true))
            fail_msg("%s: %s is %s, then %s", why, v->string, cJSON_Print(v), cJSON_Print(w));
    }
}

static struct pm_image8 picture(const char *name)
{
    struct pm_image8 im;
    size_t size;
    char *data = read_bytes(name, &size);

    if (pm_image_decode(data, size, 1, 0, name, &im) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(data);
    return im;
}

/* Adds a raw prediction's pixels to [true][predicted]. */
static void count_pixels(int i, uint64_t matrix[CLASSES][CLASSES])
{
    char name[80];

    snprintf(name, sizeof name, "scenes/labels/val/p%02d.png", i);
    struct pm_image8 truth = picture(name);
    snprintf(name, sizeof name, "predicted/p%02d_raw.png", i);
    struct pm_image8 predicted = picture(name);

    assert_int_equal(predicted.height, sizes[i][0]);
    assert_int_equal(predicted.width, sizes[i][1]);
    for (size_t k = 0; k < (size_t)predicted.height * (size_t)predicted.width; k++)
        matrix[truth.pixels[k]][predicted.pixels[k]]++;
    pm_image_free(&truth);
    pm_image_free(&predicted);
}

static double mean_iou(uint64_t m[CLASSES][CLASSES])
{
    double sum = 0;

    for (int c = 0; c < CLASSES; c++) {
        uint64_t all = 0;

        for (int k = 0; k < CLASSES; k++)
            all += m[c][k] + m[k][c];
        sum += (double)m[c][c] / (double)(all - m[c][c]);
    }
    return sum / CLASSES;
}

/* ---- segmentation -------------------------------------------------------------------------- */

static void batches(void **state)
{
    cJSON *eight = report_of("eval seg.json --json");
    cJSON *one = report_of("eval seg.json --json eval.batch_size=1");

    (void)state;
    assert_true(number(cJSON_GetObjectItem(eight, "metrics"), "miou") > 0.6);
    same_evaluation(eight, one, "batches of 8 and 1");
    if (has_device("vulkan:0")) {
        cJSON *gpu = report_of("eval seg.json --json devices='[\"vulkan:0\"]'");
        const double miou = number(cJSON_GetObjectItem(gpu, "metrics"), "miou");

        assert_true(fabs(miou - number(cJSON_GetObjectItem(one, "metrics"), "miou")) < 1e-3);
        assert_file_contains("err", "13 input sizes");
        cJSON_Delete(gpu);
    }
    cJSON_Delete(eight);
    cJSON_Delete(one);
}

/* A picture alone, padded to its own frame, is predicted as in the folder. */
static void same_alone(int i, const cJSON *in_folder_report)
{
    char arguments[200], name[64];

    snprintf(arguments, sizeof arguments, "predict seg.json scenes/images/val/p%02d.png --out "
             "alone --json eval.resize=true input.eval_size=[%d,%d]", i,
             (sizes[i][0] + 2) / 4 * 4 + 1, (sizes[i][1] + 2) / 4 * 4 + 1);
    cJSON *alone = report_of(arguments);
    if (!cJSON_Compare(in_folder_report,
                       cJSON_GetArrayItem(cJSON_GetObjectItem(alone, "images"), 0), true))
        fail_msg("picture %d is predicted otherwise alone", i);
    snprintf(name, sizeof name, "predicted/p%02d_raw.png", i);
    struct pm_image8 predicted = picture(name);
    snprintf(name, sizeof name, "alone/p%02d_raw.png", i);
    struct pm_image8 again = picture(name);
    assert_memory_equal(predicted.pixels, again.pixels,
                        (size_t)predicted.height * (size_t)predicted.width);
    pm_image_free(&predicted);
    pm_image_free(&again);
    cJSON_Delete(alone);
}

/* The maps of predict have evaluation's metrics and equal those of each picture alone. */
static void one_by_one(void **state)
{
    cJSON *eval = report_of("eval seg.json --json");
    cJSON *all = report_of("predict seg.json scenes/images/val --out predicted --json");
    const double miou = number(cJSON_GetObjectItem(eval, "metrics"), "miou");
    uint64_t matrix[CLASSES][CLASSES] = { { 0 } };

    (void)state;
    for (int i = 0; i < PICTURES; i++)
        count_pixels(i, matrix);
    assert_true(fabs(mean_iou(matrix) - miou) < 1e-12);
    for (int i = 0; i < PICTURES; i += 3)
        same_alone(i, cJSON_GetArrayItem(cJSON_GetObjectItem(all, "images"), i));
    cJSON_Delete(all);
    cJSON_Delete(eval);
}

/* A damaged record is left out of any group. A damaged file keeps its place in the list. */
static void damaged(void **state)
{
    const char *shard = "mixed/val-00000-of-00001.tfrecord";
    size_t size;
    char *good = read_bytes(shard, &size), *bad = pm_malloc(size);

    (void)state;
    for (int k = 0; k < 3; k++) {
        memcpy(bad, good, size);
        bad[k == 0 ? 40 : k == 1 ? size / 2 : size - 40] ^= 0x55;
        assert_int_equal(pm_file_write(in_folder(shard), bad, size), PM_OK);
        assert_int_equal(pumice("eval seg.json"), 3);
        cJSON *one = report_of("eval seg.json --json data.on_corrupt=skip eval.batch_size=1");
        cJSON *eight = report_of("eval seg.json --json data.on_corrupt=skip");
        assert_true(number(eight, "count") == PICTURES - 1);
        assert_true(number(eight, "skipped") == 1);
        same_evaluation(eight, one, "with a damaged record");
        cJSON_Delete(one);
        cJSON_Delete(eight);
    }
    assert_int_equal(pm_file_write(in_folder(shard), good, size), PM_OK);
    assert_int_equal(pm_file_write(in_folder("scenes/images/val/p03b.png"), "broken", 6), PM_OK);
    assert_int_equal(pumice("predict seg.json scenes/images/val --json"), 3);
    char *text = read_text("out");
    cJSON *report = cJSON_Parse(text);
    const cJSON *images = cJSON_GetObjectItem(report, "images");
    assert_int_equal(cJSON_GetArraySize(images), PICTURES + 1);
    assert_non_null(cJSON_GetObjectItem(cJSON_GetArrayItem(images, 4), "error"));
    for (int i = 0; i <= PICTURES; i++)
        assert_true(i == 4 || cJSON_GetObjectItem(cJSON_GetArrayItem(images, i), "classes"));
    assert_int_equal(unlink(in_folder("scenes/images/val/p03b.png")), 0);
    cJSON_Delete(report);
    pm_free(text);
    pm_free(good);
    pm_free(bad);
}

/* The evaluations of a resumed run equal those of an uninterrupted run. */
static void during_training(void **state)
{
    static const char options[] = "run.train_metrics=false run.steps=%d eval.every_steps=10 "
                                  "run.log_every_steps=10 run.folder=%s";
    char arguments[256], more[300];

    (void)state;
    for (int k = 0; k < 3; k++) {
        snprintf(arguments, sizeof arguments, options, k == 1 ? 10 : 20, k ? "parts" : "whole");
        snprintf(more, sizeof more, "train seg.json %s", arguments);
        if (pumice(more) != 0)
            fail_msg("%s", read_text("err"));
        assert_file_contains("err", "13 input sizes, the largest 101 x 101");
    }
    cJSON *whole = report_of("eval seg.json --json run.folder=whole");
    cJSON *parts = report_of("eval seg.json --json run.folder=parts");
    assert_true(cJSON_Compare(cJSON_GetObjectItem(whole, "metrics"),
                              cJSON_GetObjectItem(parts, "metrics"), true));
    char *lines = read_text("whole/metrics.jsonl"), *last = lines;
    for (char *at = lines; (at = strstr(at, "\"miou\": ")); at++)
        last = at;
    assert_true(strtod(last + 8, NULL) == number(cJSON_GetObjectItem(whole, "metrics"), "miou"));
    pm_free(lines);
    cJSON_Delete(whole);
    cJSON_Delete(parts);
}

/* Whether a binary file holds the text. */
static bool holds(const char *name, const char *part)
{
    const size_t length = strlen(part);
    size_t size, i = 0;
    char *data;

    assert_int_equal(pm_file_read(in_folder(name), &data, &size), PM_OK);
    while (i + length <= size && memcmp(data + i, part, length) != 0)
        i++;
    pm_free(data);
    return i + length <= size;
}

/* The exported model accepts pictures of exactly its size, which must need no padding. With
 * export.any_size a net that allows it accepts every size. */
static void exported(void **state)
{
    (void)state;
    assert_int_equal(pumice("export seg.json export.file=m.onnx export.size=[64,48]"), 2);
    assert_file_contains("err", "set export.size=[65,49]");
    assert_int_equal(pumice("export seg.json export.file=m.onnx export.size=[65,49]"), 0);
    assert_int_equal(pumice("export seg.json export.file=m.onnx export.any_size=true"), 2);
    assert_file_contains("err", "the net depends on the size of its input");
    assert_null(strstr(read_text("err"), "up to export.size"));
    assert_int_equal(pumice("export let.json export.file=let.onnx export.any_size=true"), 0);
    assert_true(holds("let.onnx", "unchanged: pictures of any size"));
}

/* ---- classification ------------------------------------------------------------------------ */

static void classes(void **state)
{
    cJSON *four = report_of("eval let.json --json");
    cJSON *one = report_of("eval let.json --json eval.batch_size=1");
    cJSON *predicted = report_of("predict let.json photos/validation/c1 --json");

    (void)state;
    assert_true(number(four, "count") == 6 * LETTERS);
    same_evaluation(four, one, "a classifier in batches of 4 and 1");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(predicted, "images")), 6);
    cJSON_Delete(four);
    cJSON_Delete(one);
    cJSON_Delete(predicted);
}

/* A net whose weights depend on the input size refuses other sizes. */
static void does_not_fit(void **state)
{
    static const char fixed[] = "net.json data.folder=letters run.folder=fixed eval.resize=false";
    char arguments[256];

    (void)state;
    if (pumice("train net.json data.folder=letters run.folder=fixed run.steps=2") != 0)
        fail_msg("%s", read_text("err"));
    snprintf(arguments, sizeof arguments, "eval %s data.eval_split=validation", fixed);
    assert_int_equal(pumice(arguments), 2);
    assert_file_contains("err", "set eval.resize=true");
    assert_file_contains("err", "letters_validation");
    snprintf(arguments, sizeof arguments, "train %s data.eval_split=validation run.folder=first "
             "eval.every_steps=5", fixed);
    assert_int_equal(pumice(arguments), 2); /* before the first step */
    assert_file_contains("err", "letters_validation");
    assert_false(pm_is_folder(in_folder("first/checkpoints")));
    snprintf(arguments, sizeof arguments, "predict %s photos/validation/c1/p2.png", fixed);
    assert_int_equal(pumice(arguments), 2);
    assert_file_contains("err", "photos/validation/c1/p2.png: the net cannot take this picture at "
                                "its own size, an input of 11 x 13");
    snprintf(arguments, sizeof arguments, "predict %s photos/train/c1/p2.png", fixed);
    assert_int_equal(pumice(arguments), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(batches, set_up), cmocka_unit_test(one_by_one),
        cmocka_unit_test(damaged),               cmocka_unit_test(during_training),
        cmocka_unit_test(exported),              cmocka_unit_test(classes),
        cmocka_unit_test(does_not_fit),
    };

    return run_commands("eval_sizes_run_test", tests, PM_COUNT(tests), false);
}
