/* `pumice bench CONFIG` as a program: the members of its report and its CSV, on the CPU, on the
 * software drivers and on both together. The run folder must stay unchanged. Times are only
 * checked to exist. */
#include "base/command.h"

/* min <= median <= max, and above 0 where a time must have been measured. */
static void check_spread(const cJSON *o, const char *key, bool positive)
{
    const cJSON *s = cJSON_GetObjectItem(o, key);

    if (!s)
        fail_msg("no member '%s'", key);
    assert_true(number(s, "min") >= 0 && (!positive || number(s, "min") > 0));
    assert_true(number(s, "min") <= number(s, "median"));
    assert_true(number(s, "median") <= number(s, "max"));
}

static int count_phases(const cJSON *report, const char *name)
{
    const cJSON *p;
    int n = 0;

    cJSON_ArrayForEach(p, cJSON_GetObjectItem(report, "phases"))
        n += strcmp(cJSON_GetObjectItem(p, "name")->valuestring, name) == 0;
    return n;
}

/* A GPU has dispatches, barriers and submissions; every device moves bytes. */
static void check_counts(const cJSON *d)
{
    const bool shaders = strcmp(cJSON_GetObjectItem(d, "address")->valuestring, "cpu") != 0;

    assert_int_equal(cJSON_HasObjectItem(d, "dispatches"), shaders);
    assert_int_equal(cJSON_HasObjectItem(d, "barriers"), shaders);
    assert_int_equal(cJSON_HasObjectItem(d, "segments"), shaders);
    if (shaders) {
        assert_true(number(d, "dispatches") > number(d, "barriers"));
        assert_true(number(d, "barriers") > 0 && number(d, "segments") >= 1);
    }
    /* At least each variable is read, its gradient written, and both are updated. */
    assert_true(number(d, "bytes_moved") > 4 * (1024 + 256 + 18432 + 256));
}

static void check_report(const cJSON *report, int clones)
{
    const cJSON *d, *p;
    double examples = 0;

    assert_true(number(report, "steps") == 4 && number(report, "batch") == 6);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(report, "finite")));
    check_spread(report, "ms_per_step", true);
    check_spread(report, "images_per_second", true);
    check_spread(report, "timed_ms_per_step", true);
    assert_true(number(report, "host_peak_bytes") > 1e6);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "devices")), clones);
    cJSON_ArrayForEach(d, cJSON_GetObjectItem(report, "devices"))
    {
        examples += number(d, "examples");
        assert_true(number(d, "memory_bytes") > 0);
        check_counts(d);
        /* Variables: conv 3x3x3x8 + 8 and logits 12x12x8x4 + 4, each at a multiple of 256 bytes. */
        assert_true(number(cJSON_GetObjectItem(d, "memory"), "variables") ==
                    1024 + 256 + 18432 + 256);
    }
    assert_true(examples == 6);
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(report, "phases"))
        check_spread(p, "ms", strcmp(cJSON_GetObjectItem(p, "name")->valuestring, "forward") == 0);
    assert_int_equal(count_phases(report, "forward"), clones);
    assert_int_equal(count_phases(report, "backward"), clones);
    assert_int_equal(count_phases(report, "data"), 1);
    assert_int_equal(count_phases(report, "average"), clones > 1);
}

#define NUMBERS ",%lf,%lf,%lf%c"
/* Every line is a comment, the header, or six fields; the last three are numbers. */
static void check_csv(const char *name)
{
    char *text = read_text(name);
    int rows = 0, comments = 0;

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        double v[3];
        char end;

        if (*line == '#') {
            comments++;
            continue;
        }
        if (rows++ == 0)
            assert_string_equal(line, "name,where,unit,min,median,max");
        else if (sscanf(line, "%*[^,],%*[^,],%*[^,]" NUMBERS, &v[0], &v[1], &v[2], &end) != 3 &&
                 sscanf(line, "%*[^,],,%*[^,]" NUMBERS, &v[0], &v[1], &v[2], &end) != 3)
            fail_msg("%s: '%s' is no row", name, line);
    }
    assert_true(comments >= 3 && rows > 8);
    pm_free(text);
}

/* Measures the config's step on these devices. Skipped when a device is missing. */
static void bench(const char *devices, int clones, const char *needed)
{
    char command[512];
    cJSON *report;

    if (needed)
        need_device(needed);
    snprintf(command, sizeof command, "bench net.json --synthetic --steps 4 --warmup 1 --json "
             "--csv step.csv 'devices=%s'", devices);
    report = report_of(command);
    check_report(report, clones);
    check_csv("step.csv");
    cJSON_Delete(report);
}

static void on_cpu(void **state)
{
    (void)state;
    bench("[\"cpu\"]", 1, NULL);
    assert_false(pm_is_folder(in_folder("run")));
    assert_int_equal(pumice("bench net.json --synthetic --steps 3"), 0);
    char *text = read_text("out");
    assert_contains(text, "ms a step");
    assert_contains(text, "forward");
    pm_free(text);
}

static void on_lavapipe(void **state)
{
    (void)state;
    bench("[\"llvmpipe\"]", 1, "llvmpipe");
}

static void on_swiftshader(void **state)
{
    (void)state;
    bench("[\"SwiftShader\"]", 1, "SwiftShader");
}

static void together(void **state)
{
    (void)state;
    bench("[\"llvmpipe\", \"cpu\"]", 2, "llvmpipe");
}

static void with_data(void **state)
{
    (void)state;
    cJSON *report = report_of("bench net.json --steps 4 --json devices=cpu");

    assert_false(cJSON_IsTrue(cJSON_GetObjectItem(report, "synthetic")));
    check_spread(report, "ms_per_step", true);
    cJSON_Delete(report);
}

/* The batch is eval.batch_size, and the run folder stays unchanged. */
static void prediction(const char *device, const char *needed)
{
    char command[256];
    cJSON *report;

    if (needed)
        need_device(needed);
    snprintf(command, sizeof command, "bench net.json --predict --steps 4 --warmup 1 --json "
             "--csv predict.csv eval.batch_size=5 'devices=%s'", device);
    report = report_of(command);
    assert_true(number(report, "steps") == 4 && number(report, "batch") == 5);
    check_spread(report, "ms_per_step", true);
    check_spread(report, "images_per_second", true);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "devices")), 1);
    assert_null(cJSON_GetObjectItem(report, "phases"));
    cJSON_Delete(report);
    char *text = read_text("predict.csv");
    assert_contains(text, "images_per_second,,images/s,");
    assert_false(strstr(text, "timed step"));
    pm_free(text);
    assert_false(pm_is_folder(in_folder("run")));
}

static void predicts_on_cpu(void **state)
{
    (void)state;
    prediction("cpu", NULL);
    assert_int_equal(pumice("bench net.json --predict --steps 3"), 0);
    assert_file_contains("out", "images a second");
}

static void predicts_on_lavapipe(void **state)
{
    (void)state;
    prediction("llvmpipe", "llvmpipe");
}

static void mistakes(void **state)
{
    (void)state;
    assert_int_equal(pumice("bench net.json --steps none --synthetic"), 2);
    assert_file_contains("err", "--steps: 'none' is not a number of 1 to 1e+06");
    assert_int_equal(pumice("bench --synthetic"), 2);
    assert_int_equal(pumice("bench net.json --steps 3 data.folder=null"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_cpu),   cmocka_unit_test(on_lavapipe), cmocka_unit_test(on_swiftshader),
        cmocka_unit_test(together), cmocka_unit_test(with_data),   cmocka_unit_test(mistakes),
        cmocka_unit_test(predicts_on_cpu), cmocka_unit_test(predicts_on_lavapipe),
    };

    return run_commands("bench", tests, PM_COUNT(tests), true);
}
