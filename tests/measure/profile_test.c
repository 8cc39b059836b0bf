/* `pumice profile CONFIG` as a program: every call of the plan with consistent times, sums over
 * them, a trace with every lane, CSV and text, on the CPU, on the software drivers and on two
 * clones. The run folder must stay unchanged. Only relations between times are checked. */
#include "base/command.h"
#include "base/trace_file.h"

enum { STEPS = 3 };

static double total(const cJSON *list, const char *key)
{
    const cJSON *o;
    double sum = 0;

    cJSON_ArrayForEach(o, list) sum += trace_number(o, key);
    return sum;
}

/* The sums hold every call once. The medians of the calls and the rest add up to the step. */
static void check_device(const cJSON *d)
{
    static const char *const keys[] = { "kernels", "layers", "phases" };
    const cJSON *calls = cJSON_GetObjectItem(d, "calls"), *o;
    double ms = 0, share = 0;

    assert_true(cJSON_GetArraySize(calls) > 0);
    cJSON_ArrayForEach(o, calls)
    {
        const cJSON *times = cJSON_GetObjectItem(o, "ms");

        assert_true(trace_number(times, "min") >= 0);
        assert_true(trace_number(times, "min") <= trace_number(times, "median"));
        assert_true(trace_number(times, "median") <= trace_number(times, "max"));
        assert_true(strlen(trace_text(o, "kernel")) > 0 && strlen(trace_text(o, "variant")) > 0);
        assert_true(trace_number(o, "gflops") >= 0 && trace_number(o, "gbytes") >= 0);
        ms += trace_number(times, "median");
        share += trace_number(o, "share");
    }
    for (size_t k = 0; k < PM_COUNT(keys); k++) {
        const cJSON *sums = cJSON_GetObjectItem(d, keys[k]);

        assert_int_equal((int)total(sums, "calls"), cJSON_GetArraySize(calls));
        assert_float_equal(total(sums, "ms"), ms, 1e-6 * ms + 1e-9);
        assert_float_equal(total(sums, "share"), share, 1e-6);
        for (o = sums->child; o && o->next; o = o->next)
            assert_true(trace_number(o, "ms") >= trace_number(o->next, "ms"));
    }
    assert_true(trace_number(d, "rest_ms") >= 0);
    assert_true(trace_number(d, "bytes_moved") > 0);
    if (strncmp(trace_text(d, "address"), "vulkan", 6) == 0) {
        assert_true(trace_number(d, "dispatches") >= cJSON_GetArraySize(calls));
        /* An untimed step: a timed one has a barrier before each dispatch. */
        assert_true(trace_number(d, "barriers") < trace_number(d, "dispatches") - 1);
        assert_true(trace_number(d, "segments") >= 1);
    }
}

static int devices_of(cJSON *report)
{
    const cJSON *list = cJSON_GetObjectItem(report, "devices"), *d;

    cJSON_ArrayForEach(d, list) check_device(d);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(report, "finite")));
    assert_false(pm_is_folder(in_folder("run")));
    return cJSON_GetArraySize(list);
}

static void check_trace(const cJSON *report, const char *group, int device)
{
    const cJSON *d = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "devices"), device);
    cJSON *file = trace_read(in_folder("t.json"), NULL);

    assert_int_equal(trace_count(file, group, "steps", "train"), STEPS);
    assert_int_equal(trace_count(file, group, "calls", NULL),
                     STEPS * cJSON_GetArraySize(cJSON_GetObjectItem(d, "calls")));
    assert_true(trace_count(file, group, "copies", "copy in") >= STEPS);
    assert_true(trace_count(file, "host", "trainer", "waiting for devices") >= STEPS);
    cJSON_Delete(file);
}

static void one_device(const char *name)
{
    char arguments[256];
    cJSON *report;

    snprintf(arguments, sizeof arguments, "profile net.json --synthetic --steps %d --trace t.json "
             "--json devices=%s", STEPS, name);
    report = report_of(arguments);
    assert_int_equal(devices_of(report), 1);
    check_trace(report, "clone 0", 0);
    cJSON_Delete(report);
}

static void test_cpu(void **state)
{
    (void)state;
    one_device("cpu");
}

static void test_llvmpipe(void **state)
{
    (void)state;
    need_device("llvmpipe");
    one_device("llvmpipe");
}

static void test_swiftshader(void **state)
{
    (void)state;
    need_device("SwiftShader");
    one_device("SwiftShader");
}

/* Two clones with data: loader threads, sums of gradients, the optimizer on the host. */
static void test_two_clones(void **state)
{
    cJSON *report, *file;

    (void)state;
    report = report_of("profile net.json --steps 3 --trace t.json --json "
                       "'devices=[\"cpu\", \"cpu\"]'");
    assert_int_equal(devices_of(report), 3);
    check_trace(report, "clone 0", 0);
    check_trace(report, "clone 1", 1);
    file = trace_read(in_folder("t.json"), NULL);
    assert_true(trace_count(file, "host", "gradient average", NULL) >= 2 * STEPS);
    assert_true(trace_count(file, "host: optimizer", "calls", NULL) > 0);
    assert_true(trace_count(file, "host", "trainer", "update and values") >= STEPS);
    cJSON_Delete(file);
    cJSON_Delete(report);
}

/* The trace shows the reading, decoding and preprocessing of every worker. */
static void test_loader_lanes(void **state)
{
    cJSON *report, *file;

    (void)state;
    report =
        report_of("profile net.json --steps 20 --warmup 0 --trace t.json --json data.threads=1 "
                  "data.ring=2 devices=cpu");
    file = trace_read(in_folder("t.json"), NULL);
    assert_true(trace_count(file, "loader", "worker 0", "read") >= 10 * 6);
    assert_true(trace_count(file, "loader", "worker 0", "decode") >= 10 * 6);
    assert_true(trace_count(file, "loader", "worker 0", "preprocess") >= 10 * 6);
    cJSON_Delete(file);
    cJSON_Delete(report);
}

/* No line is wider than the terminal, down to 60 columns. With -v there is a line for every
 * call. */
static void test_text(void **state)
{
    static const int widths[] = { 60, 76, 100, 140 };
    char *data, command[512];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(widths); i++) {
        snprintf(command, sizeof command,
                 "cd %s && COLUMNS=%d \"$PUMICE_PROGRAM\" profile net.json "
                 "--synthetic --steps 1 -v devices=cpu --csv f.csv 2> err | sed 1,6d > out",
                 folder, widths[i]);
        assert_int_equal(system(command), 0);
        data = read_text("out");
        for (char *line = strtok(data, "\n"); line; line = strtok(NULL, "\n"))
            if (strlen(line) > (size_t)widths[i])
                fail_msg("%zu columns: %s", strlen(line), line);
        pm_free(data);
    }
    data = read_text("out");
    assert_contains(data, "conv2d_bwd_filter");
    assert_contains(data, "optimizer_momentum");
    pm_free(data);
    data = read_text("f.csv");
    assert_contains(data, "device,call,phase,layer,kernel,variant,ms");
    assert_contains(data, "cpu,0,forward,");
    pm_free(data);
}

static void test_mistakes(void **state)
{
    (void)state;
    assert_int_equal(pumice("profile net.json --steps 0"), 2);
    assert_int_equal(pumice("profile net.json --synthetic --steps 1 --trace nowhere/t.json"), 1);
    assert_file_contains("err", "nowhere/t.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),         cmocka_unit_test(test_llvmpipe),
        cmocka_unit_test(test_swiftshader), cmocka_unit_test(test_two_clones),
        cmocka_unit_test(test_loader_lanes), cmocka_unit_test(test_text),
        cmocka_unit_test(test_mistakes),
    };

    return run_commands("profile", tests, PM_COUNT(tests), true);
}
