/* pumice export of detectors with two stages: outputs of Faster R-CNN and R-FCN, the trial of the
 * file, which computes both stages, metadata, models that resize and pad, and refused options. The
 * run is FOLDER/run, 20 steps on drawn shapes. tests/onnx/two_stage_check.py compares such models
 * with predict. */
#include "e2e/small_rcnn.h"

#include <pumice/onnx.h>

static const char net[] =
    "{ \"base\": [\"rcnn.json\"], \"model\": {\n"
    "    \"batch_norm_train\": true, \"batch_norm_decay\": 0.9,\n"
    "    \"post_processing\": { \"max_detections_per_class\": 20, \"max_total_detections\": 50 },\n"
    "    \"proposals\": { \"max_proposals\": 30, \"iou_threshold\": 0.65 } },\n"
    "  \"input\": { \"size\": 64, \"augment\": [] }, \"optim\": { \"clip_norm\": 10 },\n"
    "  \"loss\": { \"proposal_sampler\": { \"batch_size\": 12 } },\n"
    "  \"schedule\": { \"base_lr\": 0.02 }, \"run\": { \"steps\": 20 },\n"
    "  \"eval\": { \"every_steps\": 0 } }\n";

static struct pm_onnx_model *model_of(const char *file)
{
    struct pm_onnx_model *m = NULL;

    if (pm_onnx_read(file, &m) < 0)
        fail_msg("%s", pm_error_text());
    return m;
}

static int operators(const char *file, const char *op)
{
    struct pm_onnx_model *m = model_of(file);
    int count = 0;

    for (size_t i = 0; i < m->node_count; i++)
        count += strcmp(m->nodes[i].op, op) == 0;
    pm_onnx_close(&m);
    return count;
}

/* Exports FILE and checks that the output lists these lines and no others of outputs. */
static void export(const char *file, const char *more, const char *const *lines, size_t count)
{
    struct result r = run(NULL, "export %s %s %s", in("net.json"), in("%s", file), more);
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        assert_contains(r.out, lines[i]);
    for (const char *p = r.out; (p = strstr(p, "output ")) != NULL; p++)
        found += strncmp(p, "output of", 9) != 0;
    assert_int_equal(found, count);
    assert_contains(r.out, "read again and run on the CPU: differs by at most ");
    check(r, 0);
}

static void outputs(void **state)
{
    static const char *const lines[] = {
        "output detection_boxes: float32 [N, 50, 4]",
        "output detection_scores: float32 [N, 50]",
        "output detection_classes: float32 [N, 50]",
        "output num_detections: float32 [N]",
        "output raw_detection_boxes: float32 [N, 30, 4, 4]",
        "output raw_detection_scores: float32 [N, 30, 4]",
        "output proposal_boxes: float32 [N, 30, 4]",
        "output num_proposals: float32 [N]",
    };

    (void)state;
    export("all.onnx", "", lines, 6);
    assert_int_equal(operators(in("all.onnx"), "NonMaxSuppression"), 2);
    assert_int_equal(operators(in("all.onnx"), "GridSample"), 1);
    export("proposals.onnx", "export.proposals=true", lines, PM_COUNT(lines));
    export("fixed.onnx", "export.batch_size=3 export.preprocessing=fold",
           (const char *const[]){ "output detection_boxes: float32 [3, 50, 4]",
                                  "output detection_scores: float32 [3, 50]",
                                  "output detection_classes: float32 [3, 50]",
                                  "output num_detections: float32 [3]",
                                  "output raw_detection_boxes: float32 [3, 30, 4, 4]",
                                  "output raw_detection_scores: float32 [3, 30, 4]" }, 6);
}

/* The suppression of proposals stays. */
static void without_suppression(void **state)
{
    static const char *const lines[] = { "output raw_detection_boxes: float32 [N, 30, 4, 4]",
                                         "output raw_detection_scores: float32 [N, 30, 4]",
                                         "output num_proposals: float32 [N]" };

    (void)state;
    export("raw.onnx", "export.nms=false", lines, PM_COUNT(lines));
    assert_int_equal(operators(in("raw.onnx"), "NonMaxSuppression"), 1);
}

/* Shared boxes have no axis of classes; R-FCN crops two maps. The values are initial ones. */
static void other_nets(void **state)
{
    static const char *const lines[] = {
        "output detection_boxes: float32 [N, 50, 4]", "output detection_scores: float32 [N, 50]",
        "output detection_classes: float32 [N, 50]",  "output num_detections: float32 [N]",
        "output raw_detection_boxes: float32 [N, 30, 4, 4]",
        "output raw_detection_scores: float32 [N, 30, 4]",
    };
    const char *shared[PM_COUNT(lines)];

    (void)state;
    export("rfcn.onnx", "export.checkpoint=none model.second_stage_box_predictor="
                        "'{\"type\":\"rfcn\",\"depth\":16}'", lines, PM_COUNT(lines));
    assert_int_equal(operators(in("rfcn.onnx"), "GridSample"), 2);
    memcpy(shared, lines, sizeof lines);
    shared[4] = "output raw_detection_boxes: float32 [N, 30, 4]";
    export("shared.onnx", "export.checkpoint=none model.second_stage_box_predictor="
                          "'{\"share_box_across_classes\":true}'", shared, PM_COUNT(lines));
}

#define MASKS                                                                                      \
    "export.checkpoint=none data.instance_masks=true "                                             \
    "model.second_stage_box_predictor='{\"predict_instance_masks\":true,"                          \
    "\"mask_prediction_conv_depth\":8,\"mask_height\":11,\"mask_width\":13}' "
#define PAD "input.resizer=keep_aspect_ratio "

/* Masks are cropped from the detected boxes, and keep their size in a model that pads pictures. If
 * the model pastes them, they have the size of the picture. */
static void masks(void **state)
{
    struct result r;
    const char *pasted[7];
    static const char *const lines[] = {
        "output detection_boxes: float32 [N, 50, 4]", "output detection_scores: float32 [N, 50]",
        "output detection_classes: float32 [N, 50]",  "output num_detections: float32 [N]",
        "output detection_masks: float32 [N, 50, 11, 13]",
        "output raw_detection_boxes: float32 [N, 30, 4, 4]",
        "output raw_detection_scores: float32 [N, 30, 4]",
    };

    (void)state;
    export("masks.onnx", MASKS PAD, lines, PM_COUNT(lines));
    assert_int_equal(operators(in("masks.onnx"), "GridSample"), 2);
    assert_int_equal(operators(in("masks.onnx"), "Scan"), 0);
    memcpy(pasted, lines, sizeof lines);
    pasted[4] = "output detection_masks: uint8 [N, 50, H, W]";
    export("pasted.onnx", MASKS PAD "export.masks=pasted", pasted, PM_COUNT(lines));
    assert_int_equal(operators(in("pasted.onnx"), "Scan"), 1);
    r = run(&(struct how){ .environment = "PM_LOG=export=debug" }, "export %s %s " MASKS PAD
            "export.masks=pasted", in("net.json"), in("pasted.onnx"));
    assert_contains(r.err, "detection_masks:MatMul: differs by "); /* rows, then columns */
    assert_contains(r.err, "detection_masks:Mul_");
    check(r, 0);
    pasted[4] = "output detection_masks: uint8 [N, 50, 64, 64]";
    export("pasted.onnx", MASKS "export.masks=pasted", pasted, PM_COUNT(lines));
    check(run(NULL, "export %s %s " MASKS "export.masks=pasted export.nms=false", in("net.json"),
              in("x.onnx")), 2,
          "export.masks: pasted, but with export.nms=false the model has no detections, whose "
          "masks it could paste: remove one of the two");
    check(run(NULL, "export %s %s " MASKS "export.masks=boxed", in("net.json"), in("x.onnx")), 2,
          "export.masks: \"boxed\" is not one of box|pasted");
}

/* The trial compares what follows the net's input, also if the model resizes pictures. */
static void padding(void **state)
{
    struct result r = run(NULL, "export %s %s input.resizer=keep_aspect_ratio", in("net.json"),
                          in("padded.onnx"));

    (void)state;
    assert_contains(r.out, "input images: float32 [N, 3, H, W]");
    assert_contains(r.out, "output detection_boxes: float32 [N, 50, 4]");
    assert_contains(r.out, "read again and run on the CPU: differs by at most ");
    check(r, 0);
    assert_true(operators(in("padded.onnx"), "Resize") >= 1);
    r = run(NULL, "export %s %s input.resizer=keep_aspect_ratio export.pad=false", in("net.json"),
            in("padded.onnx"));
    assert_contains(r.out, "input images: float32 [N, 3, 64, 64]");
    check(r, 0);
    assert_int_equal(operators(in("padded.onnx"), "Resize"), 0);
}

static void notes(void **state)
{
    struct pm_onnx_model *m;
    cJSON *note;

    (void)state;
    check(run(NULL, "export %s %s", in("net.json"), in("notes.onnx")), 0);
    m = model_of(in("notes.onnx"));
    note = cJSON_Parse(pm_onnx_meta(m, "detection"));
    const cJSON *proposals = cJSON_GetObjectItem(note, "proposals");

    assert_true(number_of(proposals, "iou_threshold") == 0.65);
    assert_true(number_of(proposals, "max_total_detections") == 30);
    assert_true(number_of(cJSON_GetObjectItem(note, "post_processing"), "iou_threshold") == 0.6);
    cJSON_Delete(note);
    pm_onnx_close(&m);
}

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "export %s %s export.proposals=true model.number_of_stages=1 "
              "data.class_agnostic=true model.post_processing=null "
              "loss.proposal_sampler=null export.checkpoint=none",
              in("net.json"), in("x.onnx")), 2,
          "export.proposals: true, but the net has no second stage: remove the key");
    check(run(NULL, "export %s %s export.masks=pasted", in("net.json"), in("x.onnx")), 2,
          "export.masks: pasted, but the net predicts no masks: remove the key, or set "
          "predict_instance_masks=true in model.second_stage_box_predictor");
    check(run(NULL, "export %s %s export.masks=pasted model.number_of_stages=1 "
              "data.class_agnostic=true model.post_processing=null "
              "loss.proposal_sampler=null export.checkpoint=none",
              in("net.json"), in("x.onnx")), 2,
          "export.masks: pasted, but the net predicts no masks");
    check(run(NULL, "export %s %s export.any_size=true", in("net.json"), in("x.onnx")), 2,
          "export.any_size: the net depends on the size of its input, first in anchors: remove the "
          "key");
    assert_false(pm_file_exists(in("x.onnx")));
}

static int setup(void **state)
{
    (void)state;
    if (make_rcnn(net, 64, 24, 2) < 0)
        return -1;
    check(run(NULL, "train %s", in("net.json")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs), cmocka_unit_test(without_suppression),
        cmocka_unit_test(other_nets), cmocka_unit_test(masks), cmocka_unit_test(padding),
        cmocka_unit_test(notes), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, setup, drop_world);
}
