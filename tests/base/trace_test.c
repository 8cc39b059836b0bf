/* Traces: the file of a window holds the spans of that window only, whatever their names
 * contain. */
#include "base/trace_file.h"

#include <pumice/trace.h>

#include <pthread.h>

static char *folder, path[256];

static void test_window(void **state)
{
    int steps = pm_trace_lane("gpu \"0\"", "steps"), calls = pm_trace_lane("gpu \"0\"", "calls");
    int host = pm_trace_lane("host", "trainer"), spans;
    double now = pm_seconds(), third = 1.0 / 3e6;
    cJSON *file;

    (void)state;
    assert_int_equal(pm_trace_lane("gpu \"0\"", "steps"), steps);
    assert_true(steps != calls && calls != host);
    assert_false(pm_trace_on());
    pm_trace_span(steps, "nobody looks", NULL, now, now + 1);
    pm_trace_open();
    assert_true(pm_trace_on());
    now = pm_seconds();
    pm_trace_span(steps, "before the window", NULL, now - 5, now - 4);
    pm_trace_span(steps, "step", "a \\ and a \"quote\"\n", now + 1, now + 2);
    for (int i = 0; i < 1000; i++) /* thirds of a microsecond, one after the other */
        pm_trace_span(calls, i % 2 ? "conv" : "pool", "kernel", now + i * third,
                      now + (i + 1) * third);
    pm_trace_span(steps, "step", NULL, now, now + 1); /* recorded after a later span */
    pm_trace_span(-1, "no lane", NULL, now, now + 1);
    assert_int_equal(pm_trace_close(path), 0);
    assert_false(pm_trace_on());
    file = trace_read(path, &spans);
    assert_int_equal(spans, 1002);
    assert_int_equal(trace_count(file, "gpu \"0\"", "calls", "conv"), 500);
    assert_int_equal(trace_count(file, "gpu \"0\"", "steps", "step"), 2);
    assert_int_equal(trace_count(file, "host", NULL, NULL), 0);
    cJSON_Delete(file);
}

/* The next window holds no span of the previous one. */
static void test_again(void **state)
{
    cJSON *file;
    int spans;

    (void)state;
    pm_trace_open();
    assert_int_equal(pm_trace_close(path), 0);
    file = trace_read(path, &spans);
    assert_int_equal(spans, 0);
    cJSON_Delete(file);
    pm_trace_open();
    assert_int_equal(pm_trace_close("/nonexistent/folder/trace.json"), PM_EFAIL);
    assert_false(pm_trace_on());
}

static void *work(void *name)
{
    pm_trace_here("no lane yet", pm_trace_now());
    pm_trace_thread(pm_trace_lane("loader", name));
    for (int i = 0; i < 500; i++) {
        char text[32];
        double begin = pm_trace_now();

        snprintf(text, sizeof text, "picture %d", i);
        pm_trace_here(text, begin);
    }
    return NULL;
}

static void test_threads(void **state)
{
    static char names[4][16] = { "worker 0", "worker 1", "worker 2", "worker 3" };
    pthread_t thread[4];
    cJSON *file;
    int spans;

    (void)state;
    pm_trace_open();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, work, names[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(pm_trace_close(path), 0);
    file = trace_read(path, &spans);
    assert_int_equal(spans, 2000);
    for (int i = 0; i < 4; i++)
        assert_int_equal(trace_count(file, "loader", names[i], NULL), 500);
    cJSON_Delete(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_threads),
    };
    int failed;

    folder = make_folder();
    snprintf(path, sizeof path, "%s/trace.json", folder);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    drop_folder(folder);
    return failed;
}
