/* Learning rates by TF-Slim's rules: values worked out by hand and, over many steps,
 * TensorFlow's formulas in double precision. The schedules of detectors at every boundary and
 * beside it: tests/golden/schedules.json, which schedules.py computed with the Object Detection
 * API. */
#include "base/golden_file.h"
#include "config/config_private.h"
#include "optim/schedule.h"

#include <cjson/cJSON.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pm_schedule make(const struct pm_config_schedule *c, size_t examples, int batch,
                               int clones)
{
    struct pm_schedule s;

    assert_int_equal(pm_schedule_make(c, examples, batch, clones, 1000, &s), PM_OK);
    return s;
}

static void rate_is(double got, double want)
{
    if (!(fabs(got - want) <= 4e-7 * fabs(want) + 1e-12)) /* a few float32 roundings */
        fail_msg("%.9g, not %.9g", got, want);
}

static void test_exponential(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_EXPONENTIAL, .base_lr = 0.01,
                                    .decay_factor = 0.94, .num_epochs_per_decay = 2,
                                    .staircase = true };
    struct pm_schedule s = make(&c, 1281167, 32, 1);

    (void)state;
    assert_int_equal(s.decay_steps, 80072); /* the ImageNet case of the specification */
    rate_is(pm_schedule_rate(&s, 0), 0.01);
    rate_is(pm_schedule_rate(&s, 80071), 0.01);
    rate_is(pm_schedule_rate(&s, 80072), 0.0094);
    rate_is(pm_schedule_rate(&s, 160144), 0.01 * 0.94 * 0.94);
    c.staircase = false;
    rate_is(pm_schedule_rate(&s, 40036), 0.01 * sqrt(0.94));
    c.staircase = true;
    s = make(&c, 1281167, 32, 4); /* the number of clones has no effect */
    assert_int_equal(s.decay_steps, 80072);
    c.num_epochs_per_decay = 30; /* the Inception trainer's rule: batches of 256 over all clones */
    assert_int_equal(make(&c, 1281167, 256, 8).decay_steps, 150136);
    c.num_epochs_per_decay = 2;
    c.staircase = false;
    c.epoch_count = PM_EPOCH_PER_CLONE; /* 64 pictures a step over two clones of 32 */
    s = make(&c, 1281167, 64, 2);
    assert_int_equal(s.decay_steps, 80072);
}

static void test_polynomial(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_POLYNOMIAL, .base_lr = 0.1,
                                    .end_lr = 0.02, .power = 0.9, .decay_steps = 100 };
    struct pm_schedule s = make(&c, 0, 1, 1);

    (void)state;
    rate_is(pm_schedule_rate(&s, 0), 0.1);
    rate_is(pm_schedule_rate(&s, 25), 0.08 * pow(0.75, 0.9) + 0.02);
    rate_is(pm_schedule_rate(&s, 100), 0.02);
    rate_is(pm_schedule_rate(&s, 500), 0.02);
    c.cycle = true; /* step 150 lies in the second cycle, of length 200 */
    rate_is(pm_schedule_rate(&s, 0), 0.1);
    rate_is(pm_schedule_rate(&s, 150), 0.08 * pow(0.25, 0.9) + 0.02);
}

static void test_cosine_and_warm_up(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_COSINE, .base_lr = 0.4,
                                    .warmup_steps = 10 };
    struct pm_schedule s = make(&c, 0, 1, 1);

    (void)state;
    assert_int_equal(s.decay_steps, 1000); /* run.steps */
    assert_true(pm_schedule_rate(&s, 0) == 0); /* exactly 0 at the start */
    rate_is(pm_schedule_rate(&s, 5), 0.2);
    rate_is(pm_schedule_rate(&s, 500), 0.2);
    rate_is(pm_schedule_rate(&s, 250), 0.4 * 0.5 * (1 + cos(3.14159265358979 / 4)));
    c.policy = PM_POLICY_FIXED;
    c.warmup_lr = 0.1;
    s = make(&c, 0, 1, 1);
    rate_is(pm_schedule_rate(&s, 0), 0.1);
    rate_is(pm_schedule_rate(&s, 5), 0.25);
    rate_is(pm_schedule_rate(&s, 10), 0.4);
}

/* As in TF-Slim, the length of the ramp is not rounded to whole steps, and the rate never
 * exceeds that of the policy. */
static void test_warm_up_epochs(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_EXPONENTIAL, .base_lr = 0.2,
                                    .decay_factor = 0.5, .decay_steps = 4, .staircase = true,
                                    .warmup_epochs = 2.5 };
    struct pm_schedule s = make(&c, 100, 32, 1); /* 7.8125 steps */

    (void)state;
    for (int t = 0; t < 20; t++)
        rate_is(pm_schedule_rate(&s, t), fmin(0.2 * pow(0.5, floor(t / 4.0)), 0.2 * t / 7.8125));
}

static void test_slow_start(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_POLYNOMIAL, .base_lr = 0.1, .power = 1,
                                    .decay_steps = 100, .warmup_steps = 10, .warmup_lr = 0.3,
                                    .warmup_shape = PM_WARMUP_CONSTANT };
    struct pm_schedule s = make(&c, 0, 1, 1);

    (void)state;
    rate_is(pm_schedule_rate(&s, 0), 0.3);
    rate_is(pm_schedule_rate(&s, 9), 0.3);
    rate_is(pm_schedule_rate(&s, 10), 0.09);
    c.warmup_shift = true;
    rate_is(pm_schedule_rate(&s, 9), 0.3);
    rate_is(pm_schedule_rate(&s, 10), 0.1);
    rate_is(pm_schedule_rate(&s, 60), 0.05);
    c.warmup_shape = PM_WARMUP_LINEAR;
    c.warmup_lr = 0.02;
    rate_is(pm_schedule_rate(&s, 5), 0.06);
    rate_is(pm_schedule_rate(&s, 35), 0.075);
}

static void test_piecewise(void **state)
{
    static const int steps[] = { 10, 20, 40 };
    static const float rates[] = { 0.5f, 0.25f, 0.75f };
    struct pm_config_schedule c = { .policy = PM_POLICY_PIECEWISE, .base_lr = 1,
                                    .boundaries = { 3, steps }, .rates = { 3, rates } };
    struct pm_schedule s = make(&c, 0, 1, 1);

    (void)state;
    for (int t = 0; t < 60; t++)
        rate_is(pm_schedule_rate(&s, t), t < 10 ? 1 : t < 20 ? 0.5 : t < 40 ? 0.25 : 0.75);
    c.rates.count = 2;
    assert_int_equal(pm_schedule_make(&c, 0, 1, 1, 0, &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "3 and 2 are given"));
    c.rates.count = 3;
    c.boundaries.v = (const int[]){ 10, 10, 40 };
    assert_int_equal(pm_schedule_make(&c, 0, 1, 1, 0, &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "10 after 10"));
}

/* Two roundings of base_lr are added to the bound: they remain when 1 - t / length is small. */
static void close_to(double got, double want)
{
    if (!(fabs(got - want) <= 4e-7 * fabs(want) + 2 * 0x1p-24 * 0.045))
        fail_msg("%.9g, not %.9g", got, want);
}

/* Every policy over many steps. */
static void test_formulas(void **state)
{
    struct pm_config_schedule c = { .base_lr = 0.045, .end_lr = 1e-3, .power = 0.9,
                                    .decay_factor = 0.94, .num_epochs_per_decay = 2.5 };
    const double length = floor(1000.0 / 24 * 2.5);

    (void)state;
    for (int64_t t = 0; t < 1000; t += 7) {
        double x = (double)t / length, left = fmax(1 - x, 0);
        double k = t > 0 ? ceil(x) : 1;
        struct pm_schedule s;

        c.policy = PM_POLICY_EXPONENTIAL, c.staircase = false, c.cycle = false;
        s = make(&c, 1000, 24, 3);
        assert_int_equal(s.decay_steps, 104);
        close_to(pm_schedule_rate(&s, t), 0.045 * pow(0.94, x));
        c.staircase = true;
        close_to(pm_schedule_rate(&s, t), 0.045 * pow(0.94, floor(x)));
        c.policy = PM_POLICY_POLYNOMIAL;
        close_to(pm_schedule_rate(&s, t), 0.044 * pow(left, 0.9) + 1e-3);
        c.cycle = true;
        close_to(pm_schedule_rate(&s, t), 0.044 * pow(1 - (double)t / (length * k), 0.9) + 1e-3);
        c.policy = PM_POLICY_COSINE, c.decay_steps = 104;
        s = make(&c, 1000, 24, 3);
        close_to(pm_schedule_rate(&s, t), 1e-3 + 0.044 * 0.5 * (1 + cos(acos(-1) * fmin(x, 1))));
        c.decay_steps = 0;
    }
}

static void test_length_is_needed(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_EXPONENTIAL, .base_lr = 0.1 };
    struct pm_schedule s;

    (void)state;
    assert_int_equal(pm_schedule_make(&c, 100, 10, 1, 50, &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(),
                           "schedule.num_epochs_per_decay: 0, times 100 examples over "
                           "10 a step, is less than one step"));
    assert_non_null(strstr(pm_error_text(), "schedule.decay_steps"));
    c.policy = PM_POLICY_COSINE;
    assert_int_equal(pm_schedule_make(&c, 100, 10, 1, 0, &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "\"cosine\" has no length: set run.steps"));
}

/* DeepLab's rule: a power of the remaining share of the run. With a shift the warm-up steps are
 * subtracted first. */
static void test_polynomial_over_the_run(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_POLYNOMIAL,
                                    .base_lr = 0.045,
                                    .power = 0.9 };
    struct pm_schedule s;

    (void)state;
    assert_int_equal(pm_schedule_make(&c, 123, 8, 1, 1000, &s), PM_OK);
    assert_int_equal(s.decay_steps, 1000);
    close_to(pm_schedule_rate(&s, 0), 0.045);
    close_to(pm_schedule_rate(&s, 500), 0.045 * pow(0.5, 0.9));
    close_to(pm_schedule_rate(&s, 999), 0.045 * pow(0.001, 0.9));
    c.warmup_steps = 200, c.warmup_lr = 0.005, c.warmup_shift = true;
    assert_int_equal(pm_schedule_make(&c, 123, 8, 1, 1000, &s), PM_OK);
    assert_int_equal(s.decay_steps, 800);
    close_to(pm_schedule_rate(&s, 100), 0.025);
    close_to(pm_schedule_rate(&s, 200), 0.045);
    close_to(pm_schedule_rate(&s, 600), 0.045 * pow(0.5, 0.9));
    c.warmup_steps = 1000;
    assert_int_equal(pm_schedule_make(&c, 123, 8, 1, 1000, &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "\"polynomial\" has no length: set run.steps above"));
}

/* ---- detectors --------------------------------------------------------------------------- */

/* The last digits of a cosine near its end depend on the order of operations: errors are relative
 * to the first rate, too. */
static void test_detectors(void **state)
{
    struct pm_arena *a = pm_arena_create();
    cJSON *all = read_golden("schedules.json");
    const cJSON *item, *pair;
    int cases = 0, rates = 0;

    (void)state;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(all, "cases")) {
        const cJSON *json = cJSON_GetObjectItem(item, "schedule");
        struct pm_config_schedule c;
        struct pm_schedule s;

        if (pm_opts_parse(pm_config_section_find("schedule", 8)->opts, json, NULL, &c, a, "case")
                < 0 || pm_schedule_make(&c, 0, 1, 1, 0, &s) < 0)
            fail_msg("%s", pm_error_text());
        cJSON_ArrayForEach(pair, cJSON_GetObjectItem(item, "rates")) {
            int64_t step = (int64_t)cJSON_GetArrayItem(pair, 0)->valuedouble;
            double want = cJSON_GetArrayItem(pair, 1)->valuedouble;
            double got = (double)pm_schedule_rate(&s, step);

            if (!(fabs(got - want) <= 4e-7 * want + (want > 0 ? 2e-7 * c.base_lr : 0)))
                fail_msg("case %d, step %lld: %.9g, not %.9g", cases, (long long)step, got, want);
            rates++;
        }
        cases++;
    }
    assert_int_equal(cases, 12);
    assert_true(rates > 100);
    cJSON_Delete(all);
    pm_arena_destroy(&a);
}

/* A run's length without the warm-up and the steps at the base rate; after the end the rate stays
 * at end_lr. Keys that the policy would ignore are refused. */
static void test_hold_and_least(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_COSINE, .base_lr = 0.1, .end_lr = 0.01,
                                    .warmup_steps = 100, .hold_steps = 300 };
    struct pm_schedule s;

    (void)state;
    assert_int_equal(pm_schedule_make(&c, 0, 1, 1, 1000, &s), PM_OK);
    assert_int_equal(s.decay_steps, 600);
    rate_is(pm_schedule_rate(&s, 50), 0.05);
    rate_is(pm_schedule_rate(&s, 100), 0.1);
    rate_is(pm_schedule_rate(&s, 400), 0.1);
    rate_is(pm_schedule_rate(&s, 700), 0.055);
    rate_is(pm_schedule_rate(&s, 1000), 0.01);
    rate_is(pm_schedule_rate(&s, 1500), 0.01);
    c.hold_steps = 900;
    assert_int_equal(pm_schedule_make(&c, 0, 1, 1, 1000, &s), PM_ECONFIG);
    c.policy = PM_POLICY_FIXED;
    assert_int_equal(pm_schedule_make(&c, 0, 1, 1, 1000, &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "schedule.hold_steps: 900 belongs to"));
    c.hold_steps = 0, c.min_lr = 0.001;
    assert_int_equal(pm_schedule_make(&c, 0, 1, 1, 1000, &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "schedule.min_lr: 0.001 belongs to"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_polynomial_over_the_run),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_polynomial),
        cmocka_unit_test(test_cosine_and_warm_up),
        cmocka_unit_test(test_warm_up_epochs),
        cmocka_unit_test(test_slow_start),
        cmocka_unit_test(test_piecewise),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_length_is_needed),
        cmocka_unit_test(test_detectors),
        cmocka_unit_test(test_hold_and_least),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
