/* Whole runs on an OpenCL device: the list, training that follows a run on the CPU, a run that is
 * killed and started again, evaluation, and a device beside the CPU that is lost. */
#include "e2e/opencl_run.h"

static void test_devices(void **state)
{
    struct result r = run(NULL, "devices --json");
    cJSON *o = json_of(&r), *d, *found = NULL;

    (void)state;
    cJSON_ArrayForEach(d, cJSON_GetObjectItem(o, "devices"))
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(d, "address")), "opencl:0") == 0)
            found = d;
    assert_non_null(found);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(found, "kind")), "software");
    assert_contains(cJSON_GetStringValue(cJSON_GetObjectItem(found, "driver")),
                    "Portable Computing Language");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(found, "usable")));
    cJSON_Delete(o);
    drop(&r);
    r = run(NULL, "devices opencl:0");
    assert_int_equal(r.code, 0);
    assert_contains(r.out, "opencl:0 means opencl:0");
    assert_contains(r.out, "kernels     for pocl");
    drop(&r);
    check(run(NULL, "devices opencl:9"), 4, "no device \"opencl:9\"; there are: auto, ",
          "opencl:0 (");
}

/* The losses are those of the CPU up to rounding. A run that is killed ends with the same bits. */
static void test_trains(void **state)
{
    (void)state;
    check(train_net(NULL, "whole", "run.verify=off"), 0);
    check(train_net(NULL, "cpu", "'devices=[\"cpu\"]'"), 0);
    same_losses("whole", "cpu", 1, 6, 1e-3);
    killed_run("whole", "torn", (const double[]){ 1 }, 1, "run.verify=off");
    check(run(NULL, "eval %s run.folder=%s", in("net.json"), in("whole")), 0);
}

/* The OpenCL device is lost twice: it is opened again, then left out, and the CPU continues with
 * the whole batch. */
static void test_lost_beside_the_cpu(void **state)
{
    const struct how lose = { .environment = "PM_LOSE=0:2:2" };
    char more[256];

    (void)state;
    snprintf(more, sizeof more, "run.verify=off %s", on_both);
    check(train_net(&lose, "lost", more), 0, "opening devices[0], opencl:0, again",
          "is left out from now on: 1 device resumes", "the batch of 16 is now on");
    check(train_net(NULL, "alone", "run.batch_size=16 'devices=[\"cpu\"]'"), 0);
    same_losses("alone", "lost", 1, 6, 1e-3);
}

/* Few kernels, because PoCL takes half a second for each. */
static int set_up(void **state)
{
    (void)state;
    return make_opencl_world(
        "{ \"layers\": [ { \"name\": \"conv\", \"layer\": \"conv2d\", \"filters\": 8,\n"
        "  \"kernel\": 5, \"stride\": 2, \"activation\": \"relu\" },\n"
        "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_trains),
        cmocka_unit_test(test_lost_beside_the_cpu),
    };

    const int without = without_opencl();

    return without ? without : cmocka_run_group_tests(tests, set_up, drop_world);
}
