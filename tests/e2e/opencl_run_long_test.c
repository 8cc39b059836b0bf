/* LeNet on an OpenCL device whose kernels are verified first: a run that is killed several times, a
 * device that is lost alone and one beside the CPU, and an OpenCL device beside itself. */
#include "e2e/opencl_run.h"

/* The first start verifies the kernels against the CPU; the second one knows the results. */
static void test_verified(void **state)
{
    char *text;

    (void)state;
    setenv("XDG_CACHE_HOME", in("cache"), 1); /* nothing is known */
    check(train_net(NULL, "whole", ""), 0);
    text = get_text(in("whole/log.txt"));
    assert_contains(text, "verify: opencl:0: ");
    assert_contains(text, " kernels verified against the CPU");
    pm_free(text);
    check(train_net(NULL, "cpu", "'devices=[\"cpu\"]'"), 0);
    same_losses("whole", "cpu", 1, 6, 1e-3);
    check(train_net(NULL, "again", ""), 0);
    text = get_text(in("again/log.txt"));
    assert_null(strstr(text, "kernels verified against"));
    pm_free(text);
}

static void test_killed(void **state)
{
    static const double seconds[] = { 0.7, 1.9, 2.6, 0.9, 1.4 };

    (void)state;
    killed_run("whole", "torn", seconds, PM_COUNT(seconds), "");
}

/* The only device is lost: it is opened again, and the run has the bits of an undisturbed one. */
static void test_lost_alone(void **state)
{
    char whole[512];

    (void)state;
    snprintf(whole, sizeof whole, "%s", in("whole/checkpoints/step-000006.safetensors"));
    for (int at = 1; at <= 6; at++) {
        char name[32], lose[32];

        snprintf(name, sizeof name, "alone%d", at);
        snprintf(lose, sizeof lose, "PM_LOSE=0:%d", at);
        check(train_net(&(struct how){ .environment = lose }, name, ""), 0,
              "opening devices[0], opencl:0, again, from step ");
        same_bytes(whole, in("%s/checkpoints/step-000006.safetensors", name));
    }
}

/* Two clones, one of them lost once: both go on, with the bits of an undisturbed run. */
static void test_lost_beside(void **state)
{
    static const char *const devices[] = {
        on_both, "run.batch_size=16 'devices=[\"opencl:0\",\"opencl:0\"]'"
    };

    (void)state;
    for (int i = 0; i < 2; i++) {
        char whole[32], lost[32], bits[512];

        snprintf(whole, sizeof whole, "both%d", i);
        snprintf(lost, sizeof lost, "lost%d", i);
        check(train_net(NULL, whole, devices[i]), 0);
        check(train_net(&(struct how){ .environment = "PM_LOSE=0:3" }, lost, devices[i]), 0,
              "opening devices[0], opencl:0, again, from step ");
        snprintf(bits, sizeof bits, "%s", in("%s/checkpoints/step-000006.safetensors", whole));
        same_bytes(bits, in("%s/checkpoints/step-000006.safetensors", lost));
        same_losses("both0", whole, 1, 6, 1e-3);
    }
}

static int set_up(void **state)
{
    (void)state;
    return make_opencl_world("{ \"name\": \"lenet\" }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verified),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_lost_alone),
        cmocka_unit_test(test_lost_beside),
    };

    const int without = without_opencl();

    return without ? without : cmocka_run_group_tests(tests, set_up, drop_world);
}
