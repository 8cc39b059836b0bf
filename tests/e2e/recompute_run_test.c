/* Training with run.recompute ends with the same checkpoint as without it: on one device and on
 * several, in micro-batches, with short submissions, resumed with another setting, after the loss
 * of the device, and for a detector that mines hard examples. Traces and profiles name the calls
 * that run again. */
#include "base/command.h"

static const char net[] =
    "{ \"model\": { \"num_classes\": 4, \"layers\": ["
    "  { \"name\": \"c1\", \"layer\": \"conv2d\", \"filters\": 8, \"bias\": false },"
    "  { \"name\": \"n1\", \"layer\": \"batch_norm\", \"activation\": \"relu\", \"decay\": 0.9 },"
    "  { \"name\": \"c2\", \"layer\": \"conv2d\", \"filters\": 8, \"bias\": false },"
    "  { \"name\": \"n2\", \"layer\": \"batch_norm\", \"inputs\": [\"c2\", \"n1\"], \"decay\": 0.9,"
    "    \"activation\": \"relu\" },"
    "  { \"name\": \"d\", \"layer\": \"dropout\", \"keep\": 0.8 },"
    "  { \"name\": \"c3\", \"layer\": \"conv2d\", \"filters\": 8, \"activation\": \"relu\" },"
    "  { \"name\": \"s\", \"layer\": \"split\", \"sizes\": [3, 5] },"
    "  { \"name\": \"j\", \"layer\": \"concat\", \"inputs\": [\"s:1\", \"n1\", \"s:0\"] },"
    "  { \"name\": \"p\", \"layer\": \"max_pool\", \"kernel\": 2, \"stride\": 2 },"
    "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] },"
    "  \"data\": { \"folder\": \"shapes\", \"eval_split\": \"test\" },"
    "  \"input\": { \"preprocessing\": \"cifarnet\", \"size\": 12, \"channels\": 3 },"
    "  \"optim\": { \"name\": \"momentum\", \"weight_decay\": 1e-3 },"
    "  \"run\": { \"folder\": \"run\", \"batch_size\": 8, \"steps\": 12, \"save_every_steps\": 6 } "
    "}";

/* Maps of 8x8 and 4x4 with four anchors in a cell; the suppression of the miner drops some. */
static const char detector[] =
    "{ \"task\": \"detection\", \"model\": { \"num_classes\": 4, \"layers\": ["
    "  { \"name\": \"c0\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2, \"bias\": false },"
    "  { \"name\": \"n0\", \"layer\": \"batch_norm\", \"activation\": \"relu6\", \"decay\": 0.9 },"
    "  { \"name\": \"c1\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2, \"bias\": false },"
    "  { \"name\": \"n1\", \"layer\": \"batch_norm\", \"activation\": \"relu6\", \"decay\": 0.9 },"
    "  { \"name\": \"c2\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2, \"bias\": false },"
    "  { \"name\": \"n2\", \"layer\": \"batch_norm\", \"activation\": \"relu6\", \"decay\": 0.9 },"
    "  { \"name\": \"anchors\", \"layer\": \"ssd_anchors\", \"aspect_ratios\": [1, 2, 0.5],"
    "    \"reduce_boxes_in_lowest_layer\": false, \"inputs\": [\"images\", \"n1\", \"n2\"] },"
    "  { \"name\": \"boxes_1\", \"layer\": \"conv2d\", \"inputs\": [\"n1\"], \"filters\": 16 },"
    "  { \"name\": \"classes_1\", \"layer\": \"conv2d\", \"inputs\": [\"n1\"], \"filters\": 20 },"
    "  { \"name\": \"boxes_2\", \"layer\": \"conv2d\", \"inputs\": [\"n2\"], \"filters\": 16 },"
    "  { \"name\": \"classes_2\", \"layer\": \"conv2d\", \"inputs\": [\"n2\"],"
    "    \"filters\": 20 } ] },"
    "  \"data\": { \"folder\": \"shapes\", \"eval_split\": \"test\" },"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": 32 },"
    "  \"loss\": { \"classification\": { \"type\": \"weighted_sigmoid\" },"
    "            \"hard_example_miner\": { \"num_hard_examples\": 100, \"iou_threshold\": 0.7,"
    "              \"loss_type\": \"classification\", \"max_negatives_per_positive\": 3 } },"
    "  \"optim\": { \"name\": \"momentum\", \"weight_decay\": 1e-3 },"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },"
    "  \"run\": { \"folder\": \"run\", \"batch_size\": 8, \"steps\": 12, \"save_every_steps\": 6 } "
    "}";

static void train_net(const char *file, const char *name, const char *how)
{
    char arguments[512];

    snprintf(arguments, sizeof arguments, "train %s run.folder=%s %s", file, name, how);
    if (pumice(arguments) != 0)
        fail_msg("pumice %s: %s", arguments, read_text("err"));
}

static void train(const char *name, const char *how)
{
    train_net("skips.json", name, how);
}

static void same_end(const char *a, const char *b)
{
    char name[2][128];
    size_t bytes[2];
    char *data[2];

    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "%s/checkpoints/step-000012.safetensors", i ? b : a);
        data[i] = read_bytes(name[i], &bytes[i]);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(data[0], data[1], bytes[0]);
    pm_free(data[0]);
    pm_free(data[1]);
}

/* Compares the runs NAME-off, NAME-half and NAME-most. */
static void compare_net(const char *file, const char *name, const char *how)
{
    static const char *const modes[] = { "off", "half", "most" };
    char run[3][64], arguments[256];

    for (size_t i = 0; i < PM_COUNT(modes); i++) {
        snprintf(run[i], sizeof run[i], "%s-%s", name, modes[i]);
        snprintf(arguments, sizeof arguments, "run.recompute=%s %s", modes[i], how);
        train_net(file, run[i], arguments);
        if (i > 0) {
            assert_file_contains("err", "run again in the backward pass");
            same_end(run[0], run[i]);
        }
    }
}

static void compare(const char *name, const char *how)
{
    compare_net("skips.json", name, how);
}

static void test_cpu(void **state)
{
    (void)state;
    compare("cpu", "devices=cpu");
    compare("parts", "devices=cpu run.micro_batches=2");
}

static void test_clones(void **state)
{
    (void)state;
    compare("clones", "'devices=[\"cpu\",\"cpu\"]' run.micro_batches=2");
}

static void test_lavapipe(void **state)
{
    (void)state;
    need_device("llvmpipe");
    compare("lavapipe", "devices=llvmpipe run.segment_ms=1");
}

static void test_swiftshader(void **state)
{
    (void)state;
    need_device("SwiftShader");
    compare("swiftshader", "devices=SwiftShader run.verify=off");
}

static void test_detector(void **state)
{
    (void)state;
    compare_net("boxes.json", "boxes", "devices=cpu run.micro_batches=2");
    compare_net("boxes.json", "boxes-clones", "'devices=[\"cpu\",\"cpu\"]'");
}

static void test_detector_lavapipe(void **state)
{
    (void)state;
    need_device("llvmpipe");
    compare_net("boxes.json", "boxes-lavapipe", "devices=llvmpipe run.segment_ms=1");
}

/* Half of the steps with one setting, half with the other, in both orders. */
static void test_resumed(void **state)
{
    (void)state;
    train("one", "devices=cpu run.recompute=most run.steps=6");
    train("one", "devices=cpu");
    train("two", "devices=cpu run.steps=6");
    train("two", "devices=cpu run.recompute=most");
    same_end("cpu-off", "one");
    same_end("cpu-off", "two");
}

static void test_lost(void **state)
{
    (void)state;
    setenv("PM_LOSE", "0:5", 1);
    train("lost", "devices=cpu run.recompute=most run.snapshot_every_steps=2");
    unsetenv("PM_LOSE");
    assert_file_contains("err", "lost");
    same_end("cpu-off", "lost");
}

static void test_traced(void **state)
{
    (void)state;
    train("traced", "devices=cpu run.recompute=most run.trace_steps=[3,4]");
    same_end("cpu-off", "traced");
    assert_file_contains("traced/trace-000003.json", "batch_norm_apply");
}

static void test_profiled(void **state)
{
    cJSON *report = report_of("profile skips.json --synthetic --json devices=cpu "
                              "run.recompute=most"), *phase;
    cJSON *device = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "devices"), 0);
    bool again = false;

    (void)state;
    cJSON_ArrayForEach(phase, cJSON_GetObjectItem(device, "phases"))
        again |= strcmp(cJSON_GetObjectItem(phase, "name")->valuestring, "again") == 0;
    assert_true(again);
    cJSON_Delete(report);
}

/* The memory of the other plan is shown beside it, unless the config sets run.recompute. */
static void test_shown(void **state)
{
    cJSON *report = report_of("config show skips.json --plan --json devices=cpu");
    cJSON *clone = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "clones"), 0), *most;

    (void)state;
    most = cJSON_GetObjectItem(cJSON_GetObjectItem(clone, "recompute"), "most");
    assert_true(number(clone, "calls_again") == 0);
    assert_true(number(most, "calls_again") > 0);
    assert_true(number(most, "activations") < number(clone, "activations"));
    cJSON_Delete(report);
    report = report_of("config show skips.json --plan --json devices=cpu run.recompute=most");
    clone = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "clones"), 0);
    assert_true(number(clone, "calls_again") > 0);
    assert_null(cJSON_GetObjectItem(clone, "recompute"));
    cJSON_Delete(report);
}

static void write_nets(void)
{
    if (pm_file_write(in_folder("skips.json"), net, sizeof net - 1) < 0 ||
        pm_file_write(in_folder("boxes.json"), detector, sizeof detector - 1) < 0)
        fail_msg("%s", pm_error_text());
}

static void test_first(void **state)
{
    (void)state;
    write_nets();
    assert_int_equal(pumice("train skips.json run.recompute=some 2>&1"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),    cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_clones),   cmocka_unit_test(test_lavapipe),
        cmocka_unit_test(test_swiftshader), cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_lost),     cmocka_unit_test(test_traced),
        cmocka_unit_test(test_profiled), cmocka_unit_test(test_shown),
        cmocka_unit_test(test_detector), cmocka_unit_test(test_detector_lavapipe),
    };

    return run_commands("recompute_run_test", tests, PM_COUNT(tests), true);
}
