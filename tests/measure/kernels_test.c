/* `pumice bench kernels` as a program: the operations of every row by an independent formula,
 * sums over nets against their definitions, the members of a measured row, and CSV. The results
 * of the two kernels that measure the peak are computed again here. */
#include "base/command.h"

#include <pumice/measure.h>

#include "copy_peak.params.h"
#include "fma_peak.params.h"
#include "measure/peak.h"

static const char *text(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);

    if (!cJSON_IsString(v))
        fail_msg("no text '%s'", key);
    return v->valuestring;
}

/* ---- shapes ----------------------------------------------------------------------------- */

/* Each output value is a sum over the window and the channels of its group; both gradients have
 * the same number of products. */
static double flops_of(const cJSON *row)
{
    const cJSON *g = cJSON_GetObjectItem(row, "geometry");
    double products = number(g, "kh") * number(g, "kw") * number(g, "c") / number(g, "groups");

    return 2 * products * number(g, "n") * number(g, "oh") * number(g, "ow") * number(g, "k");
}

/* Multiply-adds of one pass of a net at batch 1, for dense or depthwise kernels. */
static double macs(const cJSON *report, const char *net, const char *pass, const char *kernels)
{
    const cJSON *r;
    double sum = 0;

    cJSON_ArrayForEach(r, cJSON_GetObjectItem(report, "rows"))
        if (strcmp(text(r, "net"), net) == 0 && strcmp(text(r, "pass"), pass) == 0 &&
            strncmp(text(r, "kernel"), kernels, strlen(kernels)) == 0)
            sum += number(r, "uses") * number(r, "flops") / 2;
    return sum;
}

/* The second convolution of a block's last unit halves the size. */
static double resnet_macs(void)
{
    static const int units[] = { 3, 4, 6, 3 };
    double sum = 112 * 112 * 49.0 * 3 * 64;
    int size = 56, in = 64;

    for (int b = 0; b < 4; b++)
        for (int u = 1; u <= units[b]; u++) {
            const int depth = 64 << b, out = b < 3 && u == units[b] ? size / 2 : size;

            if (in != 4 * depth)
                sum += (double)size * size * in * 4 * depth;
            sum += (double)size * size * in * depth + 9.0 * out * out * depth * depth +
                   4.0 * out * out * depth * depth;
            in = 4 * depth;
            size = out;
        }
    return sum + 2048.0 * 1000;
}

static double mobilenet_macs(bool depthwise)
{
    static const int width[] = { 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024 };
    double dense = 112 * 112 * 27.0 * 32 + 1024 * 1001, deep = 0;
    int size = 112, in = 32;

    for (int i = 0; i < 13; i++) {
        if (i == 1 || i == 3 || i == 5 || i == 11)
            size /= 2;
        deep += 9.0 * size * size * in;
        dense += (double)size * size * in * width[i];
        in = width[i];
    }
    return depthwise ? deep : dense;
}

static void shapes(void **state)
{
    cJSON *report = report_of("bench kernels cpu --list --batch 1 --json");
    const cJSON *r;
    int rows = 0;
    (void)state;

    cJSON_ArrayForEach(r, cJSON_GetObjectItem(report, "rows"))
    {
        if (number(r, "flops") != flops_of(r))
            fail_msg("%s %s: %g operations, not %g", text(r, "pass"), text(r, "shape"),
                     number(r, "flops"), flops_of(r));
        assert_null(cJSON_GetObjectItem(r, "ms"));
        rows++;
    }
    assert_true(rows > 300);
    assert_true(macs(report, "resnet_v1_50", "forward", "") == resnet_macs());
    assert_true(macs(report, "resnet_v1_50", "filter", "") == resnet_macs());
    /* The gradient of the pictures is not computed. */
    assert_true(macs(report, "resnet_v1_50", "data", "") ==
                resnet_macs() - 112 * 112 * 49.0 * 3 * 64);
    assert_true(macs(report, "mobilenet_v1", "forward", "conv2d") == mobilenet_macs(false));
    assert_true(macs(report, "mobilenet_v1", "forward", "depthwise") == mobilenet_macs(true));
    assert_true(macs(report, "mobilenet_v1", "data", "depthwise") == mobilenet_macs(true));
    /* Published figures: 569 million, and 5.7 billion. */
    assert_true(fabs(mobilenet_macs(true) + mobilenet_macs(false) - 569e6) < 1e6);
    assert_true(fabs(macs(report, "inception_v3", "forward", "") - 5.72e9) < 0.03e9);
    /* 32 pictures of 28x28 and their two products. */
    assert_true(macs(report, "lenet", "forward", "") ==
                32 * (28 * 28 * 25.0 * 32 + 14 * 14 * 25.0 * 32 * 64 + 3136 * 1024 + 1024 * 10));
    assert_true(macs(report, "gemm", "forward", "") == pow(2, 24) + pow(2, 27) + pow(2, 30));
    cJSON_Delete(report);
}

/* ---- measuring -------------------------------------------------------------------------- */

/* The CSV must have as many rows as the report, with as many fields as the header. */
static void check_csv(const char *name, int rows)
{
    char *data = read_text(name);
    size_t commas = 0;
    int seen = 0;

    for (char *line = strtok(data, "\n"); line; line = strtok(NULL, "\n")) {
        size_t n = 0;

        if (*line == '#')
            continue;
        for (const char *c = line; *c; c++)
            n += *c == ',';
        if (seen++ == 0)
            commas = n;
        assert_int_equal(n, commas);
    }
    assert_int_equal(commas, 14);
    assert_int_equal(seen, rows + 1);
    pm_free(data);
}

static void measured(const char *device)
{
    char command[256];
    const cJSON *r, *ms, *peak;
    cJSON *report;
    int rows = 0;

    need_device(device);
    snprintf(command, sizeof command, "bench kernels %s --filter '8x8x384 ' --batch 1 --seconds 0 "
             "--json --csv kernels.csv", device);
    report = report_of(command);
    peak = cJSON_GetObjectItem(report, "peak");
    assert_true(number(peak, "gflops") > 0 && number(peak, "gigabytes_per_second") > 0);
    assert_true(number(peak, "copy_bytes") >= 1 << 20);
    cJSON_ArrayForEach(r, cJSON_GetObjectItem(report, "rows"))
    {
        rows++;
        ms = cJSON_GetObjectItem(r, "ms");
        assert_true(number(ms, "min") > 0 && number(ms, "min") <= number(ms, "median") &&
                    number(ms, "median") <= number(ms, "max"));
        assert_true(number(r, "runs") >= 2);
        /* x and y of 8x8x384, weights of 1x3 or 3x1. */
        assert_true(number(r, "bytes") == 4.0 * (2 * 64 * 384 + 3 * 384 * 384));
        assert_true(fabs(number(r, "gflops") * number(ms, "min") * 1e6 / number(r, "flops") - 1) <
                    1e-6);
        assert_true(number(r, "share_of_bound") >= number(r, "share_of_peak") - 1e-9);
    }
    assert_int_equal(rows, 6); /* two shapes, three passes */
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "totals")), 3);
    check_csv("kernels.csv", rows);
    cJSON_Delete(report);
    /* In the step, batch norm follows these. */
    snprintf(command, sizeof command, "bench kernels %s --filter 'forward 1x7x7x512' --batch 1 "
             "--seconds 0", device);
    assert_int_equal(pumice(command), 0);
}

static void on_cpu(void **state)
{
    (void)state;
    measured("cpu");
    assert_int_equal(pumice("bench kernels cpu --filter '8x8x384 ' --batch 1 --seconds 0"), 0);
    char *data = read_text("out");
    assert_contains(data, "peak, measured:");
    assert_contains(data, "inception_v3 filter");
    pm_free(data);
    cJSON *devices = report_of("devices cpu --measure --json"), *d = NULL;
    int measured_devices = 0;

    cJSON_ArrayForEach(d, cJSON_GetObjectItem(devices, "devices"))
        if (cJSON_HasObjectItem(d, "measured")) {
            assert_string_equal(text(d, "address"), "cpu");
            assert_true(number(cJSON_GetObjectItem(d, "measured"), "gflops") > 0);
            measured_devices++;
        }
    assert_int_equal(measured_devices, 1);
    cJSON_Delete(devices);
}

static void on_lavapipe(void **state)
{
    (void)state;
    measured("llvmpipe");
}

/* A limit that has passed when the first row would begin: the report and the table have no row. */
static void limit(void **state)
{
    cJSON *report = report_of("bench kernels cpu --filter '8x8x384 ' --batch 1 --limit 1e-9 --json "
                              "--csv limit.csv");

    (void)state;
    assert_int_equal(number(report, "rows_left"), 6);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "rows")), 0);
    check_csv("limit.csv", 0);
    cJSON_Delete(report);
    report = report_of("bench kernels cpu --filter '8x8x384 ' --batch 1 --seconds 0 --limit 600 "
                       "--json");
    assert_int_equal(number(report, "rows_left"), 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "rows")), 6);
    cJSON_Delete(report);
    assert_int_equal(pumice("bench kernels cpu --filter '8x8x384 ' --batch 1 --limit 1e-9"), 0);
    assert_file_contains("out", "6 rows left out, because --limit was reached");
}

/* A measurement that is killed leaves the rows that it had finished, as a table. */
static void killed(void **state)
{
    char *data = NULL;
    double end = pm_seconds() + 60;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        execlp("sh", "sh", "-c", "cd \"$0\" && exec \"$PUMICE_PROGRAM\" bench kernels cpu "
               "--filter lenet --batch 1 --seconds 1 --csv killed.csv >killed.out", folder,
               (char *)NULL);
        _exit(127);
    }
    do {
        pm_free(data);
        usleep(20000);
        data = access(in_folder("killed.csv"), F_OK) == 0 ? read_text("killed.csv") : NULL;
    } while ((!data || !strstr(data, "\nlenet,")) && pm_seconds() < end);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_non_null(data);
    assert_contains(data, "\nlenet,forward,conv2d_fwd,32x28x28x1 5x5/1 -> 28x28x32,1,");
    assert_int_equal(data[strlen(data) - 1], '\n');
    pm_free(data);
}

static void mistakes(void **state)
{
    (void)state;
    assert_int_equal(pumice("bench kernels cpu --filter nothing_like_it --list"), 2);
    assert_file_contains("err", "none of the ");
    assert_int_equal(pumice("bench kernels cpu x.json"), 2);
    assert_int_equal(pumice("bench kernels nosuchdevice --list"), 4);
}

/* ---- the peak's kernels ----------------------------------------------------------------- */

static void run_call(struct pm_device *d, const struct pm_bound_call *call)
{
    struct pm_program *p = NULL;

    assert_int_equal(pm_program_create(d, &(struct pm_program_desc){
        .name = "test", .calls = call, .calls_count = 1, .slots = 1 }, &p), PM_OK);
    assert_int_equal(pm_program_submit(p, 0), PM_OK);
    assert_int_equal(pm_program_wait(p, 0), PM_OK);
    pm_program_destroy(&p);
}

enum { COUNT = 4096 + 16 };

/* x after n times x * a + b is b / (1 - a) + (start - b / (1 - a)) * a^n; here b / (1 - a) is 1. */
static void check_fma(struct pm_device *d, int chains)
{
    const struct fma_peak_params params = { .count = COUNT, .iterations = 64, .chains = chains,
                                            .a = 0.75f, .b = 0.25f };
    float y[COUNT];
    struct pm_buffer *b = NULL;

    assert_int_equal(pm_buffer_create(d, sizeof y, &b), PM_OK);
    run_call(d, &(struct pm_bound_call){ .kernel = &pm_fma_peak, .label = "test",
                                         .count = COUNT, .params = &params,
                                         .buf = { { b, 0, sizeof y } } });
    assert_int_equal(pm_buffer_read(d, b, 0, y, sizeof y), PM_OK);
    pm_buffer_destroy(d, &b);
    for (int i = 0; i < COUNT; i++) {
        double want = 0;

        for (int k = 0; k < chains; k++)
            want += 1 + (i % 16 + k - 1) * pow(0.75, 64);
        if (!(fabs(y[i] - want) < 1e-5 * chains))
            fail_msg("%d chains, value %d: %g, not %g", chains, i, (double)y[i], want);
    }
}

static void check_copy(struct pm_device *d)
{
    const struct copy_peak_params params = { COUNT / 4 };
    float x[COUNT], y[COUNT];
    struct pm_buffer *a = NULL, *b = NULL;

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    assert_int_equal(pm_buffer_create(d, sizeof x, &a), PM_OK);
    assert_int_equal(pm_buffer_create(d, sizeof y, &b), PM_OK);
    assert_int_equal(pm_buffer_write(d, a, 0, x, sizeof x), PM_OK);
    run_call(d, &(struct pm_bound_call){ .kernel = &pm_copy_peak, .label = "test",
                                         .count = COUNT / 4, .params = &params,
                                         .buf = { { a, 0, sizeof x }, { b, 0, sizeof y } } });
    assert_int_equal(pm_buffer_read(d, b, 0, y, sizeof y), PM_OK);
    assert_memory_equal(x, y, sizeof x);
    pm_buffer_destroy(d, &a);
    pm_buffer_destroy(d, &b);
}

static void peak_kernels(void **state)
{
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int done = 0;
    (void)state;

    assert_int_equal(pm_device_list(&list, &count), PM_OK);
    for (size_t i = 0; i < count; i++) {
        struct pm_device *d = NULL;

        if (!list[i].usable)
            continue;
        assert_int_equal(pm_device_open(&list[i], NULL, &d), PM_OK);
        for (int chains = 4; chains <= 16; chains += 4)
            check_fma(d, chains);
        check_copy(d);
        pm_device_close(&d);
        done++;
    }
    pm_free(list);
    assert_true(done > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),   cmocka_unit_test(on_cpu),       cmocka_unit_test(on_lavapipe),
        cmocka_unit_test(limit),
        cmocka_unit_test(killed),
        cmocka_unit_test(limit),    cmocka_unit_test(killed),
        cmocka_unit_test(mistakes), cmocka_unit_test(peak_kernels),
    };

    return run_commands("bench kernels", tests, PM_COUNT(tests), false);
}
