/* init.restore "all": a new run continues from a checkpoint with optimizer slots, moving averages
 * and the step. From Pumice's own checkpoint, and from the same one converted to TensorFlow's
 * format, it gives the bits of the uninterrupted run. Also TensorFlow's powers of Adam's decays,
 * and the names of the Inception trainer in a whole program run. */
#include "e2e/program.h"

#include <pumice/checkpoint.h>

static const char lenet[] =
    "{ \"model\": { \"name\": \"lenet\" }, \"input\": { \"size\": 12 },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"optim\": { \"name\": \"adam\", \"moving_average_decay\": 0.9 }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.001 },\n"
    "  \"run\": { \"steps\": 3, \"batch_size\": 8 }, \"eval\": { \"batch_size\": 8 } }\n";
static const char inception[] =
    "{ \"model\": { \"name\": \"inception_v3\", \"depth_multiplier\": 0.05, \"min_depth\": 4 },\n"
    "  \"input\": { \"size\": 107 }, \"devices\": [\"cpu\"],\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"optim\": { \"name\": \"rmsprop\", \"moving_average_decay\": 0.9 },\n"
    "  \"run\": { \"steps\": 2, \"batch_size\": 2 }, \"eval\": { \"batch_size\": 8 } }\n";

#define SOURCE "run/checkpoints/step-000003.safetensors"

static struct result go_on(const char *name, const char *from, const char *more)
{
    return run(NULL, "train %s run.folder=%s init.checkpoint=%s init.restore=all run.steps=7 %s",
               in("lenet.json"), in("%s", name), in("%s", from), more);
}

/* The first floats of a tensor in a file. */
static void floats(const char *file, const char *name, size_t count, float *out)
{
    struct pm_checkpoint *c = NULL;
    const struct pm_file_tensor *t;

    if (pm_checkpoint_open(NULL, in("%s", file), "test", &c) < 0)
        fail_msg("%s", pm_error_text());
    t = pm_tensor_file_find(c->tensors, name);
    if (!t)
        fail_msg("%s has no %s", file, name);
    assert_int_equal(t->type, PM_DTYPE_F32);
    assert_int_equal(pm_tensor_file_floats(c->tensors, t, 0, count, out), PM_OK);
    pm_checkpoint_close(&c);
}

/* Our own checkpoint, by the run folder and by the file, and TensorFlow's. */
static void same_bits(void **state)
{
    static const char *const from[] = { "run", SOURCE, "tf/model.ckpt-3" };
    char name[16];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(from); i++) {
        snprintf(name, sizeof name, "next%zu", i);
        struct result r = go_on(name, from[i], "");

        assert_contains(r.err, "all variables, optimizer slots, moving averages and the step 3 are "
                               "restored");
        check(r, 0);
        same_bytes(in("%s/checkpoints/step-000007.safetensors", name),
                   in("whole/checkpoints/step-000007.safetensors"));
    }
    assert_false(pm_file_exists(in("next0/checkpoints/step-000003.safetensors")));
}

/* Only the step of a finished run: nothing is left to train, and the state is saved. */
static void a_finished_run(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s init.restore=all",
              in("lenet.json"), in("done"), in("run")), 0);
    same_bytes(in("done/checkpoints/step-000003.safetensors"), in(SOURCE));
}

/* The run's own checkpoint comes first, as for init.checkpoint without init.restore. */
static void resumed_runs(void **state)
{
    struct result r;

    (void)state;
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s init.restore=all run.steps=5",
              in("lenet.json"), in("twice"), in("run")), 0);
    r = run(NULL, "train %s run.folder=%s init.checkpoint=%s init.restore=all run.steps=7",
            in("lenet.json"), in("twice"), in("run"));
    assert_contains(r.err, "init.checkpoint is ignored");
    check(r, 0);
    same_bytes(in("twice/checkpoints/step-000007.safetensors"),
               in("whole/checkpoints/step-000007.safetensors"));
}

/* TensorFlow multiplies a 32-bit float by beta after each update. */
static void powers(void **state)
{
    const float beta[2] = { 0.9f, 0.999f };
    float want[2] = { beta[0], beta[1] }, x[1];

    (void)state;
    for (int step = 0; step < 3; step++)
        for (int k = 0; k < 2; k++)
            want[k] *= beta[k];
    floats("tf/model.ckpt-3", "beta1_power", 1, x);
    assert_true(x[0] == want[0]);
    floats("tf/model.ckpt-3", "beta2_power", 1, x);
    assert_true(x[0] == want[1]);
    /* They go through other formats, and are left out with the other state of training. */
    check(run(NULL, "checkpoint convert %s %s", in("tf/model.ckpt-3"), in("back.safetensors")), 0);
    check(run(NULL, "checkpoint convert %s %s", in("back.safetensors"), in("again.ckpt")), 0);
    floats("again.ckpt", "beta2_power", 1, x);
    assert_true(x[0] == want[1]);
    check(run(NULL, "checkpoint convert %s %s keep=variables", in("run"), in("few.ckpt")), 0);
    struct result r = run(NULL, "checkpoint inspect %s", in("few.ckpt"));
    assert_null(strstr(r.out, "beta1_power"));
    check(r, 0);
}

/* A checkpoint whose optimizer was changed at some step: its powers do not fit the step. */
static void other_powers(void **state)
{
    static const float power = 0.729f; /* two updates */
    struct pm_checkpoint *c = NULL;
    struct pm_file_tensor list[64];
    size_t count = 0;
    struct result r;

    (void)state;
    assert_int_equal(pm_checkpoint_open(NULL, in("tf/model.ckpt-3"), "test", &c), PM_OK);
    for (size_t i = 0; i < pm_tensor_file_count(c->tensors); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(c->tensors, i);
        void *data = malloc(t->bytes);

        assert_true(count < PM_COUNT(list));
        assert_int_equal(pm_tensor_file_bytes(c->tensors, t, 0, t->bytes, data), PM_OK);
        list[count] = *t;
        list[count++].data = strcmp(t->name, "beta1_power") == 0 ? (const void *)&power : data;
        if (strcmp(t->name, "beta1_power") == 0)
            free(data);
    }
    assert_int_equal(pm_tf_bundle_write(in("changed.ckpt"), list, count, false), PM_OK);
    for (size_t i = 0; i < count; i++)
        if (list[i].data != &power)
            free((void *)list[i].data);
    pm_checkpoint_close(&c);
    r = go_on("changed", "changed.ckpt", "");
    assert_contains(r.err, "beta1_power is 0.729, the value after 2 updates, but the step is 3");
    assert_null(strstr(r.err, "beta2_power is"));
    check(r, 0);
}

static void refusals(void **state)
{
    (void)state;
    check(go_on("no", "variables.safetensors", ""), 3,
          "16 of 24 variables and optimizer slots are not in", "'LeNet/conv1/weights/Adam'",
          "init.restore to \"variables\"");
    check(go_on("no", "run", "optim.name=momentum"), 3, "'LeNet/conv1/weights/Momentum'",
          "the same optimizer");
    check(go_on("no", "run", "input.size=16"), 3, "LeNet/fc3/weights");
    check(go_on("no", "run", "init.exclude_scopes=LeNet/fc4"), 2, "init.exclude_scopes",
          "restores the whole checkpoint");
    check(go_on("no", "run", "init.ignore_missing=true"), 2, "init.ignore_missing");
    check(go_on("no", "run", "init.averages=on"), 2, "init.averages");
    check(run(NULL, "train %s run.folder=%s init.restore=all", in("lenet.json"), in("no")), 2,
          "init.checkpoint is not set");
    check(run(NULL, "train %s run.folder=%s init.restore=both", in("lenet.json"), in("no")), 2,
          "variables|all");
    check(go_on("no", "nowhere", ""), 3, "nowhere");
    assert_false(pm_is_folder(in("no/checkpoints")));
}

/* A TensorFlow checkpoint with the Inception trainer's names: all 388 variables are found, by
 * training, by evaluation and by init.restore "all". */
static void inception_trainer(void **state)
{
    struct result r, other;

    (void)state;
    check(run(NULL, "train %s run.folder=%s", in("inception.json"), in("v3")), 0);
    check(run(NULL, "checkpoint convert %s %s names=inception_trainer", in("v3"),
              in("old/model.ckpt-2")), 0);
    r = run(NULL, "checkpoint inspect %s", in("old/model.ckpt-2"));
    assert_contains(r.out, "mixed_8x8x2048b/branch3x3dbl/Conv_3/weights/RMSProp_1");
    assert_contains(r.out, "conv0/BatchNorm/moving_mean/ExponentialMovingAverage");
    assert_null(strstr(r.out, "InceptionV3"));
    check(r, 0);

    r = run(NULL, "train %s run.folder=%s init.checkpoint=%s run.steps=1", in("inception.json"),
            in("warm"), in("old"));
    assert_contains(r.err, "the Inception trainer's names are translated");
    assert_contains(r.err, "388 of 388 variables from");
    check(r, 0);

    other = run(NULL, "eval %s run.folder=%s --json", in("inception.json"), in("v3"));
    r = run(NULL, "eval %s eval.checkpoint=%s --json", in("inception.json"), in("old"));
    cJSON *a = json_of(&r), *b = json_of(&other);
    assert_true(cJSON_Compare(cJSON_GetObjectItem(a, "metrics"),
                              cJSON_GetObjectItem(b, "metrics"), true));
    cJSON_Delete(a);
    cJSON_Delete(b);
    check(r, 0);
    check(other, 0);

    check(run(NULL, "train %s run.folder=%s run.steps=3", in("inception.json"), in("v3")), 0);
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s init.restore=all run.steps=3",
              in("inception.json"), in("all"), in("old")), 0);
    same_bytes(in("all/checkpoints/step-000003.safetensors"),
               in("v3/checkpoints/step-000003.safetensors"));

    check(run(NULL, "checkpoint convert %s %s names=slim", in("old/model.ckpt-2"),
              in("slim.safetensors")), 0);
    check(run(NULL, "checkpoint diff %s %s", in("slim.safetensors"),
              in("v3/checkpoints/step-000002.safetensors")), 0);
    check(run(NULL, "checkpoint convert %s %s names=slim", in("slim.safetensors"),
              in("x.safetensors")), 3, "are not the Inception trainer's");
    check(run(NULL, "checkpoint convert %s %s names=inception_trainer", in("run"),
              in("x.safetensors")), 3, "only the variables of inception_v3");
    assert_false(pm_file_exists(in("x.safetensors")));
}

static void put_config(const char *name, const char *format)
{
    char text[2048];
    const char *at = strstr(format, "%s");

    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - format), format, folder, at + 2);
    put_text(in("%s", name), text);
}

static int setup(void **state)
{
    (void)state;
    if (make_world(false) < 0)
        return -1;
    check(run(NULL, "dataset make shapes %s size=28 train=24 validation=0 test=16", in("data")), 0);
    put_config("lenet.json", lenet);
    put_config("inception.json", inception);
    check(run(NULL, "train %s run.folder=%s", in("lenet.json"), in("run")), 0);
    check(run(NULL, "train %s run.folder=%s run.steps=7", in("lenet.json"), in("whole")), 0);
    if (pm_make_folders(in("tf")) < 0 || pm_make_folders(in("old")) < 0)
        return -1;
    check(run(NULL, "checkpoint convert %s %s", in("run"), in("tf/model.ckpt-3")), 0);
    check(run(NULL, "checkpoint convert %s %s keep=variables", in("run"),
              in("variables.safetensors")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(a_finished_run),
        cmocka_unit_test(resumed_runs),
        cmocka_unit_test(powers),
        cmocka_unit_test(other_powers),
        cmocka_unit_test(refusals),
        cmocka_unit_test(inception_trainer),
    };
    return cmocka_run_group_tests(tests, setup, drop_world);
}
