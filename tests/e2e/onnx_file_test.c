/* A net from model.onnx that was not trained in a run: predict, eval and export use the values
 * of the file, for any form of its weights. The answers equal those that this test computes in
 * double precision for the same picture. */
#include "e2e/program.h"

#include <math.h>

#include <pumice/data.h>
#include <pumice/onnx.h>

enum { SIDE = 16, MADE = 6, CLASSES = 4 };

static const float conv[MADE] = { 0.5F, -0.75F, 1.25F, -1.5F, 2, -0.25F };
static const char *const labels[CLASSES] = { "north", "east", "south", "west" };
static float dense[MADE * CLASSES]; /* [made][class] */

static void add(struct pm_onnx_model *m, const char *op, const char *in, const char *weights,
                const char *bias, const char *out)
{
    pm_onnx_add(m, op, out, (const char *[]){ in, weights, bias, NULL },
                (const char *[]){ out, NULL });
}

/* With weights: a grouped convolution, Relu, an average, Gemm with its matrix in either order,
 * and an added fill. Without weights: only the average; its three channels are the classes. */
static void write_model(const char *path, bool weights, bool turned)
{
    static const int64_t four[] = { CLASSES };
    struct pm_onnx_model *m = pm_onnx_make("g");
    float w[MADE * CLASSES];

    m->producer = "somebody";
    for (int i = 0; i < MADE; i++)
        for (int k = 0; k < CLASSES; k++)
            w[turned ? k * MADE + i : i * CLASSES + k] = dense[i * CLASSES + k];
    pm_onnx_add_input(m, "x", PM_DTYPE_F32, 4, (const int64_t[]){ 1, 3, SIDE, SIDE });
    pm_onnx_add_output(m, "y", PM_DTYPE_F32, 2, (const int64_t[]){ 1, weights ? CLASSES : 3 });
    if (weights) {
        pm_onnx_add_tensor(m, "conv.w", PM_DTYPE_F32, 4, (const int64_t[]){ MADE, 1, 1, 1 }, conv);
        pm_onnx_add_tensor(m, "fc.w", PM_DTYPE_F32, 2,
                           turned ? (const int64_t[]){ CLASSES, MADE }
                                  : (const int64_t[]){ MADE, CLASSES }, w);
        pm_onnx_add_tensor(m, "shape", PM_DTYPE_I64, 1, (const int64_t[]){ 1 }, four);
        add(m, "ConstantOfShape", "shape", NULL, NULL, "fc.b");
        add(m, "Conv", "x", "conv.w", NULL, "c");
        pm_onnx_set_int(m, &m->nodes[m->node_count - 1], "group", 3);
        add(m, "Relu", "c", NULL, NULL, "r");
        add(m, "GlobalAveragePool", "r", NULL, NULL, "p");
        add(m, "Flatten", "p", NULL, NULL, "f");
        add(m, "Gemm", "f", "fc.w", "fc.b", "y");
        pm_onnx_set_int(m, &m->nodes[m->node_count - 1], "transB", turned);
        pm_onnx_add_meta(m, "labels", "[\"north\", \"east\", \"south\", \"west\"]");
    } else {
        add(m, "GlobalAveragePool", "x", NULL, NULL, "p");
        add(m, "Flatten", "p", NULL, NULL, "y");
    }
    if (pm_onnx_write(m, path, false, NULL) < 0)
        fail_msg("%s", pm_error_text());
    pm_onnx_close(&m);
}

/* Computes the probabilities of the picture. Returns their number. */
static int expected(bool weights, double out[CLASSES])
{
    char *bytes = NULL;
    struct pm_image8 im;
    double made[MADE] = { 0 }, sum = 0;
    const int classes = weights ? CLASSES : 3;
    size_t size;

    if (pm_file_read(in("picture.png"), &bytes, &size) < 0 ||
        pm_image_decode(bytes, size, 3, 0, "picture", &im) < 0)
        fail_msg("%s", pm_error_text());
    for (int i = 0; i < SIDE * SIDE; i++)
        for (int o = 0; o < (weights ? MADE : 3); o++) {
            const double x = (im.pixels[3 * i + (weights ? o / 2 : o)] - 128.0) / 128;

            made[o] += (weights ? fmax(0, (double)conv[o] * x) : x) / (SIDE * SIDE);
        }
    for (int k = 0; k < classes; k++) {
        out[k] = weights ? 0 : made[k];
        for (int o = 0; weights && o < MADE; o++)
            out[k] += made[o] * (double)dense[o * CLASSES + k];
        out[k] = exp(out[k]);
        sum += out[k];
    }
    for (int k = 0; k < classes; k++)
        out[k] /= sum;
    pm_image_free(&im);
    pm_free(bytes);
    return classes;
}

static void check_predicted(const char *arguments, bool weights, const char *message)
{
    double want[CLASSES];
    const int classes = expected(weights, want);
    struct result r = run(NULL, "predict %s %s --json", arguments, in("picture.png"));
    cJSON *json = json_of(&r);
    const cJSON *image = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "images"), 0), *row;
    const cJSON *top = cJSON_GetObjectItem(image, "top");

    if (cJSON_GetArraySize(top) != classes)
        fail_msg("%s: %s", r.out, r.err);
    cJSON_ArrayForEach(row, top)
        assert_float_equal(number_of(row, "probability"), want[(int)number_of(row, "label")], 1e-6);
    if (weights) {
        const cJSON *first = cJSON_GetArrayItem(top, 0);

        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(first, "name")),
                            labels[(int)number_of(first, "label")]);
    }
    assert_contains(r.err, message);
    cJSON_Delete(json);
    check(r, 0);
}

static void put_config(const char *name, const char *model)
{
    struct pm_str text = { 0 };

    pm_str_add(&text, "{ \"model\": { \"onnx\": \"%s\" }, \"devices\": [\"cpu\"],\n"
               "  \"input\": { \"preprocessing\": \"lenet\", \"size\": %d },\n"
               "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.05 },\n"
               "  \"data\": { \"eval_split\": \"test\" }, \"run\": { \"steps\": 2, "
               "\"batch_size\": 8 } }\n",
               model, SIDE);
    put_text(name, text.text);
    pm_str_free(&text);
}

static int make(void **state)
{
    struct pm_arena *a = pm_arena_create();
    char **names = NULL, *bytes;
    size_t n = 0, size;

    (void)state;
    if (make_world(true) < 0)
        return -1;
    for (int i = 0; i < MADE * CLASSES; i++)
        dense[i] = (float)((i * 7 % 11) - 5) / 4;
    check(run(NULL, "dataset inspect %s --pictures %s", in("data"), in("pictures")), 0);
    if (pm_list_folder(a, in("pictures"), &names, &n) < 0 || n == 0 ||
        pm_file_read(in("pictures/%s", names[0]), &bytes, &size) < 0 ||
        pm_file_write(in("picture.png"), bytes, size) < 0)
        return -1;
    pm_free(bytes);
    pm_arena_destroy(&a);
    write_model(in("straight.onnx"), true, false);
    write_model(in("turned.onnx"), true, true);
    write_model(in("bare.onnx"), false, false);
    put_config(in("straight.json"), in("straight.onnx"));
    put_config(in("turned.json"), in("turned.onnx"));
    put_config(in("bare.json"), in("bare.onnx"));
    return 0;
}

static const char *const models[] = { "straight", "turned", "bare" };

/* Without a run, with a run folder that holds nothing, and with the file as eval.checkpoint. */
static void predicted(void **state)
{
    char arguments[2048];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(models); i++) {
        const bool weights = i < 2;

        check_predicted(in("%s.json", models[i]), weights,
                        "the weights are those of the model file: run.folder is not set");
        snprintf(arguments, sizeof arguments, "%s run.folder=%s", in("%s.json", models[i]),
                 in("none"));
        check_predicted(arguments, weights, "none has no checkpoint");
        snprintf(arguments, sizeof arguments, "%s eval.checkpoint=%s", in("%s.json", models[i]),
                 in("%s.onnx", models[i]));
        check_predicted(arguments, weights, "eval.checkpoint names it");
    }
}

static void exported(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(models); i++) {
        struct result r = run(NULL, "export %s %s --json", in("%s.json", models[i]),
                              in("again.onnx"));
        cJSON *json = json_of(&r);

        assert_true(number_of(json, "difference") < 1e-6);
        cJSON_Delete(json);
        check(r, 0);
        put_config(in("again.json"), in("again.onnx"));
        check_predicted(in("again.json"), i < 2, "the weights are those of the model file");
    }
    check(run(NULL, "export %s %s", in("straight.json"), in("straight.onnx")), 2,
          "straight.onnx is an input of this command");
}

static double first_probability(const char *config)
{
    struct result r = run(NULL, "predict %s %s input.size=32 eval.batch_size=1 --json", config,
                          in("picture.png"));
    cJSON *json = json_of(&r);
    const cJSON *image = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "images"), 0);
    const double p =
        number_of(cJSON_GetArrayItem(cJSON_GetObjectItem(image, "top"), 0), "probability");

    cJSON_Delete(json);
    check(r, 0);
    return p;
}

/* A graph that removes the axis of pictures on its way, as PyTorch's attention does. */
static void one_picture_at_a_time(void **state)
{
    const char *source = getenv("PUMICE_SOURCE");
    char vit[1024];
    struct result r;

    (void)state;
    snprintf(vit, sizeof vit, "%s/tests/golden/onnx/vit_narrow.onnx", source ? source : ".");
    put_config(in("vit.json"), vit);
    put_config(in("again.json"), in("vit_again.onnx"));
    r = run(NULL, "export %s %s input.size=32", in("vit.json"), in("vit_again.onnx"));
    assert_contains(r.out, "input images: float32 [1, 3, 32, 32]");
    assert_contains(r.err, "the model takes one picture at a time");
    check(r, 0);
    assert_float_equal(first_probability(in("again.json")), first_probability(in("vit.json")),
                       1e-6);
    r = run(NULL, "export %s %s", in("turned.json"), in("again.onnx"));
    assert_contains(r.out, "input images: float32 [N, 3, 16, 16]");
    assert_null(strstr(r.err, "one at a time"));
    check(r, 0);
}

static void evaluated(void **state)
{
    struct result r = run(NULL, "eval %s data.folder=%s --json", in("turned.json"), in("data"));
    cJSON *json = json_of(&r), *other;
    const cJSON *metrics = cJSON_GetObjectItem(json, "metrics");

    (void)state;
    assert_int_equal(number_of(json, "count"), 20);
    assert_true(number_of(metrics, "loss") > 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "step")));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, "checkpoint")),
                        in("turned.onnx"));
    check(r, 0);
    r = run(NULL, "eval %s data.folder=%s --json", in("straight.json"), in("data"));
    other = json_of(&r);
    assert_float_equal(number_of(cJSON_GetObjectItem(other, "metrics"), "loss"),
                       number_of(metrics, "loss"), 1e-6);
    cJSON_Delete(json);
    cJSON_Delete(other);
    check(r, 0);
}

/* A trained checkpoint has priority over the file. A new last layer has no values. */
static void trained(void **state)
{
    struct result r;

    (void)state;
    check(run(NULL, "train %s data.folder=%s run.folder=%s", in("turned.json"), in("data"),
              in("run")),
          0);
    r = run(NULL, "predict %s %s run.folder=%s --json", in("turned.json"), in("picture.png"),
            in("run"));
    assert_null(strstr(r.err, "the model's own"));
    assert_contains(r.out, "\"step\":");
    check(r, 0);
    check(run(NULL, "predict %s %s model.onnx_new_head=true model.num_classes=3", in("turned.json"),
              in("picture.png")), 3, "model.onnx", "has no values before training: train first");
    check(run(NULL, "predict %s %s model.onnx=%s", in("turned.json"), in("picture.png"),
              in("nowhere.onnx")), 3, "nowhere.onnx does not exist");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predicted), cmocka_unit_test(exported),
        cmocka_unit_test(one_picture_at_a_time), cmocka_unit_test(evaluated),
        cmocka_unit_test(trained),
    };

    return cmocka_run_group_tests(tests, make, drop_world);
}
