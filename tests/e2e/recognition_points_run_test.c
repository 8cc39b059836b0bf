/* The loss of a spatial transformer's control points, by the program, on drawn words. Its value is
 * compared with double precision. Training is killed. Clones train, and one of them has pictures
 * without key points. Then evaluation, prediction and mistakes. */
#include "e2e/interrupted.h"
#include <pumice/data.h>

#include "formats/tfrecord.h"

/* The control points begin at the corners and between them: the pattern identity. */
enum { POINTS = 8, HALF = POINTS / 2 };
#define WEIGHT 40
static const char net[] =
    "{ \"task\": \"recognition\", \"model\": { \"transformer\": \"tps\",\n"
    "  \"spatial_transformer\": { \"output_h\": 16, \"output_w\": 48, \"num_control_points\": 8,\n"
    "    \"localization_depth\": 0.125, \"batch_norm_decay\": 0.9 }, \"layers\": [\n"
    "    { \"name\": \"c1\", \"layer\": \"conv2d\", \"filters\": 16, \"stride\": 2,\n"
    "      \"activation\": \"relu\" },\n"
    "    { \"name\": \"c2\", \"layer\": \"conv2d\", \"filters\": 32, \"stride\": 2,\n"
    "      \"activation\": \"relu\" },\n"
    "    { \"name\": \"c3\", \"layer\": \"conv2d\", \"filters\": 32, \"kernel\": [4, 3],\n"
    "      \"padding\": \"valid\", \"activation\": \"relu\" },\n"
    "    { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 1 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"validation\", \"threads\": 1,\n"
    "            \"charset\": \"%s/letters.txt\", \"max_num_steps\": 4 },\n"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": [16, 48] },\n"
    "  \"loss\": { \"keypoint_weight\": 40 },\n"
    "  \"optim\": { \"name\": \"adam\", \"clip_norm\": 10, \"moving_average_decay\": 0.9 },\n"
    "  \"schedule\": { \"base_lr\": 0.003 }, \"devices\": [\"cpu\"],\n"
    "  \"run\": { \"steps\": 16, \"batch_size\": 6, \"save_every_steps\": 4,\n"
    "           \"log_every_steps\": 1 },\n"
    "  \"eval\": { \"every_steps\": 8, \"batch_size\": 4 } }\n";

static int make_data(void **state)
{
    (void)state;
    if (make_world(false) < 0)
        return -1;
    check(run(NULL, "dataset make words %s letters=abcd most=3 height=16 train=4 validation=3 "
              "test=1", in("data")), 0);
    put_text(in("letters.txt"), "a\nb\nc\nd\n");
    put_net(net);
    return 0;
}

/* ---- the loss ------------------------------------------------------------------------------ */

/* The errors of the untrained control points of a record. Its edges are straight, so their points
 * are at equal shares of the way. distance: in pixels of 16 x 48. */
static void errors_of(const struct pm_example *e, double *squared, double *distance)
{
    const float *v = NULL;
    int64_t size[2];
    size_t n = 0;

    assert_int_equal(pm_example_floats(e, "image/keypoints", &v, &n), 1);
    assert_int_equal(n, 8);
    assert_int_equal(pm_example_int(e, "image/width", &size[0]), 1);
    assert_int_equal(pm_example_int(e, "image/height", &size[1]), 1);
    *squared = *distance = 0;
    for (int k = 0; k < POINTS; k++) {
        const double share = (double)(k % HALF) / (HALF - 1), start[] = { share, k >= HALF };
        const float *end = v + 4 * (k / HALF);
        double off[2];

        for (int c = 0; c < 2; c++)
            off[c] = start[c] - ((1 - share) * end[c] + share * end[2 + c]) / (double)size[c];
        *squared += (off[0] * off[0] + off[1] * off[1]) / (2 * POINTS);
        *distance += hypot(48 * off[0], 16 * off[1]) / POINTS;
    }
}

/* The mean of the untrained net's errors over a split. */
static void mean_errors(const char *split, size_t count, double *squared, double *distance)
{
    struct pm_dataset *d = NULL;
    uint8_t *bytes = NULL;
    size_t capacity = 0, size = 0;

    assert_int_equal(pm_dataset_open(in("data"), split, &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, count);
    *squared = *distance = 0;
    for (size_t i = 0; i < count; i++) {
        struct pm_example *e = NULL;
        double one, far;

        assert_int_equal(pm_dataset_read(d, i, &bytes, &capacity, &size), PM_OK);
        assert_int_equal(pm_example_parse(bytes, size, "a record", &e), PM_OK);
        errors_of(e, &one, &far);
        *squared += one / (double)count;
        *distance += far / (double)count;
        pm_example_destroy(&e);
    }
    pm_free(bytes);
    pm_dataset_close(&d);
}

/* Step 1 sees each of the four training pictures once. Differences of shares near 0.05 lose 2^-24
 * of 1, and squares twice as much of themselves: 2.4e-6. Evaluation before any learning. */
static void is_the_mean(void **state)
{
    double squared, distance;
    cJSON *report;

    (void)state;
    train("first", "run.steps=1 run.batch_size=4 eval.every_steps=0");
    mean_errors("train", 4, &squared, &distance);
    assert_true(fabs(logged("first", 1, "keypoint_loss") / (WEIGHT * squared) - 1) < 1e-5);
    assert_true(fabs(logged("first", 1, "loss") - logged("first", 1, "main_loss") -
                     logged("first", 1, "keypoint_loss")) < 1e-5 * logged("first", 1, "loss"));
    train("still", "run.steps=1 schedule.base_lr=1e-30 eval.every_steps=0");
    mean_errors("validation", 3, &squared, &distance);
    report = eval_report("still", "");
    const cJSON *metrics = cJSON_GetObjectItem(report, "metrics");
    const double whole = number_of(metrics, "loss");

    assert_true(fabs(number_of(metrics, "keypoint_distance") / distance - 1) < 1e-5);
    cJSON_Delete(report);
    report = eval_report("still", "loss.keypoint_weight=0");
    metrics = cJSON_GetObjectItem(report, "metrics");
    assert_true(fabs((whole - number_of(metrics, "loss")) / (WEIGHT * squared) - 1) < 1e-4);
    assert_true(fabs(number_of(metrics, "keypoint_distance") / distance - 1) < 1e-5);
    cJSON_Delete(report);
}

/* The loss moves the points to the edges, and prediction writes where they are. */
static void moves_points(void **state)
{
    struct result r;
    cJSON *report, *points;
    double squared, distance;

    (void)state;
    mean_errors("train", 4, &squared, &distance);
    train("moves", "run.steps=300 eval.every_steps=0 run.log_every_steps=100 loss.keypoint_weight="
          "400 schedule.policy=cosine");
    report = eval_report("moves", "data.eval_split=train");
    assert_true(number_of(cJSON_GetObjectItem(report, "metrics"), "keypoint_distance") <
                distance / 3);
    cJSON_Delete(report);
    check(run(NULL, "dataset inspect %s/data --records 1 --pictures %s --boxes %s", folder,
              in("words"), in("drawn")), 0);
    assert_true(pm_file_exists(in("drawn/words_train_00000.png")));
    r = run(NULL, "predict %s run.folder=%s %s --json", in("net.json"), in("moves"), in("words"));
    report = json_of(&r);
    points = cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(report, "images"), 0),
                                 "control_points");
    assert_int_equal(cJSON_GetArraySize(points), POINTS);
    for (int k = 0; k < POINTS; k++) {
        const cJSON *point = cJSON_GetArrayItem(points, k);
        const double y = cJSON_GetArrayItem(point, 1)->valuedouble;

        assert_int_equal(cJSON_GetArraySize(point), 2);
        assert_true(k < HALF ? y < 0.5 : y > 0.5);
    }
    cJSON_Delete(report);
    check(r, 0);
}

/* Whether `config check` warns that no record has key points. */
static void check_finds(const char *data, const char *options, bool expected)
{
    struct result r = run(NULL, "config check %s data.folder=%s/%s data.eval_split=train %s",
                          in("net.json"), folder, data, options);

    assert_int_equal(strstr(r.out, "warning: loss.keypoint_weight: no record of train has "
                            "image/keypoints, so the option has no effect.") != NULL, expected);
    check(r, 0);
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* Of a batch of six, four come from a folder with key points and two from one without, so one of
 * the unequal clones has all key points and the other none. Only the biases of the control points
 * learn: at first nothing else of the localization net, whose batch norm depends on the parts, has
 * an effect. */
static void in_parts(void **state)
{
    char options[400];
    double squared, distance;

    (void)state;
    check(run(NULL, "dataset inspect %s/data --records 4 --pictures %s", folder, in("plain")), 0);
    put_text(in("plain/labels.txt"), "words_train_00000.png ab\nwords_train_00001.png c\n");
    check(run(NULL, "dataset convert words %s %s validation=0", in("plain"), in("without")), 0);
    snprintf(options, sizeof options, "'data.folders=[{\"folder\":\"%s/data\",\"batch\":4},"
             "{\"folder\":\"%s/without\",\"batch\":2}]' "
             "'optim.trainable=[\"LocalizationNet/fc2/biases\"]'", folder, folder);
    assert_same_in_parts("", options);
    mean_errors("train", 4, &squared, &distance);
    for (int k = 0; k < 3; k++) {
        static const char *const ways[] = { "one", "two", "micro" };

        assert_true(fabs(logged(ways[k], 1, "keypoint_loss") / (WEIGHT * squared) - 1) < 1e-5);
        assert_true(logged(ways[k], 10, "keypoint_loss") < logged(ways[k], 1, "keypoint_loss"));
        assert_true(fabs(logged(ways[k], 10, "keypoint_loss") / logged("one", 10, "keypoint_loss") -
                         1) < 1e-5);
    }
    check_finds("without", "", true);
    check_finds("without", "loss.keypoint_weight=0", false);
    check_finds("data", "", false);
    /* A batch without any key point. */
    snprintf(options, sizeof options, "data.folder=%s/without run.steps=2 run.batch_size=2 "
             "eval.every_steps=0", folder);
    train("none", options);
    assert_true(logged("none", 2, "keypoint_loss") == 0);
    assert_true(logged("none", 2, "loss") > 0);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s model.transformer=none model.spatial_transformer=null",
              in("net.json"), in("bad")), 2,
          "loss.keypoint_weight: 40 has no effect with model.transformer=none: remove it, or set "
          "model.transformer=tps");
    check(run(NULL, "train %s run.folder=%s loss.keypoint_weight=-1", in("net.json"), in("bad")), 2,
          "loss.keypoint_weight: -1 is outside 0..");
}

/* Two lists of five points behind a right one, in a folder of their own. Inspection finds both.
 * Without the loss, training does not read them, and evaluation leaves them out. */
static void bad_points(void **state)
{
    static const float five[] = { 1, 1, 9, 1, 1, 9, 9, 9, 5, 5 };
    struct pm_image8 im = { 16, 24, 3, NULL };
    struct pm_tfrecord_writer *w = NULL;
    uint8_t *png = NULL;
    size_t size = 0;
    struct result r;
    cJSON *report;

    (void)state;
    im.pixels = pm_calloc(16 * 24 * 3, 1);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    assert_int_equal(pm_make_folders(in("five")), PM_OK);
    assert_int_equal(pm_tfrecord_create(in("five/train-00000-of-00001"), &w), PM_OK);
    for (int i = 0; i < 3; i++) {
        struct pm_example_builder *b = pm_example_builder_create();
        uint8_t *bytes = NULL;
        size_t length = 0;

        pm_example_add_bytes(b, "image/encoded", png, size);
        pm_example_add_bytes(b, "image/transcript", "a", 1);
        pm_example_add_floats(b, "image/keypoints", five, i == 0 ? 8 : 10);
        pm_example_serialise(b, &bytes, &length);
        assert_int_equal(pm_tfrecord_write(w, bytes, length), PM_OK);
        pm_example_builder_destroy(&b);
        pm_free(bytes);
    }
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
    check(run(NULL, "train %s run.folder=%s data.folder=%s run.batch_size=1 eval.every_steps=0",
              in("net.json"), in("bad"), in("five")), 3,
          "image/keypoints: 10 numbers; a multiple of 4 from 8");
    r = run(NULL, "dataset inspect %s --check", in("five"));
    assert_contains(r.out, "none x 3\n");
    for (int i = 1; i < 3; i++) {
        char warning[40];

        snprintf(warning, sizeof warning, "train-00000-of-00001 record %d (", i);
        assert_contains(r.err, warning);
    }
    check(r, 3, "five: 2 records have wrong image/keypoints: correct or remove the key. The ",
          "first: ", "train-00000-of-00001 record 1 (", "): image/keypoints: 10 numbers");
    check(run(NULL, "train %s run.folder=%s data.folder=%s run.batch_size=1 eval.every_steps=0 "
              "run.steps=1 loss.keypoint_weight=0", in("net.json"), in("unread"), in("five")), 0);
    r = run(NULL, "eval %s run.folder=%s data.folder=%s data.eval_split=train "
            "loss.keypoint_weight=0 --json", in("net.json"), in("unread"), in("five"));
    report = json_of(&r);
    assert_true(number_of(cJSON_GetObjectItem(report, "metrics"), "keypoint_distance") > 0);
    cJSON_Delete(report);
    check(r, 0, "image/keypoints: 10 numbers", "keypoint_distance leaves out this record");
    check(run(NULL, "eval %s run.folder=%s data.folder=%s data.eval_split=train",
              in("net.json"), in("unread"), in("five")), 3, "image/keypoints: 10 numbers");
    pm_image_free(&im);
    pm_free(png);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(is_the_mean),
        cmocka_unit_test(moves_points), cmocka_unit_test(in_parts), cmocka_unit_test(refused),
        cmocka_unit_test(bad_points),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
