/* Reports: metrics.jsonl holds each step once; the progress line fits the width of the terminal
 * and keeps the most important parts. */
#include <math.h>
#include <pumice/report.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char run[] = "/tmp/pumice-report-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(run) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return pm_remove_tree(run);
}

static void add(struct pm_metrics *m, const char *kind, uint64_t step, double loss)
{
    struct pm_metric list[] = { { "loss", loss }, { "lr", 0.1 } };

    assert_int_equal(pm_metrics_add(m, kind, step, list, 2), 0);
}

static void expect(const char *text)
{
    char path[128], *got;

    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    assert_int_equal(pm_file_read(path, &got, NULL), 0);
    assert_string_equal(got, text);
    pm_free(got);
}

static void append(const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    assert_non_null(f = fopen(path, "a"));
    fputs(text, f);
    fclose(f);
}

static void each_step_once(void **state)
{
    struct pm_metrics *m = NULL;

    (void)state;
    assert_int_equal(pm_metrics_open(run, 0, &m), 0);
    add(m, "train", 10, 0.5), add(m, "eval", 10, 1.0 / 3), add(m, "train", 20, NAN);
    add(m, "train", 30, 1e-9);
    expect("{\"kind\": \"train\", \"step\": 10, \"loss\": 0.5, \"lr\": 0.1}\n"
           "{\"kind\": \"eval\", \"step\": 10, \"loss\": 0.3333333333333333, \"lr\": 0.1}\n"
           "{\"kind\": \"train\", \"step\": 20, \"loss\": null, \"lr\": 0.1}\n"
           "{\"kind\": \"train\", \"step\": 30, \"loss\": 1e-09, \"lr\": 0.1}\n");
    pm_metrics_close(&m);
    append("{\"kind\": \"train\", \"step\": 5, \"lo"); /* the process was killed here */

    assert_int_equal(pm_metrics_open(run, 20, &m), 0);
    add(m, "train", 30, 2);
    pm_metrics_close(&m);
    expect("{\"kind\": \"train\", \"step\": 10, \"loss\": 0.5, \"lr\": 0.1}\n"
           "{\"kind\": \"eval\", \"step\": 10, \"loss\": 0.3333333333333333, \"lr\": 0.1}\n"
           "{\"kind\": \"train\", \"step\": 20, \"loss\": null, \"lr\": 0.1}\n"
           "{\"kind\": \"train\", \"step\": 30, \"loss\": 2, \"lr\": 0.1}\n");
    append("garbage\n");
    assert_int_equal(pm_metrics_open(run, 10, &m), 0);
    pm_metrics_close(&m);
    expect("{\"kind\": \"train\", \"step\": 10, \"loss\": 0.5, \"lr\": 0.1}\n"
           "{\"kind\": \"eval\", \"step\": 10, \"loss\": 0.3333333333333333, \"lr\": 0.1}\n");
    assert_int_equal(pm_metrics_open(run, 0, &m), 0);
    pm_metrics_close(&m);
    expect("");
    assert_int_equal(pm_metrics_open("no/such/folder", 0, &m), PM_EFAIL);
    assert_null(m);
}

static const char *const clones[] = { "vulkan:0", "cpu" };
static const double clone_rates[] = { 800, 434.4 };
static const struct pm_progress_options options = {
    .what = "train",
    .unit = "step",
    .last = 20000,
    .loss = true,
    .clones = clones,
    .clone_count = 2,
};
static const struct pm_progress_point point = {
    .done = 5100,
    .loss = 0.43211,
    .decay = 0.0567,
    .lr = 0.01,
    .clone_images_per_second = clone_rates,
    .rates = { .images_per_second = 1234.4, .seconds_per_step = 0.04, .wait_share = 0.02 },
};

static void line_says_everything(void **state)
{
    char text[512];

    (void)state;
    assert_string_equal(
        pm_progress_text(&options, &point, 754, -1, text, sizeof text),
        "step 5100/20000   25 %  loss 0.4321 (+ 0.0567 weight decay)  lr 0.01  1234 images/s  "
        "(vulkan:0 800, cpu 434)  2 % waiting  12:34 left");
    pm_progress_text(&options, &point, 754, 200, text, sizeof text);
    assert_non_null(strstr(text, "  [#######.......................]  ")); /* 25.5 % of 30 */
}

/* At every width the line fits, and a part is shown only when all more important parts are. */
static void line_fits(void **state)
{
    static const char *const order[] = { "step ", "loss ", "left", "images/s", " %", "waiting",
                                         "434)",  "[",     "cpu",  "decay",    "lr " };
    char text[512];

    (void)state;
    for (int width = 0; width < 220; width++) {
        bool missing = false;
        pm_progress_text(&options, &point, 754, width, text, sizeof text);
        assert_true(strlen(text) <= (size_t)width);
        for (size_t i = 0; i < PM_COUNT(order); i++) {
            if (strcmp(order[i], " %") == 0 && strstr(text, "waiting"))
                continue; /* both lines hold the part */
            bool here = strstr(text, order[i]) != NULL;
            if (here && missing)
                fail_msg("width %d: '%s' shows %s without something more important", width, text,
                         order[i]);
            missing |= !here;
        }
        if (width >= 40)
            assert_non_null(strstr(text, "loss"));
    }
}

static void odd_numbers(void **state)
{
    struct pm_progress_point p = { .done = 7, .loss = NAN };
    struct pm_progress_options o = { .what = "x", .unit = "batch", .loss = true };
    char text[512];

    (void)state;
    assert_string_equal(pm_progress_text(&o, &p, -1, -1, text, sizeof text),
                        "batch 7  loss nan  lr 0");
    p.more = "miou 0.5";
    assert_string_equal(pm_progress_text(&o, &p, -1, -1, text, sizeof text),
                        "batch 7  loss nan  miou 0.5  lr 0");
    p.decay = 2e-6;
    assert_string_equal(pm_progress_text(&o, &p, -1, -1, text, sizeof text),
                        "batch 7  loss nan (+ 2.000e-06 weight decay)  miou 0.5  lr 0");
    p.decay = 0;
    p.more = NULL;
    o.loss = false, o.last = 7;
    assert_string_equal(pm_progress_text(&o, &p, 0, -1, text, sizeof text),
                        "batch 7/7  100 %  0:00 left");
    o.last = 5; /* more steps than announced */
    assert_string_equal(pm_progress_text(&o, &p, 1e300, -1, text, sizeof text),
                        "batch 7/5  100 %  years left");
    assert_string_equal(pm_progress_text(&o, &p, 11045, -1, text, sizeof text),
                        "batch 7/5  100 %  3:04:05 left");
    assert_string_equal(pm_progress_text(&o, &p, 200000, -1, text, sizeof text),
                        "batch 7/5  100 %  2 d 7 h left");
    pm_progress_text(&o, &p, 3, 60, text, sizeof text);
    assert_non_null(strstr(text, "##########]"));
}

static void speed_counts(void **state)
{
    struct pm_speed s;
    struct pm_rates r;

    (void)state;
    pm_speed_start(&s, 1.5);
    s.since -= 2; /* two seconds ago */
    pm_speed_step(&s, 32), pm_speed_step(&s, 32), pm_speed_step(&s, 32), pm_speed_step(&s, 4);
    r = pm_speed_take(&s, 2.0);
    /* 100 images in 4 steps, half a second waited. The duration of the test does not matter. */
    assert_true(fabs(r.images_per_second * r.seconds_per_step - 25) < 1e-9);
    assert_true(fabs(r.wait_share * r.seconds_per_step * 4 - 0.5) < 1e-9);
    assert_true(r.seconds_per_step >= 0.5);
    assert_int_equal(s.steps, 0);
    assert_true(s.waited == 2.0);
}

/* Every moment belongs to one phase, in any order of phases. */
static void phases_add_up(void **state)
{
    struct pm_phases p;
    double seconds[PM_RUN_PHASES], sum = 0, begun = pm_seconds(), ended;

    (void)state;
    pm_phases_start(&p);
    assert_int_equal(pm_phases_enter(&p, PM_RUN_DATA), PM_RUN_OTHER);
    p.since -= 3; /* as if it had begun three seconds ago */
    assert_int_equal(pm_phases_enter(&p, PM_RUN_DEVICE), PM_RUN_DATA);
    p.since -= 2;
    assert_int_equal(pm_phases_enter(&p, PM_RUN_SAVING), PM_RUN_DEVICE);
    assert_int_equal(pm_phases_enter(NULL, PM_RUN_SAVING), PM_RUN_SAVING);
    pm_phases_take(&p, seconds);
    ended = pm_seconds();
    for (int i = 0; i < PM_RUN_PHASES; i++) {
        assert_true(seconds[i] >= 0 && pm_phase_names[i]);
        sum += seconds[i];
    }
    assert_true(sum >= 5 - 1e-6 && sum <= 5 + ended - begun + 1e-6);
    assert_true(seconds[PM_RUN_DATA] >= 3 && seconds[PM_RUN_DEVICE] >= 2);
    assert_true(seconds[PM_RUN_AVERAGE] == 0 && seconds[PM_RUN_EVALUATING] == 0);
    pm_phases_take(&p, seconds); /* the same phase continues from 0 */
    assert_true(p.now == PM_RUN_SAVING && seconds[PM_RUN_DATA] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_once), cmocka_unit_test(line_says_everything),
        cmocka_unit_test(line_fits),      cmocka_unit_test(odd_numbers),
        cmocka_unit_test(speed_counts),   cmocka_unit_test(phases_add_up),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
