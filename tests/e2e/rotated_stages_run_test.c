/* Two stages of rotated boxes by the program, on drawn bars: training that is killed or loses its
 * device ends with the same bits; clones of any shares, micro-batches and other drivers learn what
 * one CPU does; a net that learns finds the bars and their angles, and evaluation says which stage
 * loses objects; prediction; one stage alone; other options; what is not available. */
#include "e2e/rotated_bars.h"

/* A map of 8x8 cells, each with two anchors at six angles. The activations are smooth, so losses
 * differ by rounding only. */
#define CONV(name, more)                                                                           \
    "  { \"name\": \"" name "\", \"layer\": \"conv2d\", " more ", \"activation\": \"tanh\" }"
static const char net[] =
    "{ \"task\": \"detection\", \"model\": { \"name\": \"faster_rcnn_mobilenet_v1\",\n"
    "    \"boxes\": \"rotated\", \"first_stage_layers\": [\n"
    CONV("c1", "\"filters\": 16, \"kernel\": 5, \"stride\": 2") ",\n"
    CONV("c2", "\"filters\": 24, \"stride\": 2") ",\n"
    CONV("c3", "\"filters\": 48, \"stride\": 2") " ],\n"
    "    \"second_stage_layers\": [" CONV("d1", "\"filters\": 48, \"kernel\": 3") "],\n"
    "    \"first_stage_box_predictor_depth\": 48, \"initial_crop_size\": 8,\n"
    "    \"anchors\": { \"scales\": [0.043, 0.068], \"aspect_ratios\": [3],\n"
    "      \"angles\": [-1.309, -0.7854, -0.2618, 0.2618, 0.7854, 1.309] },\n"
    "    \"matcher\": { \"matched_threshold\": 0.45, \"unmatched_threshold\": 0.3,\n"
    "                 \"force_match_for_each_row\": true },\n"
    "    \"proposals\": { \"iou_threshold\": 0.6, \"max_proposals\": 40 } },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"size\": 64, \"augment\": [{ \"name\": \"random_flip\" },\n"
    "                                       { \"name\": \"random_rotate\" },\n"
    "                                       { \"name\": \"resize\" }] },\n"
    "  \"loss\": { \"minibatch_sampler\": { \"batch_size\": 64 },\n"
    "            \"proposal_sampler\": { \"batch_size\": 16, \"iou_threshold\": 0.4 } },\n"
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

/* All proposals train the second stage: those of the anchors inside the input. So no order of
 * nearly equal scores matters (small_rcnn.h). */
#define ALL                                                                                        \
    "model.proposals='{\"max_proposals\":200,\"iou_threshold\":1}' "                               \
    "model.anchors.angles='[-0.7854,0.7854]' "                                                     \
    "loss.proposal_sampler='{\"batch_size\":200,\"positive_fraction\":1,\"iou_threshold\":0.3}' "

static void in_parts(void **state)
{
    double all;

    (void)state;
    assert_same_in_parts("second_", "'optim.trainable=[\"SecondStage\"]'");
    assert_same_in_parts("both_", ALL);
    all = logged("both_one", 1, "positive_proposals") + logged("both_one", 1, "negative_proposals");
    assert_true(all > 64 && all < 200);
    for (int step = 1; step <= 10; step++) {
        const double objects = logged("both_one", step, "positive_proposals");
        const double others = logged("both_one", step, "negative_proposals");

        assert_true(objects > 0 && fabs(objects + others - all) < 1e-9);
    }
}

static void drivers(void **state)
{
    (void)state;
    follows_two_cpus(ALL);
}

/* The net learns the training pictures. A trial gave a map_50 of 0.999. */
static void learns(void **state)
{
    cJSON *report, *stages;
    double sum = 0;

    (void)state;
    learn_bars(800);
    report = eval_report("learns", "data.eval_split=train");
    const cJSON *metrics = cJSON_GetObjectItem(report, "metrics");

    assert_true(number_of(metrics, "map_50") >= 0.9);
    assert_true(number_of(metrics, "proposal_recall_50") >= 0.95);
    stages = cJSON_GetObjectItem(report, "stages");
    sum = number_of(stages, "found") + number_of(stages, "no_proposal") +
          number_of(stages, "rejected") + number_of(stages, "suppressed");
    assert_true(sum > 0 && sum == number_of(stages, "objects"));
    assert_true(number_of(stages, "found") >= 0.9 * sum);
    cJSON_Delete(report);
}

static void predicted(void **state)
{
    (void)state;
    finds_bars();
}

/* The first stage alone finds boxes of one class. Its model has no suppression, and pruned anchors
 * have the score 0 in it. */
static void one_stage(void **state)
{
    static const char one[] =
        "model.number_of_stages=1 data.class_agnostic=true loss.proposal_sampler=null run.steps=4";
    struct result r;

    (void)state;
    train("first", one);
    r = run(NULL, "export %s run.folder=%s %s %s", in("net.json"), in("first"), one,
            in("model.onnx"));
    assert_contains(r.out, "output raw_detection_boxes: float32 [N, 768, 5]");
    assert_contains(r.out, "read again and run on the CPU: differs by at most ");
    check(r, 0);
}

/* Other layers and other boxes: mined proposals, one box for all classes, true boxes among the
 * proposals, suppression by class, anchors that reach outside, and a wider input. */
static void variants(void **state)
{
    static const char *const names[] = { "loss/localization_loss", "loss/classification_loss",
                                         "second_stage_loss/localization_loss",
                                         "second_stage_loss/classification_loss" };
    static const char *const more[] = {
        "loss.hard_example_miner='{\"num_hard_examples\":8}'",
        "model.second_stage_box_predictor='{\"share_box_across_classes\":true}'",
        "loss.proposal_sampler='{\"append_truth\":true,\"batch_size\":16}'",
        "model.post_processing='{\"score_converter\":\"softmax\"}'",
        "model.anchors_outside=keep",
        "input.size='[64,96]'",
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(more); i++) {
        char text[512], name[32];

        snprintf(text, sizeof text, "run.steps=4 eval.every_steps=4 %s", more[i]);
        snprintf(name, sizeof name, "variant%zu", i);
        train(name, text);
        for (size_t k = 0; k < PM_COUNT(names); k++)
            assert_true(isfinite(logged(name, 4, names[k])) && logged(name, 4, names[k]) > 0);
        assert_true(isfinite(logged_eval(name, 4, "loss")));
    }
}

static void checked(void **state)
{
    struct result r = run(NULL, "config check %s", in("net.json"));

    (void)state;
    assert_contains(r.out, "input 64x64: 768 anchors, ");
    check(r, 0);
}

static void refused(void **state)
{
    static const struct { const char *more, *message; } bad[] = {
        { "model.second_stage_box_predictor='{\"type\":\"rfcn\"}'",
          "model.second_stage_box_predictor.type: rfcn, but model.boxes is rotated" },
        { "data.instance_masks=true", "nets with model.boxes=rotated predict no masks" },
        { "data.num_keypoints=4", "nets with model.boxes=rotated predict no keypoints" },
        { "model.anchors_outside=clip", "a rotated anchor that is clipped is no rectangle" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++)
        check(run(NULL, "train %s run.folder=%s %s", in("net.json"), in("bad"), bad[i].more), 2,
              bad[i].message);
    check(run(NULL, "export %s run.folder=%s %s", in("net.json"), in("learns"), in("model.onnx")),
          2, "ONNX has no suppression of rotated boxes: set model.number_of_stages=1, export");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(same_after_loss),
        cmocka_unit_test(in_parts),         cmocka_unit_test(drivers),
        cmocka_unit_test(learns),           cmocka_unit_test(predicted),
        cmocka_unit_test(one_stage),        cmocka_unit_test(variants),
        cmocka_unit_test(checked),          cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
