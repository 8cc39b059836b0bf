/* Faster R-CNN with rotated boxes: RBox-CNN's recipe and anchors, lost objects in pixels of the
 * file, and what is refused. */
#include "detection_setup.h"

#include "layers/anchors.h"
#include "tasks/detection/detection_lost.h"

enum { HEIGHT = 96, WIDTH = 128 };
#define QUARTER 1.5707963267948966

/* ---- the recipe ------------------------------------------------------------------------------ */

static bool is(float a, double b)
{
    return fabs((double)a - b) < 1e-6;
}

static void recipe(void **state)
{
    struct setup s = set_up("{\"task\": \"detection\", \"model\": {\"boxes\": \"rotated\", "
                            "\"name\": \"faster_rcnn_resnet50\"}, "
                            "\"data\": {\"label_map\": \"%s\"}, \"input\": {\"size\": 768}}");
    const struct pm_task *t = s.e->task;

    (void)state;
    assert_true(t->stages == 2 && t->anchors_outside == PM_OUTSIDE_PRUNE);
    assert_true(is(t->matcher.matched_threshold, 0.6) && is(t->matcher.unmatched_threshold, 0.3));
    assert_true(t->matcher.force_match_for_each_row && t->matcher.strict && t->matcher.far_angles);
    assert_true(is(t->proposals.iou_threshold, 0.6) && t->proposals.max_total_detections == 100);
    assert_true(is(t->post.score_threshold, 0.01) && is(t->post.iou_threshold, 0.3));
    assert_true(t->post.use_class_agnostic_nms && t->post.max_total_detections == 100);
    assert_int_equal(t->post.score_converter, PM_CONVERT_SOFTMAX);
    assert_int_equal(t->class_loss.type, PM_CLASS_SOFTMAX);
    assert_true(t->minibatch.on && t->minibatch.batch_size == 256);
    assert_true(is(t->box_loss.weight, 2) && is(t->class_loss.weight, 1));
    assert_true(is(t->second_loss.localization_weight, 2));
    assert_true(is(t->second_loss.classification_weight, 1));
    assert_true(t->proposal_sampler.batch_size == 64 && is(t->proposal_sampler.iou_threshold, 0.4));
    assert_int_equal(t->coder.type, PM_CODER_TYPE_ROTATED);
    assert_true(is(t->coder.y_scale, 10) && is(t->coder.width_scale, 5) &&
                is(t->coder.angle_scale, 5));
    tear_down(&s);
}

/* The recipe of upright boxes stays. */
static void upright_recipe(void **state)
{
    struct setup s = set_up("{\"task\": \"detection\", \"model\": {\"name\": "
                            "\"faster_rcnn_resnet50\"}, \"data\": {\"label_map\": \"%s\"}, "
                            "\"input\": {\"size\": 320}}");
    const struct pm_task *t = s.e->task;

    (void)state;
    assert_true(is(t->matcher.matched_threshold, 0.7) && !t->matcher.strict);
    assert_true(!t->post.use_class_agnostic_nms && is(t->proposals.iou_threshold, 0.7));
    tear_down(&s);
}

/* 84 anchors in a cell: for each ratio all scales, at seven angles, the angle fastest; the first
 * centre is at 0, the stride 16. */
static void anchors(void **state)
{
    static const double scales[] = { 0.25, 0.5, 0.75, 1 }, ratios[] = { 3, 5, 7 };
    struct setup s = set_up("{\"task\": \"detection\", \"model\": {\"boxes\": \"rotated\", "
                            "\"name\": \"faster_rcnn_mobilenet_v1\", \"depth_multiplier\": 0.25}, "
                            "\"data\": {\"label_map\": \"%s\"}, "
                            "\"input\": {\"size\": [480, 640]}}");
    struct pm_net *net = NULL;
    const int cells = 30 * 40;
    float *v = pm_malloc(5 * 84 * (size_t)cells * sizeof *v);

    (void)state;
    if (pm_experiment_net(s.e, (struct pm_net_want){ PM_USE_TRAIN, 1, 0, 0 }, &net, NULL) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(pm_anchors_per_cell(pm_net_find(net, "anchors"), 1), 84);
    assert_int_equal(pm_net_find(net, "boxes_1")->out_shape.dim[3], 84 * 5);
    pm_anchors_write(pm_net_find(net, "anchors"), v);
    for (int i = 0; i < cells * 84; i++) {
        const int cell = i / 84, own = i % 84;
        const double scale = 256 * scales[own / 7 % 4], ratio = ratios[own / 28];
        const double want[] = { cell / 40 * 16 / 480.0, cell % 40 * 16 / 480.0,
                                scale / sqrt(ratio) / 480, scale * sqrt(ratio) / 480,
                                -QUARTER + own % 7 * QUARTER / 3 };

        for (int k = 0; k < 5; k++)
            if (!(fabs((double)v[5 * i + k] - want[k]) < 1e-6))
                fail_msg("number %d of anchor %d is %g, not %g", k, i, (double)v[5 * i + k],
                         want[k]);
    }
    pm_free(v);
    pm_net_destroy(&net);
    tear_down(&s);
}

/* ---- lost objects ---------------------------------------------------------------------------- */

/* Boxes of the net's input are compared in pixels of a file of another size, as rotated ones: their
 * upright boxes would overlap. */
static void lost_objects(void **state)
{
    struct setup s = set_up("{\"task\": \"detection\", \"model\": {\"boxes\": \"rotated\", "
                            "\"name\": \"faster_rcnn_mobilenet_v1\"}, "
                            "\"data\": {\"label_map\": \"%s\"}, "
                            "\"input\": {\"size\": [96, 128]}}");
    struct pm_task t = two_stages_of(&s, CLASSES, 3);
    const float proposals[3][5] = { { 0.5f, 0.6f, 0.1f, 0.4f, 0.7f },
                                    { 0.5f, 0.6f, 0.1f, 0.4f, -0.7f }, { 0 } };
    float second[3][CLASSES][5] = { { { 0 } } }, scores[3][CLASSES] = { { 0 } };
    const int32_t count = 2;
    const void *outputs[8] = { [PM_OUT_PROPOSALS] = proposals, [PM_OUT_PROPOSAL_COUNT] = &count,
                               [PM_OUT_SECOND_BOXES] = second, [PM_OUT_SECOND_SCORES] = scores };
    const struct pm_detection_picture p = { { HEIGHT, WIDTH }, 2 * HEIGHT, 2 * WIDTH, outputs,
                                            PM_USE_EVAL, 0 };
    struct pm_box_truth truth[3] = { { .label = 1 }, { .label = 2 }, { .label = 1 } };
    const double boxes[3][5] = { { 96, 115.2, 19.2, 76.8, 0.7 }, { 96, 115.2, 19.2, 76.8, -0.7 },
                                 { 96, 115.2, 19.2, 76.8, 0 } };
    struct pm_detection_truths truths = { .height = 2 * HEIGHT, .width = 2 * WIDTH,
                                          .truth = truth, .count = 3 };
    struct pm_lost_objects *l = pm_lost_objects_create(CLASSES);
    struct pm_stage_counts total;

    (void)state;
    for (int i = 0; i < 3; i++) {
        memcpy(truth[i].rotated, boxes[i], sizeof boxes[i]);
        truth[i].box = (struct pm_box){ { 50, 60, 140, 170 } };
    }
    memcpy(second[0][1], proposals[0], sizeof second[0][1]);
    scores[0][1] = 0.8f;
    memcpy(second[1][1], proposals[1], sizeof second[1][1]); /* of another class than its object */
    scores[1][1] = 0.9f;
    assert_int_equal(pm_detection_add_lost(&t, &p, &truths, NULL, 0, l), PM_OK);
    pm_lost_objects_count(l, 0.5, &total, NULL);
    assert_true(total.objects == 3 && total.proposed_70 == 2);
    assert_int_equal(total.outcome[PM_STAGE_SUPPRESSED], 1);
    assert_int_equal(total.outcome[PM_STAGE_REJECTED], 1);
    assert_int_equal(total.outcome[PM_STAGE_NO_PROPOSAL], 1);
    pm_lost_objects_destroy(&l);
    tear_down(&s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused_with(const char *more, const char *message)
{
    struct pm_arena *a = pm_arena_create();
    const char *text =
        pm_arena_printf(a, "%s, \"second_stage_box_predictor\": {%s}%s",
                        "{\"task\": \"detection\", \"model\": {\"boxes\": \"rotated\", \"name\": "
                        "\"faster_rcnn_mobilenet_v1\", \"depth_multiplier\": 0.25",
                        more, "}, \"data\": {\"label_map\": \"%s\"}, \"input\": {\"size\": 320}}");
    struct setup s;
    struct pm_net *net = NULL;
    int err = open_setup(text, "", &s);

    if (err == PM_OK)
        err = pm_experiment_net(s.e, (struct pm_net_want){ PM_USE_TRAIN, 1, 0, 0 }, &net, NULL);
    if (err == PM_OK)
        fail_msg("not refused: %s", message);
    assert_contains(pm_error_text(), message);
    tear_down(&s);
    pm_arena_destroy(&a);
}

static void refused(void **state)
{
    (void)state;
    refused_with("\"type\": \"rfcn\"", "model.second_stage_box_predictor.type: rfcn, but "
                                       "model.boxes is rotated: its crops are upright");
    refused_with("\"predict_instance_masks\": true",
                 "model.second_stage_box_predictor.predict_instance_masks: true, but model.boxes "
                 "is rotated");
    refused_with("\"predict_keypoints\": true",
                 "model.second_stage_box_predictor.predict_keypoints: true, but model.boxes is "
                 "rotated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipe),       cmocka_unit_test(upright_recipe),
        cmocka_unit_test(anchors),      cmocka_unit_test(lost_objects),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
