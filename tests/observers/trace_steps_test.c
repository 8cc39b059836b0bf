/* run.trace_steps: the trace holds exactly the chosen steps, also when a run is resumed between
 * them, and training gives the same bits as without it. */
#include "base/command.h"
#include "base/trace_file.h"

static void train(const char *arguments)
{
    if (pumice(arguments) != 0) {
        char *data = read_text("err");

        fail_msg("pumice %s: %s", arguments, data);
    }
}

static void same_weights(const char *a, const char *b)
{
    char path[256], *x, *y;
    size_t m, n;

    snprintf(path, sizeof path, "%s/checkpoints/step-000012.safetensors", a);
    x = read_bytes(path, &m);
    snprintf(path, sizeof path, "%s/checkpoints/step-000012.safetensors", b);
    y = read_bytes(path, &n);
    assert_int_equal(m, n);
    assert_memory_equal(x, y, n);
    pm_free(x);
    pm_free(y);
}

static void steps_in(const char *name, const char *group, int steps)
{
    cJSON *file = trace_read(in_folder(name), NULL);
    int calls = trace_count(file, group, "calls", NULL);

    assert_int_equal(trace_count(file, group, "steps", "train"), steps);
    assert_true(calls > 0 && calls % steps == 0);
    assert_true(trace_count(file, "host", "trainer", "waiting for devices") > 0);
    cJSON_Delete(file);
}

/* Traces steps 5 to 8; step 6 is evaluated and saved. */
static void on_device(const char *device)
{
    char arguments[512];

    assert_int_equal(pm_remove_tree(in_folder("plain")), 0);
    assert_int_equal(pm_remove_tree(in_folder("traced")), 0);
    snprintf(arguments, sizeof arguments, "train net.json run.folder=plain 'devices=%s'", device);
    train(arguments);
    snprintf(arguments, sizeof arguments, "train net.json run.folder=traced 'devices=%s' "
             "run.trace_steps=[5,8] run.save_every_steps=6 eval.every_steps=6 run.keep=0", device);
    train(arguments);
    steps_in("traced/trace-000005.json", "clone 0", 4);
    assert_true(pm_is_folder(in_folder("traced/plugins/profile/step-000005")));
    same_weights("plain", "traced");
}

static void test_cpu(void **state)
{
    cJSON *file;

    (void)state;
    on_device("cpu");
    file = trace_read(in_folder("traced/trace-000005.json"), NULL);
    assert_int_equal(trace_count(file, "clone 0", "steps", "eval"), 1);
    assert_true(trace_count(file, "host", "trainer", "saving") > 0);
    assert_true(trace_count(file, "host", "trainer", "evaluating") > 0);
    assert_true(trace_count(file, "evaluation's loader", NULL, "decode") > 0);
    cJSON_Delete(file);
}

static void test_two_clones(void **state)
{
    (void)state;
    on_device("[\"cpu\", \"cpu\"]");
    steps_in("traced/trace-000005.json", "clone 1", 4);
    cJSON *file = trace_read(in_folder("traced/trace-000005.json"), NULL);

    assert_int_equal(trace_count(file, "host: optimizer", "steps", "update"), 4);
    cJSON_Delete(file);
}

static void test_gpu(void **state)
{
    static const char *const drivers[] = { "llvmpipe", "SwiftShader" };
    int ran = 0;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(drivers); i++) {
        if (!has_device(drivers[i]))
            continue;
        on_device(drivers[i]);
        ran++;
    }
    if (!ran)
        skip();
}

/* A run resumed at step 6, inside the chosen range, traces the remaining steps. */
static void test_resumed(void **state)
{
    (void)state;
    train("train net.json run.folder=resumed run.steps=6 devices=cpu run.trace_steps=[5,8]");
    steps_in("resumed/trace-000005.json", "clone 0", 2);
    train("train net.json run.folder=resumed devices=cpu run.trace_steps=[5,8]");
    steps_in("resumed/trace-000007.json", "clone 0", 2);
    train("train net.json run.folder=one devices=cpu run.trace_steps=12");
    steps_in("one/trace-000012.json", "clone 0", 1);
    same_weights("resumed", "one");
}

static void test_mistakes(void **state)
{
    static const char *const wrong[] = { "[8,5]", "[1,2,3]", "0", "5..8" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(wrong); i++) {
        char arguments[256];

        snprintf(arguments, sizeof arguments, "train net.json run.folder=wrong devices=cpu "
                 "'run.trace_steps=%s'", wrong[i]);
        assert_int_equal(pumice(arguments), 2);
        assert_file_contains("err", "run.trace_steps");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),     cmocka_unit_test(test_two_clones),
        cmocka_unit_test(test_gpu),     cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_mistakes),
    };

    return run_commands("trace_steps", tests, PM_COUNT(tests), true);
}
