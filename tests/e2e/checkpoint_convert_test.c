/* checkpoint convert: a conversion to another format and back gives the same bytes, tensors are
 * selected and renamed, and mistakes are refused. Training and evaluation give the same results
 * from the converted file. The source is FOLDER/run, three steps of lenet with moving averages. */
#include "e2e/program.h"

#include <pumice/checkpoint.h>

#define SOURCE "run/checkpoints/step-000003.safetensors"

/* With pictures of 12 pixels lenet has a fifth of its weights, so every command here reads a
 * fifth of the bytes. */
static const char lenet[] =
    "{ \"model\": { \"name\": \"lenet\" }, \"input\": { \"size\": 12 },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"optim\": { \"name\": \"momentum\", \"moving_average_decay\": 0.9 }, "
    "\"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.001 },\n"
    "  \"run\": { \"steps\": 3, \"batch_size\": 8 }, \"eval\": { \"batch_size\": 8 } }\n";

static struct result convert(const char *from, const char *to, const char *options)
{
    return run(NULL, "checkpoint convert %s %s %s", in("%s", from), in("%s", to), options);
}

static void made(const char *from, const char *to, const char *options)
{
    check(convert(from, to, options), 0);
    assert_int_equal(temporaries(folder), 0);
}

static struct pm_checkpoint *opened(const char *name)
{
    struct pm_checkpoint *c = NULL;

    if (pm_checkpoint_open(NULL, in("%s", name), "test", &c) < 0)
        fail_msg("%s", pm_error_text());
    return c;
}

static size_t count_of(const char *name)
{
    struct pm_checkpoint *c = opened(name);
    size_t count = pm_tensor_file_count(c->tensors);

    pm_checkpoint_close(&c);
    return count;
}

/* An element of a tensor in a file. */
static float element(const char *file, const char *name, uint64_t i)
{
    struct pm_checkpoint *c = opened(file);
    const struct pm_file_tensor *t = pm_tensor_file_find(c->tensors, name);
    float v = 0;

    if (!t)
        fail_msg("%s has no %s", file, name);
    if (pm_tensor_file_floats(c->tensors, t, i, 1, &v) < 0)
        fail_msg("%s", pm_error_text());
    pm_checkpoint_close(&c);
    return v;
}

/* Pumice's checkpoint converted to TensorFlow's and back is the same file. TensorFlow's stores
 * the step as a tensor. */
static void there_and_back(void **state)
{
    struct pm_checkpoint *c;

    (void)state;
    made("run", "tf/model.ckpt-3", "");
    made("tf/model.ckpt-3", "back.safetensors", "");
    same_bytes(in(SOURCE), in("back.safetensors"));
    c = opened("tf/model.ckpt-3");
    assert_true(c->step == 3);
    assert_string_equal(pm_tensor_file_format(c->tensors), "TensorFlow V2 checkpoint");
    assert_int_equal(pm_tensor_file_find(c->tensors, "global_step")->type, PM_DTYPE_I64);
    pm_checkpoint_close(&c);
    assert_int_equal(count_of("tf/model.ckpt-3"), count_of("run") + 1);
    check(run(NULL, "checkpoint diff %s %s", in("run"), in("tf/model.ckpt-3")), 0);
    check(run(NULL, "checkpoint diff %s %s", in("run"), in("tf")), 0); /* by the file checkpoint */

    made("tf/model.ckpt-3", "again/model.ckpt-3.index", "");
    same_bytes(in("tf/model.ckpt-3.index"), in("again/model.ckpt-3.index"));
    same_bytes(in("tf/model.ckpt-3.data-00000-of-00001"),
               in("again/model.ckpt-3.data-00000-of-00001"));
    assert_false(pm_file_exists(in("again/model.ckpt-3.index.index")));
}

static void parts_and_names(void **state)
{
    static const char weights[] = "LeNet/fc4/weights";
    size_t variables = 8;

    (void)state;
    made("run", "variables.safetensors", "keep=variables");
    assert_int_equal(count_of("variables.safetensors"), variables);
    made("run", "averages.safetensors", "keep=variables averages=on");
    assert_int_equal(count_of("averages.safetensors"), variables);
    assert_true(element("averages.safetensors", weights, 5) ==
                element(SOURCE, "LeNet/fc4/weights/ExponentialMovingAverage", 5));
    assert_true(element("variables.safetensors", weights, 5) == element(SOURCE, weights, 5));
    assert_true(element(SOURCE, weights, 5) !=
                element(SOURCE, "LeNet/fc4/weights/ExponentialMovingAverage", 5));

    made("run", "some.safetensors", "only='[\"LeNet/fc3\", \"LeNet/fc4\"]' exclude=LeNet/fc3/b "
         "keep=variables strip=LeNet/ --prefix head/");
    assert_int_equal(count_of("some.safetensors"), 3);
    assert_true(element("some.safetensors", "head/fc4/weights", 5) == element(SOURCE, weights, 5));
    made("run", "some.safetensors", "only=LeNet/fc4/biases keep=variables --force");
    assert_int_equal(count_of("some.safetensors"), 1);
}

static void step_is(const char *name, uint64_t step, int type)
{
    struct pm_checkpoint *c = opened(name);
    const struct pm_file_tensor *t = pm_tensor_file_find(c->tensors, "global_step");

    assert_true(c->has_step && c->step == step);
    if (type >= 0)
        assert_true(t && (int)t->type == type);
    else
        assert_null(t);
    pm_checkpoint_close(&c);
}

/* global_step keeps its type, also through other formats. A file can hold global_step only. */
static void steps(void **state)
{
    static const int32_t short_step = 7;
    static const float w = 2;
    static const struct pm_file_tensor list[] = {
        { .name = "global_step", .type = PM_DTYPE_I32, .data = &short_step },
        { .name = "w", .type = PM_DTYPE_F32, .data = &w },
    };

    (void)state;
    for (size_t count = 1; count <= 2; count++) {
        assert_int_equal(pm_tf_bundle_write(in("short.ckpt"), list, count, false), 0);
        made("short.ckpt", "short2.ckpt", "force=true");
        step_is("short2.ckpt", 7, PM_DTYPE_I32);
        made("short.ckpt", "short.safetensors", "force=true");
        step_is("short.safetensors", 7, -1);
        made("short.safetensors", "short2.safetensors", "force=true");
        made("short2.safetensors", "short3.ckpt", "force=true");
        step_is("short3.ckpt", 7, PM_DTYPE_I32);
        same_bytes(in("short2.ckpt.index"), in("short3.ckpt.index"));
    }
    /* The step does not fit the recorded type, int32, which is then ignored. */
    assert_int_equal(
        pm_safetensors_write(in("long.safetensors"), &list[1], 1,
                             (const char *[]){ "step", "4294967303", "step_dtype", "int32", NULL },
                             NULL),
        0);
    made("long.safetensors", "long.ckpt", "");
    step_is("long.ckpt", UINT64_C(4294967303), PM_DTYPE_I64);
    check(convert("short.ckpt", "none.ckpt", "only=v"), 3,
          "select none of its 2 tensors");
}

static void endings(void **state)
{
    (void)state;
    made("run", "x.ckpt.ckpt", "");
    step_is("x.ckpt.ckpt", 3, PM_DTYPE_I64);
    check(run(NULL, "checkpoint diff %s %s", in("run"), in("x.ckpt.ckpt")), 0);
    check(convert("run", "x.ckpt.pt", ""), 2, "the ending of",
          "x.ckpt.pt does not select a format");
    check(convert("run", "x.ckpt/y", ""), 2, "the ending of");
}

/* Halves and doubles become floats when asked; other types stay. Tensors without numbers are not
 * written. */
static void types(void **state)
{
    static const uint16_t half[3] = { 0x3c00, 0xc080, 0x0001 };
    static const double wide[2] = { 1.0 / 3, 1e300 };
    static const int32_t whole[2] = { -7, 1 << 30 };
    static const struct pm_file_tensor list[] = {
        { .name = "half", .type = PM_DTYPE_F16, .rank = 1, .dim = { 3 }, .data = half },
        { .name = "wide", .type = PM_DTYPE_F64, .rank = 1, .dim = { 2 }, .data = wide },
        { .name = "whole", .type = PM_DTYPE_I32, .rank = 1, .dim = { 2 }, .data = whole },
        { .name = "none", .type = PM_DTYPE_F32, .rank = 2, .dim = { 0, 4 } },
    };
    struct pm_checkpoint *c;

    (void)state;
    assert_int_equal(pm_safetensors_write(in("types.safetensors"), list, 4, NULL, NULL), 0);
    made("types.safetensors", "types.ckpt", "");
    check(run(NULL, "checkpoint diff %s %s", in("types.safetensors"), in("types.ckpt")), 0);
    made("types.ckpt", "floats.safetensors", "dtype=f32");
    c = opened("floats.safetensors");
    assert_int_equal(pm_tensor_file_find(c->tensors, "half")->type, PM_DTYPE_F32);
    assert_int_equal(pm_tensor_file_find(c->tensors, "wide")->type, PM_DTYPE_F32);
    assert_int_equal(pm_tensor_file_find(c->tensors, "whole")->type, PM_DTYPE_I32);
    pm_checkpoint_close(&c);
    assert_true(element("floats.safetensors", "half", 1) == -2.25f);
    assert_true(element("floats.safetensors", "half", 2) == 0x1p-24f);
    assert_true(element("floats.safetensors", "wide", 0) == (float)(1.0 / 3));
    assert_true(element("floats.safetensors", "whole", 1) == (float)(1 << 30));
}

/* Files of other programs give the same tensors; TensorFlow's files give the same bytes. */
static void files_of_others(void **state)
{
    static const char *const files[] = {
        "tf_checkpoint/plain", "tf_checkpoint/v1_shards", "tf_checkpoint/v2_shards",
        "pytorch/module.pt", "pytorch/legacy_views.pt",
    };
    const char *source = getenv("PUMICE_SOURCE");
    char path[1024];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", files[i]);
        check(run(NULL, "checkpoint convert %s %s --force", path, in("other.safetensors")), 0);
        check(run(NULL, "checkpoint diff %s %s", path, in("other.safetensors")), 0);
        check(run(NULL, "checkpoint convert %s %s --force", path, in("other.ckpt")), 0);
        check(run(NULL, "checkpoint diff %s %s", path, in("other.ckpt")), 0);
        if (i > 0)
            continue;
        snprintf(path, sizeof path, "%s/tests/golden/tf_checkpoint/plain/model.ckpt-7.index",
                 source ? source : ".");
        same_bytes(path, in("other.ckpt.index"));
        snprintf(path, sizeof path,
                 "%s/tests/golden/tf_checkpoint/plain/model.ckpt-7.data-00000-of-00001",
                 source ? source : ".");
        same_bytes(path, in("other.ckpt.data-00000-of-00001"));
    }
}

/* Each mistake gives one line and leaves no file behind. */
static void refusals(void **state)
{
    struct pm_arena *a = pm_arena_create();
    char **data;
    size_t count;

    (void)state;
    made("run", "there.safetensors", "");
    made("run", "there.ckpt", "");
    put_text(in("half.ckpt.data-00000-of-00001"), "of another");
    check(convert("run", "there.safetensors", ""), 2, "there.safetensors exists already",
          "force=true");
    check(convert("run", "there.ckpt", ""), 2, "there.ckpt.index exists already");
    check(convert("run", "half.ckpt", ""), 2, "half.ckpt.data-00000-of-00001 exists already");
    check(convert("there.safetensors", "there.safetensors", "--force"), 2, "is SRC itself");
    check(convert("there.ckpt", "there.ckpt", "--force"), 2, "is SRC itself");
    assert_int_equal(symlink(in("there.safetensors"), in("link.safetensors")), 0);
    check(convert("there.safetensors", "link.safetensors", "--force"), 2, "is SRC itself");
    check(run(NULL, "export %s %s export.weights=beside", in("run"), in("m.onnx")), 0);
    assert_int_equal(pm_glob(a, in("m.onnx-*.data"), &data, &count), PM_OK);
    assert_int_equal(count, 1);
    assert_int_equal(link(data[0], in("hard.safetensors")), 0);
    check(convert("m.onnx", "m.onnx", "to=safetensors force=true"), 2, "is SRC itself");
    check(convert("m.onnx", strrchr(data[0], '/') + 1, "to=safetensors force=true"), 2,
          "is SRC itself");
    pm_arena_destroy(&a);
    check(convert("m.onnx", "hard.safetensors", "force=true"), 2, "is SRC itself");
    check(convert("run", "data", "to=safetensors"), 2, "is a folder");
    check(convert("run", "model.pt", ""), 2, "model.pt does not select a format",
          "to=tensorflow");
    check(convert("run", "no/such/a.safetensors", ""), 1, "a.safetensors", "No such file");
    check(convert("run", "no/such/a.ckpt", ""), 1, "a.ckpt", "No such file");
    check(convert("nowhere", "a.safetensors", ""), 3, "nowhere");
    check(convert("run", "a.safetensors", "only=Lenet"), 3, "none of its 24 tensors");
    check(convert("run", "a.safetensors", "strip=LeNet/fc3/weights only=LeNet/fc3"), 2,
          "strip=LeNet/fc3/weights removes the whole name");
    check(convert("back.safetensors", "a.safetensors", "kepe=variables"), 2, "kepe", "keep");
    check(convert("variables.safetensors", "a.safetensors", "averages=on"), 3, "averages is on");
    check(convert("run", "a.safetensors", "net=lenet.json"), 2, "lenet.json");
    check(run(NULL, "checkpoint convert %s", in("run")), 2, "needs SRC DST");
    check(run(NULL, "checkpoint convert %s %s b", in("run"), in("a.safetensors")), 2, "'b'");
    assert_false(pm_file_exists(in("a.safetensors")));
    assert_int_equal(temporaries(folder), 0);
}

static void full_disk(void **state)
{
    static const char *const to[] = { "full.safetensors", "full.ckpt" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(to); i++)
        check(run(&(struct how){ .largest_file = 1 << 20 }, "checkpoint convert %s %s", in("run"),
                  in("%s", to[i])), 1, to[i], "File too large");
    assert_false(pm_file_exists(in("full.safetensors")));
    assert_false(pm_file_exists(in("full.ckpt.index")));
    assert_false(pm_file_exists(in("full.ckpt.data-00000-of-00001")));
    assert_int_equal(temporaries(folder), 0);
    /* The earlier file is still valid. */
    check(run(&(struct how){ .largest_file = 1 << 20 }, "checkpoint convert %s %s --force",
              in("types.safetensors"), in("there.safetensors")), 0);
    check(run(&(struct how){ .largest_file = 1 << 20 }, "checkpoint convert %s %s --force",
              in("run"), in("there.ckpt")),
          1, "File too large");
    check(run(NULL, "checkpoint diff %s %s", in("run"), in("there.ckpt")), 0);
}

static void train_from(const char *name, const char *file)
{
    struct result r = run(NULL, "train %s run.folder=%s init.checkpoint=%s run.seed=7",
                          in("lenet.json"), in("%s", name), in("%s", file));

    assert_contains(r.err, "init: 8 of 8 variables from ");
    assert_contains(r.err, "8 moving averages, 8 optimizer slots");
    check(r, 0);
}

/* The values are the same, so training and evaluation are the same. */
static void training_and_evaluation(void **state)
{
    static const char *const of[] = { "run", "tf", "tf/model.ckpt-3", SOURCE };
    char *first = NULL;

    (void)state;
    train_from("from_run", "run");
    train_from("from_tf", "tf/model.ckpt-3");
    same_bytes(in("from_run/checkpoints/step-000003.safetensors"),
               in("from_tf/checkpoints/step-000003.safetensors"));
    for (size_t i = 0; i < PM_COUNT(of); i++) {
        struct result r = run(NULL, "eval %s eval.checkpoint=%s run.folder=%s --json",
                              in("lenet.json"), in("%s", of[i]), in("elsewhere"));
        cJSON *json = json_of(&r);
        char *metrics = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, "metrics"));

        assert_int_equal(r.code, 0);
        assert_true(number_of(json, "step") == 3);
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "averages")));
        if (first)
            assert_string_equal(metrics, first);
        else
            first = pm_strdup(metrics);
        cJSON_free(metrics);
        cJSON_Delete(json);
        drop(&r);
    }
    pm_free(first);
}

static int setup(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(false) < 0)
        return -1;
    check(run(NULL, "dataset make shapes %s size=28 train=24 validation=0 test=16", in("data")), 0);
    pm_str_add(&text, lenet, folder);
    put_text(in("lenet.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "train %s run.folder=%s", in("lenet.json"), in("run")), 0);
    return pm_make_folders(in("tf")) < 0 || pm_make_folders(in("again")) < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(parts_and_names),
        cmocka_unit_test(types),
        cmocka_unit_test(steps),
        cmocka_unit_test(endings),
        cmocka_unit_test(files_of_others),
        cmocka_unit_test(refusals),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(training_and_evaluation),
    };
    return cmocka_run_group_tests(tests, setup, drop_world);
}
