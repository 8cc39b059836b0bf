/* Segmentation by the program, from data to export: drawn shapes and a net of three layers. */
#include "e2e/program.h"

#include <math.h>

#include <pumice/data.h>
#include <pumice/onnx.h>
#include <pumice/report.h>

static const char net[] =
    "{ \"task\": \"segmentation\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"conv1\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2 },\n"
    "  { \"name\": \"norm1\", \"layer\": \"batch_norm\", \"activation\": \"relu\", "
    "\"decay\": 0.5 },\n"
    "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 1 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 17 },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.05 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 30, \"batch_size\": 8, "
    "\"keep_best\": \"miou\" },\n"
    "  \"eval\": { \"every_steps\": 15, \"batch_size\": 8 } }\n";

static int train(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, net, folder, folder);
    put_text(in("seg.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "train %s", in("seg.json")), 0, "miou");
    check(run(NULL, "dataset inspect %s --pictures %s", in("data"), in("pictures")), 0);
    return 0;
}

/* Evaluates twenty pictures in batches of eight. The padding of the last batch does not count. */
static cJSON *evaluated(const char *more)
{
    struct result r = run(NULL, "eval %s --json %s", in("seg.json"), more);
    cJSON *json = json_of(&r);

    check(r, 0);
    return json;
}

static double metric(const cJSON *json, const char *name)
{
    return number_of(cJSON_GetObjectItem(json, "metrics"), name);
}

/* Every pixel of a painted picture has the colour that the report's legend gives to a class. */
static void colors_agree(void **state)
{
    char *text, *bytes = NULL;
    size_t size;
    struct pm_image8 im;
    uint32_t legend[5] = { 0 };
    struct pm_arena *a = pm_arena_create();
    const char **paths;

    (void)state;
    cJSON_Delete(evaluated("eval.colormap=camvid"));
    assert_int_equal(pm_report_evaluations(a, in("run"), &paths), 1);
    text = get_text(in("run/%s", paths[0]));
    pm_arena_destroy(&a);
    cJSON *json = cJSON_Parse(text);
    const cJSON *colors = cJSON_GetObjectItem(json, "colors");
    assert_int_equal(cJSON_GetArraySize(colors), 5);
    for (int i = 0; i < 5; i++)
        legend[i] =
            (uint32_t)strtoul(cJSON_GetStringValue(cJSON_GetArrayItem(colors, i)) + 1, NULL, 16);
    assert_int_equal(legend[0], 0x808080);
    assert_int_equal(legend[4], 0x0000c0);
    check(run(NULL, "predict %s %s --out %s eval.colormap=camvid", in("seg.json"),
              in("pictures/shapes_test_00000.png"), in("camvid")), 0);
    if (pm_file_read(in("camvid/shapes_test_00000_prediction.png"), &bytes, &size) < 0 ||
        pm_image_decode(bytes, size, 3, 0, "prediction", &im) < 0)
        fail_msg("%s", pm_error_text());
    for (int i = 0; i < im.height * im.width; i++) {
        const uint8_t *p = im.pixels + 3 * i;
        bool known = false;

        for (int k = 0; k < 5; k++)
            known |= legend[k] == ((uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2]);
        assert_true(known);
    }
    pm_image_free(&im);
    pm_free(bytes);
    pm_free(text);
    cJSON_Delete(json);
}

static void metrics(void **state)
{
    cJSON *json = evaluated(""), *single = evaluated("eval.batch_size=1"), *other;
    const cJSON *iou = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metrics"), "per_class_iou");
    const cJSON *rows = cJSON_GetObjectItem(json, "per_class"), *row;
    double support = 0, sum = 0;
    int present = 0;

    (void)state;
    assert_true(number_of(json, "count") == 20);
    assert_int_equal(cJSON_GetArraySize(iou), 5);
    assert_int_equal(cJSON_GetArraySize(rows), 5);
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *own = cJSON_GetArrayItem(iou, (int)number_of(row, "label"));

        support += number_of(row, "support");
        if (number_of(row, "support") == 0) {
            assert_true(cJSON_IsNull(own));
            continue;
        }
        assert_float_equal(number_of(row, "iou"), own->valuedouble, 1e-12);
        sum += own->valuedouble;
        present++;
    }
    assert_true(support == 20 * 16 * 16); /* the padding does not count */
    assert_int_equal(present, 5);
    assert_float_equal(metric(json, "miou"), sum / 5, 1e-12);
    assert_true(metric(json, "pixel_accuracy") > 0.5);
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 0), "name")), "ground");
    assert_float_equal(metric(json, "miou"), metric(single, "miou"), 1e-12);
    assert_float_equal(metric(json, "loss"), metric(single, "loss"), 1e-5);
    cJSON_Delete(single);
    other = evaluated("'eval.scales=[0.75,1.25]' eval.flip=true");
    assert_true(metric(other, "loss") != metric(json, "loss"));
    assert_true(metric(other, "pixel_accuracy") > 0.5);
    cJSON_Delete(other);
    other = evaluated("model.predict_upsampled=false");
    assert_true(metric(other, "loss") != metric(json, "loss"));
    cJSON_Delete(other);
    cJSON_Delete(json);
}

/* Tags contain the scales as in the original program, so that evaluations at other scales have
 * their own curves. */
static void tags(void **state)
{
    (void)state;
    cJSON_Delete(evaluated("'eval.scales=[0.75,1]' eval.flip=true"));
    cJSON_Delete(evaluated(""));
    assert_true(has_tag(in("run/eval"), "eval/miou_1.0_overall"));
    assert_true(has_tag(in("run/eval"), "eval/miou_1.0_class_4"));
    assert_true(has_tag(in("run/eval_test"), "eval/miou_0.75_1.0_flipped_overall"));
    assert_true(has_tag(in("run/eval_test"), "eval/miou_0.75_1.0_flipped_class_0"));
    assert_true(has_tag(in("run/eval_test"), "eval/miou_1.0_overall"));
    assert_true(has_tag(in("run/eval_test"), "eval/fw_iou"));
}

static void pictures(void **state)
{
    struct result r = run(NULL, "predict %s %s --out %s --json eval.save_raw=true", in("seg.json"),
                          in("pictures"), in("out"));
    cJSON *json = json_of(&r);
    const cJSON *image = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "images"), 0), *row;
    struct pm_image8 im;
    char *bytes;
    size_t size;
    double share = 0;

    (void)state;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(image, "classes")) share += number_of(row, "share");
    assert_float_equal(share, 1, 1e-12);
    for (const char *const *what = (const char *const[]){ "prediction", "overlay", "raw", NULL };
         *what; what++) {
        if (pm_file_read(in("out/shapes_test_00000_%s.png", *what), &bytes, &size) < 0 ||
            pm_image_decode(bytes, size, 0, 0, *what, &im) < 0)
            fail_msg("%s", pm_error_text());
        if (strcmp(*what, "overlay") == 0) /* enlarged, with the legend below */
            assert_true(im.width == 256 && im.height > 256);
        else
            assert_true(im.height == 16 && im.width == 16);
        assert_int_equal(im.channels, strcmp(*what, "raw") == 0 ? 1 : 3);
        pm_image_free(&im);
        pm_free(bytes);
    }
    cJSON_Delete(json);
    check(r, 0);
    r = run(NULL, "predict %s %s", in("seg.json"), in("pictures/shapes_test_00000.png"));
    assert_contains(r.out, "shapes_test_00000.png:  ground ");
    drop(&r);
    r = run(NULL, "predict %s %s --json", in("seg.json"), in("pictures"));
    json = json_of(&r);
    const int before = cJSON_GetArraySize(cJSON_GetObjectItem(json, "images"));
    cJSON_Delete(json);
    drop(&r);
    check(run(NULL, "predict %s %s --out %s", in("seg.json"), in("pictures"), in("pictures")), 2,
          "which could be overwritten");
    check(run(NULL, "predict %s %s --out %s eval.batch_size=3", in("seg.json"), in("pictures"),
              in("pictures/out")), 0);
    r = run(NULL, "predict %s %s --out %s --json", in("seg.json"), in("pictures"),
            in("pictures/out"));
    json = json_of(&r);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "images")), before);
    cJSON_Delete(json);
    drop(&r);
    r = run(NULL, "predict %s %s input.eval_size=15", in("seg.json"),
            in("pictures/shapes_test_00000.png"));
    assert_contains(
        r.err, "16 x 16 when resized, is larger than the input of 15 x 15: set input.eval_size");
    drop(&r);
}

static void is_output(const struct pm_onnx_value *v, const char *name, enum pm_dtype type, int rank,
                      int width)
{
    assert_string_equal(v->name, name);
    assert_int_equal(v->type, type);
    assert_int_equal(v->rank, rank);
    assert_int_equal(v->dim[rank - 1], width);
    if (rank == 4)
        assert_int_equal(v->dim[1], 5);
}

/* Pictures up to the size of the crop are accepted, unless the config requires one size. The
 * file was read again. */
static void exported(void **state)
{
    struct pm_onnx_model *m = NULL;

    (void)state;
    for (int padded = 1; padded >= 0; padded--) {
        struct result r =
            run(NULL, "export %s %s --json 'export.scales=[0.5,1]' export.flip=true %s",
                in("seg.json"), in("seg.onnx"), padded ? "" : "export.pad=false");
        cJSON *json = json_of(&r);

        assert_true(number_of(json, "difference") < 1e-4);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "outputs")), padded ? 4 : 2);
        if (pm_onnx_read(in("seg.onnx"), &m) < 0)
            fail_msg("%s", pm_error_text());
        assert_int_equal(m->inputs[0].dim[3], padded ? -1 : 17);
        is_output(&m->outputs[0], "SemanticProbabilities", PM_DTYPE_F32, 4, padded ? -1 : 17);
        is_output(&m->outputs[padded ? 2 : 1], "SemanticPredictions", PM_DTYPE_I32, 3,
                  padded ? -1 : 17);
        if (padded) {
            is_output(&m->outputs[1], "RawSemanticProbabilities", PM_DTYPE_F32, 4, 17);
            is_output(&m->outputs[3], "RawSemanticPredictions", PM_DTYPE_F32, 3, 17);
        }
        pm_onnx_close(&m);
        cJSON_Delete(json);
        check(r, 0);
    }
    check(run(NULL, "export %s %s export.output_stride=8", in("seg.json"), in("seg.onnx")), 2,
          "export.output_stride: 8, but the net has no model.output_stride");
}

/* The exported model is imported as a net: evaluated, also at scales, and trained further. */
static void from_onnx(void **state)
{
    static const char net_of[] = "model.layers=null model.onnx=";

    (void)state;
    for (int k = 0; k < 2; k++) {
        cJSON *own = evaluated(k ? "'eval.scales=[0.5,1]' eval.flip=true" : ""), *read;

        check(run(NULL, "export %s %s %s", in("seg.json"), in("back.onnx"),
                  k ? "'export.scales=[0.5,1]' export.flip=true" : ""), 0);
        check(run(NULL,
                  "train %s run.folder=%s%d run.steps=1 eval.every_steps=0 run.keep_best=null "
                  "schedule.base_lr=0 optim.weight_decay=0 %s%s",
                  in("seg.json"), in("back"), k, net_of, in("back.onnx")),
              0);
        struct result r = run(NULL, "eval %s run.folder=%s%d --json run.keep_best=null %s%s",
                              in("seg.json"), in("back"), k, net_of, in("back.onnx"));
        read = json_of(&r);
        print_message("loss %.4f, read again %.4f\n", metric(own, "loss"), metric(read, "loss"));
        /* The moving averages have changed after a step. The averaged outputs are not logits. */
        if (k == 0)
            assert_float_equal(metric(own, "loss"), metric(read, "loss"), 0.02);
        assert_float_equal(metric(own, "pixel_accuracy"), metric(read, "pixel_accuracy"), 0.05);
        check(r, 0);
        check(run(NULL, "eval %s run.folder=%s%d run.keep_best=null %s%s 'eval.scales=[0.5,1]' "
                  "eval.flip=true", in("seg.json"), in("back"), k, net_of, in("back.onnx")), 0);
        cJSON_Delete(own);
        cJSON_Delete(read);
    }
    check(run(NULL, "train %s run.folder=%s run.steps=1 eval.every_steps=0 run.keep_best=null "
              "init.checkpoint=%s", in("seg.json"), in("warm"), in("back.onnx")), 0, "0 missing");
}

/* The rates cover the same distance in the picture as before. */
static void other_stride(void **state)
{
    static const char net_of[] = "model.layers=null model.name=deeplab_mobilenet_v3_small_seg "
                                 "'model.aspp_rates=[3]' input.size=33";
    struct pm_onnx_model *m = NULL;
    bool wide = false;

    (void)state;
    check(run(NULL, "train %s run.folder=%s run.steps=1 eval.every_steps=0 run.keep_best=null %s",
              in("seg.json"), in("stride"), net_of), 0);
    check(run(NULL, "export %s %s run.folder=%s %s export.output_stride=8", in("seg.json"),
              in("seg.onnx"), in("stride"), net_of), 0);
    if (pm_onnx_read(in("seg.onnx"), &m) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < m->node_count; i++) {
        const struct pm_onnx_attr *a = pm_onnx_attr(&m->nodes[i], "dilations");

        wide |= strstr(m->nodes[i].name, "aspp1") && a && a->ints[0] == 6;
    }
    assert_true(wide);
    pm_onnx_close(&m);
    check(run(NULL, "export %s %s run.folder=%s %s export.output_stride=32", in("seg.json"),
              in("seg.onnx"), in("stride"), net_of),
          2, "gives 1.5 for the rate 3 in model.aspp_rates");
}

/* Training uses the loss options of the config. */
static void losses(void **state)
{
    (void)state;
    check(
        run(NULL,
            "train %s run.folder=%s run.steps=3 eval.every_steps=0 run.keep_best=null "
            "loss.upsample_logits=false 'loss.label_weights=[0.5,1,1,1,1]' loss.top_k_percent=0.5 "
            "loss.hard_mining_steps=2 loss.normalize=nonzero_weight",
            in("seg.json"), in("other")),
        0);
    check(run(NULL, "train %s run.folder=%s 'loss.label_weights=[1,2]'", in("seg.json"), in("no")),
          2, "loss.label_weights: 2 numbers, but there are 5 classes");
    check(run(NULL, "train %s run.folder=%s model.layers.2.filters=4", in("seg.json"), in("no")), 2,
          "needs [1, height, width, 5]");
    check(run(NULL, "train %s run.folder=%s input.preprocessing=vgg", in("seg.json"), in("no")), 2,
          "\"vgg\" is for pictures without label maps");
    check(run(NULL, "train %s run.folder=%s input.size=15", in("seg.json"), in("no")), 3,
          "16 x 16 when resized, is larger than the input of 15 x 15: set input.eval_size");
    check(run(NULL, "train %s run.folder=%s task=classification run.keep_best=null", in("seg.json"),
              in("no")), 2, "logits");
}

/* The net's own scales combined with those of the evaluation, with equal ones among them. */
static void pyramid_and_scales(void **state)
{
    static const char deeplab[] = "model.layers=null model.name=deeplab_mobilenet_v3_small_seg "
                                  "'model.image_pyramid=[1,0.5]' input.size=33";
    (void)state;
    check(run(NULL, "train %s run.folder=%s run.steps=1 eval.every_steps=0 run.keep_best=null %s",
              in("seg.json"), in("pyramid"), deeplab), 0);
    check(run(NULL, "eval %s run.folder=%s 'eval.scales=[1,0.5,0.501]' eval.flip=true %s",
              in("seg.json"), in("pyramid"), deeplab), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics),
        cmocka_unit_test(colors_agree),
        cmocka_unit_test(tags),
        cmocka_unit_test(pictures),
        cmocka_unit_test(exported),
        cmocka_unit_test(from_onnx),
        cmocka_unit_test(other_stride),
        cmocka_unit_test(losses),
        cmocka_unit_test(pyramid_and_scales),
    };

    return cmocka_run_group_tests_name("segmentation_run", tests, train, drop_world);
}
