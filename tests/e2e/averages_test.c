/* Moving averages of the variables in whole runs, compared with averages in double precision of
 * the values after each step, with and without the ramp, on each device and over two clones.
 * Results are the same bits after a stop and after the loss of a device. Also frozen variables, and
 * the values that eval, predict and training evaluate. */
#include "program.h"

#include <pumice/checkpoint.h>
#include <pumice/data.h>

static const char suffix[] = "/ExponentialMovingAverage";
static const char averaged[] = "optim.moving_average_decay=0.9 run.save_every_steps=1 run.keep=0";

/* ---- checkpoints -------------------------------------------------------------------------- */

static struct pm_checkpoint *open_step(const char *run, int step)
{
    struct pm_checkpoint *c;

    if (pm_checkpoint_open(NULL, in("%s/checkpoints/step-%06d.safetensors", run, step), "test",
                           &c) < 0)
        fail_msg("%s", pm_error_text());
    return c;
}

static const struct pm_file_tensor *find(const struct pm_checkpoint *c, const char *name)
{
    const struct pm_file_tensor *t = pm_tensor_file_find(c->tensors, name);

    if (!t)
        fail_msg("%s: no %s", c->path, name);
    return t;
}

static double *values(const struct pm_checkpoint *c, const char *name, size_t *count)
{
    const struct pm_file_tensor *t = find(c, name);
    double *v = pm_malloc((size_t)t->count * sizeof *v);

    if (pm_tensor_file_doubles(c->tensors, t, 0, (size_t)t->count, v) < 0)
        fail_msg("%s", pm_error_text());
    *count = (size_t)t->count;
    return v;
}

static bool ends(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

/* ---- compared with double precision ------------------------------------------------------- */

/* average: its value before the run; becomes the value after steps 1 .. last. An update rounds
 * the difference, its product and the sum: 3 roundings of numbers no larger than the largest
 * value. */
static void check_variable(const char *run, const char *variable, double *average, int last,
                           bool ramp)
{
    char name[256];
    double largest = 0;
    size_t count, n;

    snprintf(name, sizeof name, "%s%s", variable, suffix);
    for (int step = 1; step <= last; step++) {
        struct pm_checkpoint *c = open_step(run, step);
        double d = ramp && (1.0 + step) / (10.0 + step) < 0.9 ? (1.0 + step) / (10.0 + step) : 0.9;
        double *w = values(c, variable, &count), *is = values(c, name, &n);

        assert_int_equal(count, n);
        for (size_t i = 0; i < count; i++) {
            largest = fmax(largest, fmax(fabs(w[i]), fabs(average[i])));
            average[i] = d * average[i] + (1 - d) * w[i];
        }
        for (size_t i = 0; i < count; i++)
            if (!(fabs(is[i] - average[i]) <= step * 3 * 0x1p-24 * largest))
                fail_msg("%s, step %d, %s[%zu]: %.9g, not %.9g", run, step, variable, i, is[i],
                         average[i]);
        pm_free(w);
        pm_free(is);
        pm_checkpoint_close(&c);
    }
}

/* Training begins with the values of FOLDER/start, and so do the averages. */
static void check_run(const char *device, const char *name, bool ramp)
{
    enum { LAST = 6 };
    struct pm_checkpoint *first;
    int variables = 0, moved = 0;

    check(run(NULL, "train %s run.folder=%s run.steps=%d '%s' %s optim.moving_average_ramp=%s "
              "init.checkpoint=%s", in("net.json"), in("%s", name), LAST, device, averaged,
              ramp ? "true" : "false", in("start")), 0);
    first = open_step("start", 3);
    for (size_t i = 0; i < pm_tensor_file_count(first->tensors); i++) {
        const char *variable = pm_tensor_file_get(first->tensors, i)->name;
        double *average, before;
        size_t count;

        if (ends(variable, "/Momentum"))
            continue;
        average = values(first, variable, &count);
        before = average[0];
        check_variable(name, variable, average, LAST, ramp);
        variables++;
        moved += average[0] != before;
        pm_free(average);
    }
    assert_int_equal(variables, 8); /* weights and biases of two layers, and four of the batch
                                     * norm */
    assert_true(moved >= 7);        /* all except perhaps a bias whose gradient is zero */
    pm_checkpoint_close(&first);
}

static void test_cpu(void **state)
{
    (void)state;
    check_run("devices=[\"cpu\"]", "cpu", true);
    check_run("devices=[\"cpu\"]", "cpu_flat", false);
}

static void need_device(const char *name)
{
    struct result r = run(NULL, "devices --json");
    bool has = strstr(r.out, name) != NULL;

    drop(&r);
    if (!has) {
        print_message("skipped: no device %s\n", name);
        skip();
    }
}

static void test_lavapipe(void **state)
{
    (void)state;
    need_device("llvmpipe");
    check_run("devices=[\"llvmpipe\"]", "llvmpipe", true);
}

static void test_swiftshader(void **state)
{
    (void)state;
    need_device("SwiftShader");
    check_run("devices=[\"SwiftShader\"]", "swiftshader", true);
}

/* The averages of trained variables are kept on the host, those of the batch norm on the first
 * clone. */
static void test_clones(void **state)
{
    (void)state;
    check_run("devices=[\"cpu\",\"cpu\"]", "two", true);
}

static void test_unlike_clones(void **state)
{
    (void)state;
    need_device("llvmpipe");
    check_run("devices=[\"llvmpipe\",\"cpu\"]", "unlike", true);
}

/* ---- frozen variables --------------------------------------------------------------------- */

/* Compares the tensor's bits in two checkpoints. */
static bool same_tensor(const struct pm_checkpoint *a, const struct pm_checkpoint *b,
                        const char *name)
{
    const size_t count = (size_t)find(a, name)->count;
    float *x = pm_malloc(count * sizeof *x), *y = pm_malloc(count * sizeof *y);

    assert_int_equal(find(b, name)->count, count);
    if (pm_tensor_file_floats(a->tensors, find(a, name), 0, count, x) < 0 ||
        pm_tensor_file_floats(b->tensors, find(b, name), 0, count, y) < 0)
        fail_msg("%s", pm_error_text());
    const bool same = memcmp(x, y, count * sizeof *x) == 0;
    pm_free(x);
    pm_free(y);
    return same;
}

static double squares(const struct pm_checkpoint *c, const char *name)
{
    size_t count;
    double *v = values(c, name, &count), sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += v[i] * v[i];
    pm_free(v);
    return sum;
}

/* A run goes on with frozen variables: their values and slots keep the bits they had, their
 * averages still approach the values, and their weight decay stays in the loss, which float32 sums
 * of some thousand squares give within 1e-5. */
static void test_frozen(void **state)
{
    const char *more = "optim.weight_decay=0.01";
    struct pm_checkpoint *first = open_step("start", 3), *before, *after;
    double *average, l2;
    size_t count;

    (void)state;
    check(run(NULL, "train %s run.folder=%s run.steps=3 init.checkpoint=%s %s %s", in("net.json"),
              in("frozen"), in("start"), averaged, more), 0);
    check(run(NULL, "train %s run.folder=%s run.steps=6 %s %s optim.freeze='[\"conv1\"]'",
              in("net.json"), in("frozen"), averaged, more), 0);
    before = open_step("frozen", 3), after = open_step("frozen", 6);
    assert_true(same_tensor(before, after, "conv1/weights"));
    assert_true(same_tensor(before, after, "conv1/weights/Momentum"));
    assert_false(same_tensor(before, after, "logits/weights"));
    assert_false(same_tensor(before, after, "logits/weights/Momentum"));
    average = values(first, "conv1/weights", &count);
    check_variable("frozen", "conv1/weights", average, 6, true);
    pm_free(average);
    pm_checkpoint_close(&after);
    after = open_step("frozen", 5); /* the values that step 6 begins with */
    l2 = 0.005 * (squares(after, "conv1/weights") + squares(after, "logits/weights"));
    assert_true(fabs(logged("frozen", 6, "l2") - l2) <= 1e-5 * l2);
    pm_checkpoint_close(&first);
    pm_checkpoint_close(&before);
    pm_checkpoint_close(&after);
}

/* ---- the same bits ------------------------------------------------------------------------ */

static void same_end(const char *a, const char *b)
{
    char first[1024];

    snprintf(first, sizeof first, "%s", in("%s/checkpoints/step-000006.safetensors", a));
    same_bytes(first, in("%s/checkpoints/step-000006.safetensors", b));
}

static void test_resume(void **state)
{
    const char *more = "optim.moving_average_decay=0.9 run.save_every_steps=2";

    (void)state;
    check(run(NULL, "train %s run.folder=%s run.steps=6 %s", in("net.json"), in("whole"), more), 0);
    check(run(NULL, "train %s run.folder=%s run.steps=4 %s", in("net.json"), in("halves"), more),
          0);
    check(run(NULL, "train %s run.folder=%s run.steps=6 %s", in("net.json"), in("halves"), more), 0,
          "resuming");
    same_end("whole", "halves");
    check(run(&(struct how){ .environment = "PM_LOSE=0:4" },
              "train %s run.folder=%s run.steps=6 %s run.save_every_steps=0", in("net.json"),
              in("lost"), more), 0, "lost");
    same_end("whole", "lost");
}

/* ---- evaluation with averages ------------------------------------------------------------- */

/* Writes TO: a run's last checkpoint without its averages, or with the averages as values. */
static void write_without(const char *from, const char *to, bool replace)
{
    struct pm_checkpoint *c = open_step(from, 6);
    size_t all = pm_tensor_file_count(c->tensors), count = 0;
    struct pm_file_tensor *list = pm_calloc(all, sizeof *list);

    for (size_t i = 0; i < all; i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(c->tensors, i), *source = t;
        char name[256];
        float *data;

        if (ends(t->name, suffix) || ends(t->name, "/Momentum"))
            continue;
        snprintf(name, sizeof name, "%s%s", t->name, suffix);
        if (replace)
            source = find(c, name);
        data = pm_malloc((size_t)t->count * sizeof *data);
        if (pm_tensor_file_floats(c->tensors, source, 0, (size_t)t->count, data) < 0)
            fail_msg("%s", pm_error_text());
        list[count] = *t;
        list[count++].data = data;
    }
    if (pm_safetensors_write(to, list, count, NULL, NULL) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < count; i++)
        pm_free((float *)list[i].data);
    pm_free(list);
    pm_checkpoint_close(&c);
}

/* Metrics as text, of an evaluation that must report whether it used averages, or (-1) of
 * training's own evaluation. */
static char *metrics_of(struct result r, int averages)
{
    cJSON *json = json_of(&r);
    char *text = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, "metrics"));

    assert_non_null(text);
    assert_int_equal(r.code, 0);
    if (averages >= 0)
        assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(json, "averages")), averages);
    cJSON_Delete(json);
    drop(&r);
    return text;
}

/* Frees b. */
static void assert_same(const char *a, char *b)
{
    if (strcmp(a, b) != 0)
        fail_msg("%s and %s should be equal", a, b);
    free(b);
}

static struct result eval(const char *checkpoint, const char *how)
{
    return run(NULL, "eval %s run.folder=%s eval.checkpoint=%s --json %s", in("net.json"),
               in("trained"), checkpoint, how);
}

static void train_and_evaluate(void)
{
    char *of_run = metrics_of(
        run(NULL, "train %s run.folder=%s run.steps=6 schedule.base_lr=0.1 %s eval.every_steps=3 "
            "--json", in("net.json"), in("trained"), "optim.moving_average_decay=0.9"), -1);
    char *averages = metrics_of(eval("latest", ""), 1);

    assert_same(averages, of_run);
    free(averages);
}

static void test_eval(void **state)
{
    char *averages, *raw;

    (void)state;
    train_and_evaluate();
    write_without("trained", in("replaced.safetensors"), true);
    write_without("trained", in("raw.safetensors"), false);
    averages = metrics_of(eval("latest", "eval.averages=on"), 1);
    raw = metrics_of(eval("latest", "eval.averages=off"), 0);
    assert_same(averages, metrics_of(eval("latest", ""), 1));
    assert_same(averages, metrics_of(eval(in("replaced.safetensors"), ""), 0));
    assert_same(raw, metrics_of(eval(in("raw.safetensors"), ""), 0));
    assert_true(strcmp(averages, raw) != 0);
    check(eval(in("raw.safetensors"), "eval.averages=on"), 3, "eval.averages is on",
          "raw.safetensors has no moving averages");
    free(averages);
    free(raw);
}

/* Evaluation during training over two devices; it uses no averages when they are off. */
static void test_eval_of_clones(void **state)
{
    const char *common = "run.steps=6 schedule.base_lr=0.1 optim.moving_average_decay=0.9 "
                         "eval.every_steps=3 run.keep_best=accuracy "
                         "'devices=[\"cpu\",\"cpu\"]' --json";
    char *on, *off;

    (void)state;
    on = metrics_of(run(NULL, "train %s run.folder=%s %s", in("net.json"), in("c_on"), common), -1);
    off = metrics_of(run(NULL, "train %s run.folder=%s %s eval.averages=off", in("net.json"),
                         in("c_off"), common), -1);
    assert_true(strcmp(on, off) != 0);
    same_end("c_on", "c_off");
    assert_same(on, metrics_of(run(NULL, "eval %s run.folder=%s --json", in("net.json"),
                                   in("c_on")), 1));
    assert_same(off, metrics_of(run(NULL, "eval %s run.folder=%s eval.averages=off --json",
                                    in("net.json"), in("c_on")), 0));
    free(on);
    free(off);
}

static char *prediction(const char *checkpoint, const char *how)
{
    struct result r = run(NULL, "predict %s %s model.num_classes=4 eval.checkpoint=%s --json %s",
                          in("net.json"), in("p.png"), checkpoint, how);
    cJSON *json = json_of(&r);
    char *text = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, "images"));

    assert_int_equal(r.code, 0);
    cJSON_Delete(json);
    drop(&r);
    return text;
}

static void test_predict(void **state)
{
    struct pm_image8 im = { .width = 16, .height = 16, .channels = 3 };
    char latest[1024], *averages, *raw;
    uint8_t *png = NULL;
    size_t size;

    (void)state;
    im.pixels = pm_calloc(3, 256);
    for (int i = 0; i < 768; i++)
        im.pixels[i] = (uint8_t)(i * 37);
    if (pm_image_encode_png(&im, &png, &size) < 0 || pm_file_write(in("p.png"), png, size) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(png);
    pm_image_free(&im);
    snprintf(latest, sizeof latest, "%s", in("trained"));
    averages = prediction(latest, "");
    raw = prediction(latest, "eval.averages=off");
    assert_true(strcmp(averages, raw) != 0);
    assert_same(averages, prediction(in("replaced.safetensors"), ""));
    assert_same(raw, prediction(in("raw.safetensors"), ""));
    free(averages);
    free(raw);
}

/* ---- missing averages --------------------------------------------------------------------- */

static void test_on_and_off(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s eval.every_steps=1 eval.averages=on", in("net.json"),
              in("none")), 2, "eval.averages is on", "optim.moving_average_decay");
    check(run(NULL, "train %s run.folder=%s run.steps=2", in("net.json"), in("late")), 0);
    check(run(NULL, "train %s run.folder=%s run.steps=4 optim.moving_average_decay=0.9",
              in("net.json"), in("late")), 0, "they start from its variables");
    check(run(NULL, "train %s run.folder=%s run.steps=6", in("net.json"), in("late")), 0,
          "which this run does not continue");
    check(run(NULL, "eval %s run.folder=%s eval.averages=on", in("net.json"), in("late")), 3,
          "has no moving averages");
}

static void test_shown(void **state)
{
    struct result r = run(NULL, "checkpoint inspect %s --json", in("trained"));
    cJSON *json = json_of(&r);

    (void)state;
    assert_int_equal(number_of(json, "averages"), 8);
    cJSON_Delete(json);
    drop(&r);
    check(run(NULL, "checkpoint inspect %s", in("trained")), 0);
    r = run(NULL, "config show %s --plan optim.moving_average_decay=0.9", in("net.json"));
    assert_int_equal(r.code, 0);
    assert_contains(r.out, "averages");
    drop(&r);
}

static int setup(void **state)
{
    (void)state;
    if (make_world(true) < 0)
        return -1;
    check(run(NULL, "train %s run.folder=%s run.seed=7", in("net.json"), in("start")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),         cmocka_unit_test(test_lavapipe),
        cmocka_unit_test(test_swiftshader), cmocka_unit_test(test_clones),
        cmocka_unit_test(test_unlike_clones), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_eval),        cmocka_unit_test(test_eval_of_clones),
        cmocka_unit_test(test_predict),     cmocka_unit_test(test_on_and_off),
        cmocka_unit_test(test_shown),
    };

    return cmocka_run_group_tests(tests, setup, drop_world);
}
