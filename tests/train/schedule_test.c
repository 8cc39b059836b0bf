/* Learning rates by TF-Slim's rules, worked out by hand. */
#include "train/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

static struct pm_schedule make(const struct pm_config_schedule *c, size_t examples, int batch,
                               int clones)
{
    struct pm_schedule s;

    assert_int_equal(pm_schedule_make(c, examples, batch, clones, 1000, &s), PM_OK);
    return s;
}

static void near(double got, double want)
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
    assert_int_equal(s.decay_steps, 80072); /* the spec's ImageNet case */
    near(pm_schedule_rate(&s, 0), 0.01);
    near(pm_schedule_rate(&s, 80071), 0.01);
    near(pm_schedule_rate(&s, 80072), 0.0094);
    near(pm_schedule_rate(&s, 160144), 0.01 * 0.94 * 0.94);
    c.staircase = false;
    near(pm_schedule_rate(&s, 40036), 0.01 * sqrt(0.94));
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
    near(pm_schedule_rate(&s, 0), 0.1);
    near(pm_schedule_rate(&s, 25), 0.08 * pow(0.75, 0.9) + 0.02);
    near(pm_schedule_rate(&s, 100), 0.02);
    near(pm_schedule_rate(&s, 500), 0.02);
    c.cycle = true; /* 150 is in the second cycle, of length 200 */
    near(pm_schedule_rate(&s, 0), 0.1);
    near(pm_schedule_rate(&s, 150), 0.08 * pow(0.25, 0.9) + 0.02);
}

static void test_cosine_and_warm_up(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_COSINE, .base_lr = 0.4,
                                    .warmup_steps = 10 };
    struct pm_schedule s = make(&c, 0, 1, 1);

    (void)state;
    assert_int_equal(s.decay_steps, 1000); /* run.steps */
    assert_true(pm_schedule_rate(&s, 0) == 0); /* exactly 0 at the start */
    near(pm_schedule_rate(&s, 5), 0.2);
    near(pm_schedule_rate(&s, 500), 0.2);
    near(pm_schedule_rate(&s, 250), 0.4 * 0.5 * (1 + cos(3.14159265358979 / 4)));
    c.policy = PM_POLICY_FIXED;
    c.warmup_lr = 0.1;
    s = make(&c, 0, 1, 1);
    near(pm_schedule_rate(&s, 0), 0.1);
    near(pm_schedule_rate(&s, 5), 0.25);
    near(pm_schedule_rate(&s, 10), 0.4);
}

static void test_length_is_needed(void **state)
{
    struct pm_config_schedule c = { .policy = PM_POLICY_EXPONENTIAL, .base_lr = 0.1 };
    struct pm_schedule s;

    (void)state;
    assert_int_equal(pm_schedule_make(&c, 100, 10, 1, 50, &s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "schedule.decay_steps"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_polynomial),
        cmocka_unit_test(test_cosine_and_warm_up),
        cmocka_unit_test(test_length_is_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
