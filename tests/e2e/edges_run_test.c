/* Segmentation with edges by the program, from training to export. */
#include "e2e/program.h"

#include <pumice/data.h>
#include <pumice/onnx.h>

static const char config[] =
    "{ \"task\": \"segmentation\", \"model\": { \"name\": \"deeplab_mobilenet_v2\",\n"
    "  \"depth_multiplier\": 0.1, \"aspp_filters\": 8, \"edge_classes\": 3 },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2, "
    "\"edge_width\": 2 },\n"
    "  \"input\": { \"size\": 17, \"min_scale\": 1, \"max_scale\": 1 },\n"
    "  \"optim\": { \"name\": \"adam\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 4, \"batch_size\": 8, "
    "\"log_every_steps\": 1 },\n"
    "  \"eval\": { \"batch_size\": 8 } }\n";

static int train(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, config, folder, folder);
    put_text(in("edges.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "train %s", in("edges.json")), 0, " classes, 3 of edges, 17x17x3");
    check(run(NULL, "dataset inspect %s --pictures %s", in("data"), in("pictures")), 0);
    return 0;
}

/* The sum of both losses in the first line of metrics.jsonl is its loss. */
static void losses(void **state)
{
    char *text = NULL;

    (void)state;
    if (pm_file_read(in("run/metrics.jsonl"), &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    text[strcspn(text, "\n")] = 0;
    cJSON *line = cJSON_Parse(text);
    assert_non_null(line);
    assert_true(number_of(line, "edge_loss") > 0);
    assert_float_equal(number_of(line, "main_loss") + number_of(line, "edge_loss") +
                       number_of(line, "l2"), number_of(line, "loss"), 1e-5);
    for (const char *const *name = (const char *const[]){ "miou", "pixel_accuracy", "batch_miou",
                                                          "batch_pixel_accuracy", NULL };
         *name; name++)
        assert_true(number_of(line, *name) > 0 && number_of(line, *name) <= 1);
    cJSON_Delete(line);
    pm_free(text);
    struct result r = run(NULL, "train %s run.folder=%s run.train_metrics=false run.steps=1",
                          in("edges.json"), in("without"));
    assert_null(strstr(r.err, "miou"));
    check(r, 0);
    r = run(NULL, "train %s run.folder=%s run.steps=1 eval.every_steps=1 run.keep_best=edge_miou",
            in("edges.json"), in("with"));
    assert_contains(r.err, "best edge_miou so far");
    assert_contains(r.err, "  miou 0.");
    check(r, 0);
}

/* The event file of training has the tags of scalars and pictures. */
static void events(void **state)
{
    static const char *const tags[] = { "images/image/0", "images/label/0", "images/semantic/0",
                                        "images/label_edge/0", "images/edge/0", "train/miou",
                                        "train/acc", "train/batch_miou", "train/batch_acc",
                                        "losses/edge_loss", "eval/edge_miou" };
    (void)state;
    for (size_t i = 0; i < PM_COUNT(tags); i++)
        if (!has_tag(in("with"), tags[i]) && !has_tag(in("with/eval"), tags[i]))
            fail_msg("no %s in the event files", tags[i]);
}

static void metrics(void **state)
{
    struct result r = run(NULL, "eval %s --json eval.flip=true", in("edges.json"));
    cJSON *json = json_of(&r);
    const cJSON *of = cJSON_GetObjectItem(json, "metrics");

    (void)state;
    assert_true(number_of(of, "edge_miou") > 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(of, "per_class_edge_iou")), 3);
    cJSON_Delete(json);
    check(r, 0);
}

static void pictures(void **state)
{
    struct pm_image8 im;
    char *bytes;
    size_t size;

    (void)state;
    check(run(NULL, "predict %s %s --out %s", in("edges.json"), in("pictures"), in("out")), 0);
    if (pm_file_read(in("out/shapes_test_00000_edges.png"), &bytes, &size) < 0 ||
        pm_image_decode(bytes, size, 0, 0, "edges", &im) < 0)
        fail_msg("%s", pm_error_text());
    assert_true(im.height == 16 && im.width == 16 && im.channels == 1);
    for (int i = 0; i < 16 * 16; i++)
        assert_true(im.pixels[i] == 0 || im.pixels[i] == 127 || im.pixels[i] == 255);
    pm_image_free(&im);
    pm_free(bytes);
}

static const struct pm_onnx_value *output(const struct pm_onnx_model *m, const char *name)
{
    for (size_t i = 0; i < m->output_count; i++)
        if (strcmp(m->outputs[i].name, name) == 0)
            return &m->outputs[i];
    fail_msg("no output is called %s", name);
    return NULL;
}

static void exported(void **state)
{
    struct pm_onnx_model *m = NULL;

    (void)state;
    check(run(NULL, "export %s %s", in("edges.json"), in("edges.onnx")), 0);
    if (pm_onnx_read(in("edges.onnx"), &m) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(output(m, "EdgePredictions")->type, PM_DTYPE_I32);
    assert_int_equal(output(m, "EdgePredictions")->dim[1], -1); /* the part of the output inside
                                                                 * the picture */
    assert_int_equal(output(m, "RawEdgePredictions")->dim[1], 17);
    assert_int_equal(output(m, "EdgeProbabilities")->dim[1], 3);
    pm_onnx_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(losses), cmocka_unit_test(events),
                                        cmocka_unit_test(metrics), cmocka_unit_test(pictures),
                                        cmocka_unit_test(exported) };
    return cmocka_run_group_tests_name("edges_run", tests, train, drop_world);
}
