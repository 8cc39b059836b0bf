/* pumice export of a detector: TensorFlow's outputs, the model without suppression, metadata, the
 * trial of the file, and refused options. The run is FOLDER/source, two steps of a small detector.
 * tests/onnx/detection_check.py runs such models with onnxruntime. */
#include "e2e/program.h"

#include <pumice/onnx.h>

static const char detector[] =
    "{ \"task\": \"detection\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"map1\", \"layer\": \"conv2d\", \"filters\": 6, \"stride\": 8 },\n"
    "  { \"name\": \"map2\", \"layer\": \"conv2d\", \"filters\": 6, \"stride\": 2 },\n"
    "  { \"name\": \"anchors\", \"layer\": \"ssd_anchors\",\n"
    "    \"inputs\": [\"images\", \"map1\", \"map2\"] },\n"
    "  { \"name\": \"boxes_1\", \"layer\": \"conv2d\", \"inputs\": [\"map1\"], \"filters\": 12 },\n"
    "  { \"name\": \"classes_1\", \"layer\": \"conv2d\", \"inputs\": [\"map1\"],\n"
    "    \"filters\": 12 },\n"
    "  { \"name\": \"boxes_2\", \"layer\": \"conv2d\", \"inputs\": [\"map2\"], \"filters\": 24 },\n"
    "  { \"name\": \"classes_2\", \"layer\": \"conv2d\", \"inputs\": [\"map2\"],\n"
    "    \"filters\": 24 } ],\n"
    "  \"post_processing\": { \"score_threshold\": 0.3, \"iou_threshold\": 0.55,\n"
    "    \"max_detections_per_class\": 20, \"max_total_detections\": 30 } },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": 16 },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.001 },\n"
    "  \"run\": { \"steps\": 2, \"batch_size\": 8 },\n"
    "  \"eval\": { \"batch_size\": 8 } }\n";

static struct pm_onnx_model *model_of(const char *file)
{
    struct pm_onnx_model *m = NULL;

    if (pm_onnx_read(file, &m) < 0)
        fail_msg("%s", pm_error_text());
    return m;
}

static bool has_operator(const struct pm_onnx_model *m, const char *op)
{
    for (size_t i = 0; i < m->node_count; i++)
        if (strcmp(m->nodes[i].op, op) == 0)
            return true;
    return false;
}

/* 2x2 cells with 3 anchors and 1x1 with 6: 18 boxes. */
static void outputs(void **state)
{
    static const char *const lines[] = {
        "input images: float32 [N, 3, 16, 16]",
        "output detection_boxes: float32 [N, 30, 4]",
        "output detection_scores: float32 [N, 30]",
        "output detection_classes: float32 [N, 30]",
        "output num_detections: float32 [N]",
        "output raw_detection_boxes: float32 [N, 18, 4]",
        "output raw_detection_scores: float32 [N, 18, 4]",
        "read again and run on the CPU: differs by at most ",
    };
    struct result r = run(NULL, "export %s %s", in("source"), in("all.onnx"));
    struct pm_onnx_model *m;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(lines); i++)
        assert_contains(r.out, lines[i]);
    check(r, 0);
    m = model_of(in("all.onnx"));
    assert_true(has_operator(m, "NonMaxSuppression"));
    assert_int_equal(m->output_count, 6);
    pm_onnx_close(&m);
    r = run(NULL, "export %s %s export.batch_size=3 export.preprocessing=fold", in("source"),
            in("fixed.onnx"));
    assert_contains(r.out, "uint8 [3, 16, 16, 3]");
    assert_contains(r.out, "output num_detections: float32 [3]");
    check(r, 0);
}

static void without_suppression(void **state)
{
    struct result r = run(NULL, "export %s %s export.nms=false", in("source"), in("raw.onnx"));
    struct pm_onnx_model *m;

    (void)state;
    assert_contains(r.out, "output raw_detection_boxes: float32 [N, 18, 4]");
    assert_contains(r.out, "differs by at most ");
    check(r, 0);
    m = model_of(in("raw.onnx"));
    assert_false(has_operator(m, "NonMaxSuppression"));
    assert_false(has_operator(m, "TopK"));
    assert_int_equal(m->output_count, 2);
    pm_onnx_close(&m);
}

static void notes(void **state)
{
    struct pm_onnx_model *m;
    cJSON *note, *labels;

    (void)state;
    check(run(NULL, "export %s %s", in("source"), in("notes.onnx")), 0);
    m = model_of(in("notes.onnx"));
    note = cJSON_Parse(pm_onnx_meta(m, "detection"));
    const cJSON *post = cJSON_GetObjectItem(note, "post_processing");

    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(note, "nms")));
    assert_true(number_of(note, "score_threshold") == 0.5);
    assert_true(number_of(post, "score_threshold") == 0.3);
    assert_true(number_of(post, "iou_threshold") == 0.55);
    assert_true(number_of(post, "max_total_detections") == 30);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(post, "score_converter")),
                        "sigmoid");
    labels = cJSON_Parse(pm_onnx_meta(m, "labels"));
    assert_int_equal(cJSON_GetArraySize(labels), 4);
    cJSON_Delete(labels);
    cJSON_Delete(note);
    pm_onnx_close(&m);
}

/* A resizer that pads is part of the model: it takes pictures of any size. The metadata have the
 * pixel that input.pad_value is: 0.5 * 127.5 + 127.5. */
static void padding(void **state)
{
    struct result r = run(NULL, "export %s %s input.resizer=keep_aspect_ratio input.pad_value=0.5",
                          in("source"), in("padded.onnx"));
    struct pm_onnx_model *m;
    cJSON *note;

    (void)state;
    assert_contains(r.out, "input images: float32 [N, 3, H, W]");
    assert_contains(r.out, "output detection_boxes: float32 [N, 30, 4]");
    check(r, 0);
    m = model_of(in("padded.onnx"));
    assert_true(has_operator(m, "Resize") && has_operator(m, "Pad"));
    note = cJSON_Parse(pm_onnx_meta(m, "preprocessing"));
    assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(note, "pad"), 0)->valuedouble == 191.25);
    assert_contains(cJSON_GetStringValue(cJSON_GetObjectItem(note, "fit")),
                    "the model resizes and pads pictures of any size");
    cJSON_Delete(note);
    pm_onnx_close(&m);
    r = run(NULL, "export %s %s input.resizer=keep_aspect_ratio export.pad=false", in("source"),
            in("padded.onnx"));
    assert_contains(r.out, "input images: float32 [N, 3, 16, 16]");
    check(r, 0);
    check(run(NULL, "export %s %s input.resizer=keep_aspect_ratio input.resize_method=area",
              in("source"), in("x.onnx")), 2, "export.pad: the model would resize pictures, but "
          "ONNX does not compute input.resize_method area as training does: set export.pad=false");
}

static void refusals(void **state)
{
    (void)state;
    check(run(NULL, "export %s %s export.any_size=true", in("source"), in("x.onnx")), 2,
          "export.any_size");
    check(run(NULL, "export %s %s model.post_processing.soft_nms_sigma=0.5", in("source"),
              in("x.onnx")), 2, "detection_boxes: suppress cannot be exported to ONNX: it has no "
          "soft suppression");
    assert_false(pm_file_exists(in("x.onnx")));
    check(run(NULL, "export %s %s model.post_processing.soft_nms_sigma=0.5 export.nms=false",
              in("source"), in("soft.onnx")), 0);
}

static int setup(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, detector, folder);
    put_text(in("detector.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "train %s run.folder=%s", in("detector.json"), in("source")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs), cmocka_unit_test(without_suppression), cmocka_unit_test(notes),
        cmocka_unit_test(padding), cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, setup, drop_world);
}
