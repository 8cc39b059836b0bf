/* A detector of rotated boxes, by the program, on drawn bars: training that is killed or loses its
 * device ends with the same bits; clones of any shares, micro-batches and other drivers learn what
 * one CPU does; a net that learns finds the bars and their angles, which prediction writes; the
 * exported file; what `config check` says of its anchors; data without rotated boxes. */
#include "e2e/rotated_bars.h"

/* Maps of 8x8 and 4x4, each with two anchors at six angles in a cell. The activations are smooth,
 * so the loss of 20 steps differs by rounding only. */
#define CONV(name, more)                                                                           \
    "  { \"name\": \"" name "\", \"layer\": \"conv2d\", " more ", \"activation\": \"tanh\" },\n"
#define HEADS(level, map)                                                                          \
    "  { \"name\": \"boxes_" level "\", \"layer\": \"conv2d\", \"inputs\": [\"" map "\"],\n"       \
    "    \"filters\": 60 },\n"                                                                     \
    "  { \"name\": \"classes_" level "\", \"layer\": \"conv2d\", \"inputs\": [\"" map "\"],\n"     \
    "    \"filters\": 12, \"bias_init\": \"constant(-3)\" }"
static const char net[] =
    "{ \"task\": \"detection\", \"model\": { \"boxes\": \"rotated\", \"layers\": [\n"
    CONV("c1", "\"filters\": 16, \"kernel\": 5, \"stride\": 2")
    CONV("c2", "\"filters\": 24, \"stride\": 2")
    CONV("m1", "\"filters\": 48, \"stride\": 2")
    CONV("m2", "\"filters\": 48, \"stride\": 2")
    "  { \"name\": \"anchors\", \"layer\": \"ssd_anchors\", \"scales\": [0.17, 0.27],\n"
    "    \"aspect_ratios\": [2.5, 4.5], \"interpolated_scale_aspect_ratio\": 0,\n"
    "    \"reduce_boxes_in_lowest_layer\": false,\n"
    "    \"angles\": [-1.309, -0.7854, -0.2618, 0.2618, 0.7854, 1.309],\n"
    "    \"inputs\": [\"images\", \"m1\", \"m2\"] },\n"
    HEADS("1", "m1") ",\n" HEADS("2", "m2") " ],\n"
    "    \"matcher\": { \"matched_threshold\": 0.45, \"unmatched_threshold\": 0.3,\n"
    "                 \"force_match_for_each_row\": true },\n"
    "    \"post_processing\": { \"iou_threshold\": 0.3 } },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": 64,\n"
    "             \"augment\": [{ \"name\": \"random_flip\" }, { \"name\": \"random_rotate\" },\n"
    "                         { \"name\": \"resize\" }] },\n"
    "  \"optim\": { \"name\": \"momentum\", \"clip_norm\": 10 }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.02 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 16, \"batch_size\": 6,\n"
    "           \"log_every_steps\": 1, \"save_every_steps\": 4, \"keep\": 2 },\n"
    "  \"eval\": { \"every_steps\": 8, \"batch_size\": 8 } }\n";

static int make_data(void **state)
{
    (void)state;
    return make_bars(net);
}

/* Also where a miner chooses by overlaps. */
static void drivers(void **state)
{
    (void)state;
    follows_two_cpus("loss.classification.type=weighted_sigmoid "
                     "'loss.hard_example_miner={\"iou_threshold\": 0.7, "
                     "\"max_negatives_per_positive\": 3}'");
}

/* The net learns the training pictures. */
static void learns(void **state)
{
    (void)state;
    learn_bars(400);
    assert_true(eval_metric("learns", "map_50", "") >= 0.8);
    finds_bars();
}

/* Suppression is not in the file, and its rule is in the metadata. */
static void exported(void **state)
{
    struct result r = run(NULL, "export %s run.folder=%s %s", in("net.json"), in("learns"),
                          in("model.onnx"));
    char *model = NULL;
    size_t size;

    (void)state;
    assert_contains(r.out, "output raw_detection_boxes: float32 [N, 960, 5]");
    assert_contains(r.out, "output raw_detection_scores: float32 [N, 960, 1]");
    assert_null(strstr(r.out, "output detection_boxes"));
    assert_contains(r.out, "read again and run on the CPU: differs by at most ");
    check(r, 0);
    assert_int_equal(pm_file_read(in("model.onnx"), &model, &size), PM_OK);
    assert_non_null(memmem(model, size, "\"suppression\":", 14));
    pm_free(model);
}

/* The fit of the anchors, in overlaps of rotated boxes. */
static void checked(void **state)
{
    struct result r = run(NULL, "config check %s", in("net.json"));

    (void)state;
    assert_contains(r.out, "input 64x64: 960 anchors, ");
    assert_contains(r.out, "Other scales are tried for upright anchors only: model.boxes is "
                           "rotated.");
    check(r, 0);
}

/* Data without rotated boxes. */
static void refused(void **state)
{
    (void)state;
    check(run(NULL, "dataset make shapes %s size=64 train=4 validation=2 test=2", in("upright")),
          0);
    check(run(NULL, "train %s run.folder=%s data.folder=%s data.class_agnostic=true",
              in("net.json"), in("bad"), in("upright")), 2,
          "the record has upright boxes only, but model.boxes is rotated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(same_after_loss),
        cmocka_unit_test(same_in_parts),    cmocka_unit_test(drivers),
        cmocka_unit_test(learns),           cmocka_unit_test(exported),
        cmocka_unit_test(checked),          cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
