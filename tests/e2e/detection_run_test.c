/* Detection by the program on drawn shapes: training, killed and started again or after a lost
 * device, ends with the same bits; clones of any shares learn what one would; evaluation writes its
 * detections in pixels of the files; predict and export. */
#include "e2e/interrupted.h"
#include "e2e/small_detector.h"

#include <pumice/onnx.h>

static int make_data(void **state)
{
    (void)state;
    return make_shapes(small_detector, 40, 50, 21);
}

/* By default all devices divide by the matches of the whole batch. A divisor of each clone gives
 * another loss. */
static void divisor_of_clone(void **state)
{
    (void)state;
    train("one", "run.steps=10 eval.every_steps=0");
    train("apart", "run.steps=10 eval.every_steps=0 run.micro_batches=3 loss.normalize_over=clone");
    assert_true(fabs(logged("one", 1, "loss") - logged("apart", 1, "loss")) >
                1e-4 * logged("one", 1, "loss"));
}

/* The miner chooses in each picture, so it does the same in any clone. */
static void mining_clones(void **state)
{
    static const char more[] =
        "run.steps=10 eval.every_steps=0 loss.classification.type=weighted_sigmoid "
        "loss.hard_example_miner.max_negatives_per_positive=3";
    char text[512];

    (void)state;
    train("mine_one", more);
    snprintf(text, sizeof text, "%s '%s'", more,
             "devices=[{\"name\":\"cpu\",\"share\":2},{\"name\":\"cpu\",\"share\":1}]");
    train("mine_two", text);
    same_losses("mine_one", "mine_two", 1, 10, 1e-5);
}

/* The records have one class for each box and no soft labels, so both kinds of targets are 1 for
 * the class and 0 for others: the loss is that of classes, apart from rounding. */
static void targets_of_classes(void **state)
{
    static const char *const keys[] = { "merge_multiple_label_boxes", "multiclass_scores" };
    static const char more[] = "run.steps=10 eval.every_steps=0";
    char text[256];

    (void)state;
    train("classes", more);
    for (size_t i = 0; i < PM_COUNT(keys); i++) {
        snprintf(text, sizeof text, "%s data.%s=true", more, keys[i]);
        train(keys[i], text);
        same_losses("classes", keys[i], 1, 10, 1e-5);
        check(run(NULL, "config check %s data.%s=true", in("net.json"), keys[i]), 0);
    }
}

static void reported(void **state)
{
    const double anchors = logged("whole", 7, "positive_anchors") +
                           logged("whole", 7, "negative_anchors") +
                           logged("whole", 7, "ignored_anchors");

    (void)state;
    assert_true(fabs(anchors - 40) < 1e-9);
    assert_true(logged("whole", 7, "true_boxes") >= 1);
    assert_true(logged("whole", 7, "matched_boxes") <= logged("whole", 7, "true_boxes"));
    assert_true(logged("whole", 7, "loss/localization_loss") > 0);
    assert_true(has_tag(in("whole"), "TargetAssignment/AvgNumPositiveAnchorsPerImage"));
    assert_true(has_tag(in("whole/eval"), "DetectionBoxes_Precision/mAP_.50IOU"));
    assert_true(has_tag(in("whole"), "images/truth/0"));
}

static void evaluated(void **state)
{
    struct result r =
        run(NULL, "eval %s run.folder=%s --json", in("net.json"), in("whole"));
    cJSON *report = json_of(&r), *metrics = cJSON_GetObjectItem(report, "metrics"), *list, *row;
    char *text;

    (void)state;
    assert_true(number_of(report, "count") == 21);
    assert_in_range((int)(100 * number_of(metrics, "map_50")), 0, 100);
    assert_true(number_of(metrics, "loss") > 0);
    assert_true(cJSON_HasObjectItem(metrics, "voc_map"));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(metrics, "per_class_ap")), 4);
    row = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "per_class"), 0);
    assert_true(number_of(row, "label") == 1); /* the number of the label map */
    cJSON_Delete(report);
    check(r, 0);
    text = get_text(in("whole/eval_test/detections.json"));
    list = cJSON_Parse(text);
    assert_true(cJSON_GetArraySize(list) > 0);
    cJSON_ArrayForEach(row, list)
    {
        const cJSON *box = cJSON_GetObjectItem(row, "bbox");
        const double x = cJSON_GetArrayItem(box, 0)->valuedouble;

        assert_contains(cJSON_GetStringValue(cJSON_GetObjectItem(row, "image_id")), "test_0000");
        assert_in_range((int)number_of(row, "category_id"), 1, 4);
        assert_true(x >= 0 && x + cJSON_GetArrayItem(box, 2)->valuedouble <= 40.001);
    }
    cJSON_Delete(list);
    pm_free(text);
}

/* list is the scores of best F1 by class in these metrics; a class without one has that of all. */
static void are_best(const cJSON *list, const cJSON *metrics)
{
    const cJSON *expected = cJSON_GetObjectItem(metrics, "per_class_best_score");

    assert_int_equal(cJSON_GetArraySize(expected), 4);
    assert_int_equal(cJSON_GetArraySize(list), 4);
    for (int c = 0; c < 4; c++) {
        const cJSON *v = cJSON_GetArrayItem(expected, c);

        assert_true(cJSON_GetArrayItem(list, c)->valuedouble ==
                    (cJSON_IsNumber(v) ? v->valuedouble : number_of(metrics, "best_score")));
    }
}

/* eval.score_threshold=best in predictions and in the metadata of an exported model. */
static void best_thresholds(void)
{
    struct result r = run(NULL, "eval %s run.folder=%s --json", in("net.json"), in("whole"));
    cJSON *report = json_of(&r), *shown, *note;
    const cJSON *metrics = cJSON_GetObjectItem(report, "metrics");
    struct pm_onnx_model *m = NULL;

    assert_true(number_of(metrics, "best_score") < 1);
    check(r, 0);
    r = run(NULL, "predict %s run.folder=%s %s eval.score_threshold=best --json", in("net.json"),
            in("whole"), in("one.ppm"));
    shown = json_of(&r);
    are_best(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(shown, "images"), 0),
                                 "score_threshold"), metrics);
    cJSON_Delete(shown);
    check(r, 0);
    check(run(NULL, "export %s run.folder=%s eval.score_threshold=best export.file=%s",
              in("net.json"), in("whole"), in("best.onnx")), 0);
    assert_int_equal(pm_onnx_read(in("best.onnx"), &m), PM_OK);
    note = cJSON_Parse(pm_onnx_meta(m, "detection"));
    are_best(cJSON_GetObjectItem(note, "score_threshold"), metrics);
    cJSON_Delete(note);
    pm_onnx_close(&m);
    cJSON_Delete(report);
}

/* Without an evaluation there is no best score: a run of 2 steps has none. */
static void no_best_scores(void)
{
    static const char says[] = "eval.score_threshold: best needs an evaluation with these 4 "
                               "classes in ";

    train("young", "run.steps=2 eval.every_steps=0 eval.score_threshold=best");
    check(run(NULL, "predict %s run.folder=%s %s eval.score_threshold=best", in("net.json"),
              in("young"), in("one.ppm")), 2, says);
    check(run(NULL, "export %s run.folder=%s eval.score_threshold=best export.file=%s",
              in("net.json"), in("young"), in("young.onnx")), 2, says);
    assert_false(pm_file_exists(in("young.onnx")));
}

/* A picture of 24 x 48 pixels: boxes are in its own pixels. */
static void predicted(void **state)
{
    struct result r;
    cJSON *report, *image, *row;

    (void)state;
    put_halves("one.ppm");
    r = run(NULL, "predict %s run.folder=%s %s --out %s --json", in("net.json"), in("whole"),
            in("one.ppm"), in("painted"));
    report = json_of(&r);
    image = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "images"), 0);
    assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(image, "size"), 1)->valueint == 48);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(image, "boxes"))
    {
        const cJSON *box = cJSON_GetObjectItem(row, "box");

        assert_true(cJSON_GetArrayItem(box, 2)->valuedouble <= 24);
        assert_true(cJSON_GetArrayItem(box, 3)->valuedouble <= 48);
        assert_non_null(cJSON_GetObjectItem(row, "name"));
    }
    assert_true(pm_file_exists(in("painted/one.png")));
    cJSON_Delete(report);
    check(r, 0);
    best_thresholds();
    no_best_scores();
}

static void exported(void **state)
{
    static const char *const all[] = {
        "output detection_boxes: float32 [N, 100, 4]", "output detection_scores: float32 [N, 100]",
        "output detection_classes: float32 [N, 100]", "output num_detections: float32 [N]",
        "output raw_detection_boxes: float32 [N, 40, 4]",
        "output raw_detection_scores: float32 [N, 40, 4]", "read again and run on the CPU",
    };
    struct result r = run(NULL, "export %s run.folder=%s", in("net.json"), in("whole"));

    (void)state;
    for (size_t i = 0; i < PM_COUNT(all); i++)
        assert_contains(r.out, all[i]);
    check(r, 0);
    r = run(NULL, "export %s run.folder=%s export.nms=false export.file=%s", in("net.json"),
            in("whole"), in("raw.onnx"));
    assert_contains(r.out, "output raw_detection_boxes");
    assert_null(strstr(r.out, "num_detections"));
    check(r, 0);
}

/* The losses of the original's SSD. */
static void other_losses(void **state)
{
    (void)state;
    train("mined", "run.steps=4 eval.every_steps=0 loss.classification.type=weighted_sigmoid "
                   "loss.hard_example_miner.max_negatives_per_positive=3");
    train("scaled", "run.steps=4 eval.every_steps=0 loss.normalize_loc_by_codesize=true "
                    "loss.normalize_by_matches=false loss.localization.type=weighted_l2");
    assert_true(logged("mined", 1, "loss/classification_loss") > 0);
    assert_true(logged("scaled", 1, "loss/localization_loss") >
                logged("mined", 1, "loss/localization_loss"));
    check(run(NULL, "train %s run.folder=%s loss.hard_example_miner.iou_threshold=0.5",
              in("net.json"), in("bad")), 2, "which weights easy anchors down by itself");
}

/* A loss that is not finite names the records of its batch. */
static void diverges(void **state)
{
    struct result r = run(NULL, "train %s run.folder=%s schedule.base_lr=1000 eval.every_steps=0 "
                          "loss.localization.type=weighted_l2", in("net.json"), in("wild"));

    (void)state;
    assert_contains(r.err, "records of its batch: ");
    assert_contains(r.err, ": train_0000");
    check(r, 1, "the loss is ", "in the records of its batch");
}

/* The means of mined anchors belong to the whole batch: clones of unequal parts and micro-batches
 * report the same, before the first update exactly. Each image keeps at most three unmatched
 * anchors for a matched one. */
static void mined(void **state)
{
    static const char *const keys[] = { "mined_positives", "mined_negatives" };
    static const char *const ways[][2] = {
        { "mined_one", "" },
        { "mined_two", "'devices=[{\"name\":\"cpu\",\"share\":2},"
                       "{\"name\":\"cpu\",\"share\":1}]'" },
        { "mined_parts", "run.micro_batches=3" } };
    double first[2];
    char text[512];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(ways); i++) {
        snprintf(text, sizeof text, "run.steps=1 eval.every_steps=0 "
                 "loss.classification.type=weighted_sigmoid loss.hard_example_miner.loss_type="
                 "classification loss.hard_example_miner.max_negatives_per_positive=3 %s",
                 ways[i][1]);
        train(ways[i][0], text);
        for (int k = 0; k < 2; k++) {
            const double v = logged(ways[i][0], 1, keys[k]);

            first[k] = i ? first[k] : v;
            assert_true(v == first[k]);
        }
    }
    assert_true(first[0] > 0 && first[0] <= logged("mined_one", 1, "positive_anchors"));
    assert_true(first[1] > 0 && first[1] <= 3 * first[0]);
    assert_true(has_tag(in("mined_one"), "HardExampleMiner/NumPositives"));
    assert_true(has_tag(in("mined_one"), "HardExampleMiner/NumNegatives"));
    assert_false(has_tag(in("whole"), "HardExampleMiner/NumPositives"));
}

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s loss.classification.type=weighted_softmax",
              in("net.json"), in("bad")), 2, "weighted_softmax needs a background class");
    check(run(NULL, "config check %s model.layers=null model.name=ssd_mobilenet_v2 input.size=64 "
              "model.background_class=false loss.classification.type=weighted_softmax",
              in("net.json")), 2, "set model.background_class=true");
    check(run(NULL, "train %s run.folder=%s eval.score_threshold=1.5", in("net.json"), in("bad")),
          2, "eval.score_threshold: a number of 0 to 1 is needed, or \"best\"");
    check(run(NULL, "train %s run.folder=%s model.layers.4.filters=7", in("net.json"), in("bad")),
          2, "the net's layer boxes_1 has 7 channels");
    check(run(NULL, "train %s run.folder=%s model.number_of_stages=1", in("net.json"), in("bad")),
          2, "model.number_of_stages: 1, but only faster_rcnn nets have stages: remove the key");
    check(run(NULL, "train %s run.folder=%s model.proposals={}", in("net.json"), in("bad")), 2,
          "model.proposals: only faster_rcnn nets propose regions: remove the key");
    check(run(NULL, "train %s run.folder=%s eval.metrics='[\"coco\",\"voc_masks\"]'",
              in("net.json"), in("bad")), 2, "eval.metrics: the net predicts no masks: remove "
          "coco_masks and voc_masks");
    check(run(NULL, "train %s run.folder=%s model.num_classes=3", in("net.json"), in("bad")), 2,
          "raise model.num_classes");
    check(run(NULL, "config check %s model.post_processing.max_classes_per_detection=2",
              in("net.json")), 2, "2 has an effect only with use_class_agnostic_nms=true");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(same_after_loss),
        cmocka_unit_test(same_in_parts), cmocka_unit_test(reported), cmocka_unit_test(evaluated),
        cmocka_unit_test(predicted), cmocka_unit_test(exported), cmocka_unit_test(other_losses),
        cmocka_unit_test(refused), cmocka_unit_test(targets_of_classes), cmocka_unit_test(diverges),
        cmocka_unit_test(mined), cmocka_unit_test(mining_clones),
        cmocka_unit_test(divisor_of_clone),
    };
    return cmocka_run_group_tests(tests, make_data, drop_world);
}
