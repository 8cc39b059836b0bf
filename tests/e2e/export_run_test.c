/* pumice export: the exported values, the messages, and refused options. The run is
 * FOLDER/source, three steps with moving averages of the small net with six filters. */
#include "e2e/program.h"

#include <math.h>

#include <pumice/checkpoint.h>
#include <pumice/onnx.h>

static struct pm_onnx_model *model_of(const char *file)
{
    struct pm_onnx_model *m = NULL;

    if (pm_onnx_read(file, &m) < 0)
        fail_msg("%s", pm_error_text());
    return m;
}

/* True when an initializer has the values of a tensor of the run's checkpoint. */
static bool has_values(const struct pm_onnx_model *m, const char *initializer, const char *tensor,
                       struct pm_shape shape)
{
    const struct pm_onnx_tensor *t = pm_onnx_tensor_find(m, initializer);
    struct pm_checkpoint *c = NULL;
    float v[2][512];

    assert_non_null(t);
    assert_int_equal(t->count, pm_shape_count(shape));
    assert_true(t->count <= 512);
    if (pm_checkpoint_open_newest(in("source"), &c) < 0 ||
        pm_checkpoint_read(c, tensor, shape, v[0]) < 0 ||
        pm_onnx_floats(t, 0, (size_t)t->count, v[1]) < 0)
        fail_msg("%s", pm_error_text());
    pm_checkpoint_close(&c);
    return memcmp(v[0], v[1], (size_t)t->count * sizeof(float)) == 0;
}

static void values_and_averages(void **state)
{
    const struct pm_shape six = PM_SHAPE1(6), logits = PM_SHAPE2(96, 4);
    struct pm_onnx_model *m;

    (void)state;
    check(run(NULL, "export %s", in("source")), 0);
    m = model_of(in("source/model.onnx"));
    assert_true(has_values(m, "conv1/biases", "conv1/biases/ExponentialMovingAverage", six));
    assert_true(
        has_values(m, "norm1/moving_mean", "norm1/moving_mean/ExponentialMovingAverage", six));
    assert_true(has_values(m, "logits/weights", "logits/weights/ExponentialMovingAverage", logits));
    pm_onnx_close(&m);
    check(run(NULL, "export %s %s eval.averages=off", in("source"), in("off.onnx")), 0);
    check(run(NULL, "export %s %s eval.checkpoint=%s", in("source"), in("off.onnx"),
              in("off.onnx")), 2, "off.onnx is an input of this command");
    m = model_of(in("off.onnx"));
    assert_true(has_values(m, "conv1/biases", "conv1/biases", six));
    assert_false(has_values(m, "conv1/biases", "conv1/biases/ExponentialMovingAverage", six));
    assert_true(has_values(m, "logits/weights", "logits/weights", logits));
    pm_onnx_close(&m);
    check(run(NULL, "export %s run.folder=%s model.layers.0.filters=6 export.file=%s",
              in("net.json"), in("source"), in("again.onnx")),
          0);
    same_bytes(in("source/model.onnx"), in("again.onnx"));
}

static void notes(void **state)
{
    struct pm_onnx_model *m;
    cJSON *labels, *how;

    (void)state;
    check(run(NULL, "export %s %s", in("source"), in("notes.onnx")), 0);
    m = model_of(in("notes.onnx"));
    assert_string_equal(m->producer, "pumice");
    assert_string_equal(pm_onnx_meta(m, "step"), "3");
    assert_string_equal(pm_onnx_meta(m, "averages"), "true");
    labels = cJSON_Parse(pm_onnx_meta(m, "labels"));
    assert_int_equal(cJSON_GetArraySize(labels), 4);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(labels, 0)), "disc");
    how = cJSON_Parse(pm_onnx_meta(m, "preprocessing"));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(how, "name")), "cifarnet");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(how, "channels")), "RGB");
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetArrayItem(cJSON_GetObjectItem(how, "size"), 1)),
                     16);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(how, "inside")));
    cJSON_Delete(labels);
    cJSON_Delete(how);
    pm_onnx_close(&m);
    /* The names of classes come from the checkpoint, not from the data folder. */
    check(run(NULL, "export %s %s data.folder=%s", in("source"), in("bare.onnx"), in("no_data")),
          0);
    m = model_of(in("bare.onnx"));
    assert_non_null(pm_onnx_meta(m, "labels"));
    pm_onnx_close(&m);
}

static void what_it_says(void **state)
{
    struct result r = run(NULL, "export %s %s export.weights=beside export.preprocessing=fold "
                          "export.output=probabilities export.batch_size=5 --json", in("source"),
                          in("said.onnx"));
    cJSON *json = json_of(&r), *value = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "inputs"), 0);
    const cJSON *shape = cJSON_GetObjectItem(value, "shape");

    (void)state;
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(value, "type")), "uint8");
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetArrayItem(shape, 0)), 5);
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetArrayItem(shape, 3)), 3);
    value = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "outputs"), 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(value, "name")), "probabilities");
    assert_int_equal(number_of(json, "step"), 3);
    assert_int_equal(number_of(json, "labels"), 4);
    assert_int_equal(number_of(json, "parameters"), 3 * 3 * 3 * 6 + 6 + 4 * 6 + 96 * 4 + 4);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "averages")));
    assert_true(pm_file_exists(cJSON_GetStringValue(cJSON_GetObjectItem(json, "data"))));
    cJSON_Delete(json);
    drop(&r);
    r = run(NULL, "export %s %s", in("source"), in("said.onnx"));
    assert_contains(r.out, "input images: float32 [N, 3, 16, 16]");
    assert_contains(r.out, "output logits: float32 [N, 4]");
    assert_contains(r.out, "moving averages");
    assert_contains(r.out, "read again and run on the CPU: differs by at most ");
    check(r, 0);
    r = run(NULL, "export %s %s export.size=[17,18]", in("source"),
            in("said.onnx"));
    assert_contains(r.out, "input images: float32 [N, 3, 17, 18]");
    check(r, 0);
}

static int operators(const struct pm_onnx_model *m, const char *op)
{
    int count = 0;

    for (size_t i = 0; i < m->node_count; i++)
        count += strcmp(m->nodes[i].op, op) == 0;
    return count;
}

/* The initial values of run.seed, also for a config whose run folder has a checkpoint. */
static void without_checkpoint(void **state)
{
    struct pm_onnx_model *m, *other;
    float v[3][384];
    struct result r;

    (void)state;
    r = run(NULL, "export %s %s export.checkpoint=none --json", in("source"), in("none.onnx"));
    cJSON *json = json_of(&r);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "checkpoint")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "step")));
    assert_false(cJSON_IsTrue(cJSON_GetObjectItem(json, "averages")));
    assert_true(number_of(json, "difference") <= 1e-6);
    cJSON_Delete(json);
    check(r, 0);
    r = run(NULL, "export %s %s run.folder=%s export.checkpoint=none model.layers.0.filters=6 "
            "data.folder=null model.num_classes=4 input.channels=3", in("net.json"),
            in("none2.onnx"), in("nowhere"));
    assert_contains(r.out, "from the net's initial values");
    assert_contains(r.out, "read again and run on the CPU");
    check(r, 0);
    assert_false(pm_is_folder(in("nowhere")));
    check(run(NULL, "export %s %s export.checkpoint=none run.seed=99", in("source"),
              in("none3.onnx")), 0);
    const char *const files[] = { in("none.onnx"), in("none2.onnx"), in("none3.onnx") };
    for (int k = 0; k < 3; k++) {
        m = model_of(files[k]);
        const struct pm_onnx_tensor *t = pm_onnx_tensor_find(m, "logits/weights");
        assert_non_null(t);
        assert_int_equal(t->count, 384);
        assert_int_equal(pm_onnx_floats(t, 0, 384, v[k]), PM_OK);
        assert_null(pm_onnx_meta(m, "step"));
        assert_null(pm_onnx_meta(m, "training"));
        pm_onnx_close(&m);
    }
    assert_memory_equal(v[0], v[1], sizeof v[0]);
    assert_memory_not_equal(v[0], v[2], sizeof v[0]);
    other = model_of(in("none.onnx"));
    assert_false(has_values(other, "logits/weights", "logits/weights", PM_SHAPE2(96, 4)));
    pm_onnx_close(&other);
    check(run(NULL, "export %s %s export.checkpoint=best", in("source"), in("x.onnx")), 2,
          "export.checkpoint", "eval|none");
}

/* training_mode_check.py computes such files with onnxruntime. */
static void training_mode(void **state)
{
    struct pm_onnx_model *m;
    struct result r = run(NULL, "export %s %s export.training=true", in("source"),
                          in("training.onnx"));

    (void)state;
    assert_contains(r.out, "in training mode: outputs depend on the batch");
    assert_null(strstr(r.out, "read again"));
    check(r, 0);
    m = model_of(in("training.onnx"));
    assert_int_equal(operators(m, "BatchNormalization"), 0);
    assert_int_equal(operators(m, "ReduceMean"), 2);
    assert_null(pm_onnx_tensor_find(m, "norm1/moving_mean"));
    assert_true(has_values(m, "logits/weights", "logits/weights/ExponentialMovingAverage",
                           PM_SHAPE2(96, 4)));
    assert_string_equal(pm_onnx_meta(m, "training"), "true");
    pm_onnx_close(&m);
    check(run(NULL, "export %s %s export.training=true export.fold_batch_norm=true", in("source"),
              in("x.onnx")), 2, "export.training", "cannot be folded");
    check(run(NULL, "export %s %s export.training=true export.checkpoint=none "
              "model.quantize_delay=0", in("source"), in("x.onnx")), 2, "export.training",
          "model.quantize_delay");
    assert_false(pm_file_exists(in("x.onnx")));
}

static void folded(void **state)
{
    struct pm_onnx_model *m;

    (void)state;
    check(run(NULL, "export %s %s export.fold_batch_norm=true", in("source"), in("fold.onnx")), 0);
    m = model_of(in("fold.onnx"));
    for (size_t i = 0; i < m->node_count; i++)
        assert_string_not_equal(m->nodes[i].op, "BatchNormalization");
    assert_null(pm_onnx_tensor_find(m, "norm1/gamma"));
    pm_onnx_close(&m);
}

/* Operators of 8 bits cannot be imported; a message says so. */
static void quantized(void **state)
{
    struct result r;

    (void)state;
    check(run(NULL, "train %s run.folder=%s run.steps=1 model.quantize_delay=0", in("net.json"),
              in("quantized")), 0);
    r = run(NULL, "export %s %s", in("quantized"), in("quantized.onnx"));
    assert_null(strstr(r.out, "read again"));
    assert_true(pm_file_exists(in("quantized.onnx")));
    check(r, 0, "of the exported model was not compared with the net's: ", "DequantizeLinear");
}

/* For a net that has diverged nothing can be compared, and no file is left. */
static void diverged(void **state)
{
    struct pm_checkpoint *c = NULL;
    struct pm_file_tensor list[64];
    size_t count;

    (void)state;
    assert_int_equal(pm_checkpoint_open_newest(in("source"), &c), PM_OK);
    count = pm_tensor_file_count(c->tensors);
    assert_in_range(count, 1, 64);
    for (size_t i = 0; i < count; i++) {
        list[i] = *pm_tensor_file_get(c->tensors, i);
        void *data = pm_malloc((size_t)list[i].bytes + 1);
        assert_int_equal(pm_tensor_file_bytes(c->tensors, &list[i], 0, (size_t)list[i].bytes, data),
                         0);
        if (strncmp(list[i].name, "logits/biases", 13) == 0)
            *(float *)data = NAN;
        list[i].data = data;
    }
    assert_int_equal(pm_safetensors_write(in("nan.safetensors"), list, count, NULL, NULL), PM_OK);
    for (size_t i = 0; i < count; i++)
        pm_free((void *)list[i].data);
    pm_checkpoint_close(&c);
    check(run(NULL, "export %s %s eval.checkpoint=%s", in("source"), in("nan.onnx"),
              in("nan.safetensors")), 1, "is not finite");
    assert_false(pm_file_exists(in("nan.onnx")));
    /* An earlier export of the same name is kept with its data. */
    assert_int_equal(mkdir(in("stays"), 0777), 0);
    check(run(NULL, "export %s %s export.weights=beside", in("source"), in("stays/m.onnx")), 0);
    check(run(NULL, "checkpoint convert %s %s", in("stays/m.onnx"), in("before.safetensors")), 0);
    check(run(NULL, "export %s %s export.weights=beside eval.checkpoint=%s", in("source"),
              in("stays/m.onnx"), in("nan.safetensors")), 1, "The file was not written");
    check(run(NULL, "checkpoint diff %s %s", in("stays/m.onnx"), in("before.safetensors")), 0);
    assert_int_equal(temporaries(in("stays")), 0);
}

/* Exports that need no pictures do not read a split for the classes. */
static void classes(void **state)
{
    static const char *const commands[] = { "export %s %s", "predict %s/config.json %s" };
    struct result r;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(commands); i++) {
        char line[256];

        snprintf(line, sizeof line, "%s data.eval_split=none data.train_split=nor --json",
                 commands[i]);
        r = run(NULL, line, in("source"), in(i == 0 ? "classes.onnx" : "pictures"));
        assert_int_equal(r.code, 0);
        assert_non_null(strstr(r.out, i == 0 ? "\"labels\": 4" : "\"ring\""));
        drop(&r);
    }
}

static void refusals(void **state)
{
    (void)state;
    check(run(NULL, "export %s run.folder=%s", in("net.json"), in("nothing")), 3, "nothing",
          "eval.checkpoint");
    check(run(NULL, "export %s %s eval.checkpoint=7", in("source"), in("x.onnx")), 3, "'7'");
    check(run(NULL, "export %s %s export.any_size=true", in("source"), in("x.onnx")), 2,
          "export.any_size", "first in logits:");
    /* A pool so coarse that slightly larger pictures give the same output. */
    check(run(NULL, "export %s %s export.any_size=true export.size=256 model.layers.2.kernel=32 "
              "model.layers.2.stride=32", in("source"), in("x.onnx")), 2, "export.any_size",
          "first in logits:");
    check(run(NULL, "export %s %s export.any_size=true export.preprocessing=fold", in("source"),
              in("x.onnx")), 2, "images", "depends on the size");
    check(run(NULL, "export %s %s", in("source"), in("no/such/folder/x.onnx")), 1, "x.onnx");
    check(run(NULL, "export %s", in("no_run")), 2, "no_run");
    check(run(NULL, "export"), 2, "config file");
    assert_false(pm_file_exists(in("x.onnx")));
}

static int setup(void **state)
{
    (void)state;
    if (make_world(true) < 0)
        return -1;
    check(run(NULL, "train %s run.folder=%s optim.moving_average_decay=0.5 "
              "model.layers.0.filters=6", in("net.json"), in("source")), 0);
    check(run(NULL, "dataset inspect %s --records 1 --pictures %s", in("data"), in("pictures")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_averages),
        cmocka_unit_test(notes),
        cmocka_unit_test(what_it_says),
        cmocka_unit_test(without_checkpoint), cmocka_unit_test(training_mode),
        cmocka_unit_test(folded), cmocka_unit_test(quantized),
        cmocka_unit_test(diverged), cmocka_unit_test(classes), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, setup, drop_world);
}
