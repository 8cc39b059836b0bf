/* Keys that change the amount of training and evaluation, tested with the program. */
#include "e2e/program.h"

/* Checks the step and the count of an evaluation. */
static void evaluated(const char *arguments, double step, double count)
{
    struct result r =
        run(NULL, "eval %s run.folder=%s --json %s", in("net.json"), in("a"), arguments);
    cJSON *json;

    assert_int_equal(r.code, 0);
    json = json_of(&r);
    assert_true(number_of(json, "step") == step);
    assert_true(number_of(json, "count") == count);
    cJSON_Delete(json);
    drop(&r);
}

/* 40 pictures in batches of 8: two epochs are ten steps, or fewer with run.steps. Every third
 * picture gives 14, so three epochs hold five complete batches. */
static void epochs(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s run.steps=0 data.num_epochs=2 data.shuffle=false",
              in("net.json"), in("a")), 0);
    evaluated("", 10, 20);
    evaluated("eval.sample_1_of_n=3", 10, 7);
    check(run(NULL, "train %s run.folder=%s run.steps=0 data.num_epochs=3 data.sample_1_of_n=3",
              in("net.json"), in("b")), 0, "step 5/5");
    check(
        run(NULL, "train %s run.folder=%s run.steps=2 data.num_epochs=3", in("net.json"), in("c")),
        0, "step 2/2");
    check(run(NULL, "train %s run.folder=%s run.batch_size=100 data.num_epochs=2", in("net.json"),
              in("d")),
          2, "net.json: data.num_epochs: 2 epochs of 40 examples are less than one batch");
}

/* Values for several machines give exit code 2 before the run folder is changed. */
static void one_machine(void **state)
{
    static const char *const refused[] = { "run.replicas=2",
                                           "run.task=1",
                                           "run.parameter_servers=1",
                                           "run.sync_replicas=true",
                                           "run.replicas_to_aggregate=2",
                                           "run.startup_delay_steps=15" };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(refused); i++)
        check(run(NULL, "train %s run.folder=%s %s", in("net.json"), in("e"), refused[i]), 2,
              "several machines are not supported in this version");
    assert_false(pm_is_folder(in("e")));
    check(run(NULL, "train %s run.folder=%s run.replicas=1 run.task=0 run.parameter_servers=0 "
                    "run.sync_replicas=false run.replicas_to_aggregate=1 run.startup_delay_steps=0",
              in("net.json"), in("f")), 0);
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs),
        cmocka_unit_test(one_machine),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
