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
    check(run(NULL, "train %s run.folder=%s run.steps=null run.epochs=2 data.shuffle=false",
              in("net.json"), in("a")), 0);
    evaluated("", 10, 20);
    evaluated("eval.sample_1_of_n=3", 10, 7);
    check(run(NULL, "train %s run.folder=%s run.steps=0 run.epochs=3 data.sample_1_of_n=3",
              in("net.json"), in("b")), 0, "step 5/5");
    check(
        run(NULL, "train %s run.folder=%s run.steps=2 run.epochs=3", in("net.json"), in("c")),
        0, "step 2/2", "run.steps 2 and run.epochs 3 (15 steps) are both set: training ends at "
        "step 2");
    check(run(NULL, "train %s run.folder=%s run.batch_size=100 run.epochs=2", in("net.json"),
              in("d")),
          2, "command line: run.epochs: 2 epochs of 40 examples are less than one batch");
    check(run(NULL, "train %s run.folder=%s run.steps=null run.epochs=0.5", in("net.json"),
              in("g")), 0, "step 2/2", "run.epochs 0.5: 2 steps");
}

/* Training needs a length, and so does the check of a config. Other commands do not. */
static void length(void **state)
{
    static const char said[] =
        "net.json: neither run.steps nor run.epochs is given; set the length of the training with "
        "run.steps=STEPS or run.epochs=EPOCHS (run.steps=0 trains until stopped)";
    (void)state;

    check(run(NULL, "train %s run.folder=%s run.steps=null", in("net.json"), in("h")), 2, said);
    assert_false(pm_is_folder(in("h")));
    check(run(NULL, "config check %s run.steps=null", in("net.json")), 2, said);
    check(run(NULL, "train %s run.folder=%s data.num_epochs=2", in("net.json"), in("h")), 2,
          "data.num_epochs: there is no such key. Set run.epochs instead");
    check(run(NULL, "train %s run.folder=%s run.steps=2", in("net.json"), in("i")), 0, "step 2/2");
    check(run(NULL, "eval %s run.folder=%s run.steps=null", in("net.json"), in("i")), 0);
    check(run(NULL, "export %s run.folder=%s run.steps=null", in("net.json"), in("i")), 0);
    check(run(NULL, "config show %s run.steps=null --plan", in("net.json")), 0);
}

/* Runs a command of the shell that must succeed. */
PM_PRINTF(1, 2) static void run_shell(const char *format, ...)
{
    struct pm_str text = { 0 };
    va_list args;

    va_start(args, format);
    pm_str_add_args(&text, format, args);
    va_end(args);
    assert_int_equal(system(text.text), 0);
    pm_str_free(&text);
}

/* Without data.eval_split the split that the folder has is evaluated. */
static void eval_split(void **state)
{
    (void)state;
    check(run(NULL, "eval %s run.folder=%s data.eval_split=null", in("net.json"), in("i")), 0,
          "data.eval_split is not set: the split validation of");
    check(run(NULL, "train %s run.folder=%s run.steps=2 eval.every_steps=2 data.eval_split=null",
              in("net.json"), in("j")), 0, "the split validation of");
    /* A folder with training data only: an error if something is to be evaluated. */
    run_shell("mkdir %s && cp %s/*.json %s/*.txt %s/*train* %s", in("only"), in("data"),
              in("data"), in("data"), in("only"));
    check(run(NULL, "train %s run.folder=%s run.steps=2 data.folder=%s data.eval_split=null",
              in("net.json"), in("k"), in("only")), 0);
    check(run(NULL, "train %s run.folder=%s run.steps=2 data.folder=%s data.eval_split=null "
                    "eval.every_steps=2", in("net.json"), in("l"), in("only")),
          3, "has none of the splits validation, val, test and val_fine; it has: shapes_train. Set "
             "data.eval_split to one of them");
    check(run(NULL, "eval %s run.folder=%s data.folder=%s data.eval_split=null", in("net.json"),
              in("k"), in("only")), 3, "data.eval_split is not set, and");
    assert_false(pm_is_folder(in("l")));
}

/* Values that only asynchronous training has, and a number of processes that were not started, give
 * exit code 2 before the run folder is changed. One process may have both modes. */
static void processes(void **state)
{
    static const char *const refused[][2] = {
        { "run.replicas=2", "but 1 process was started" },
        { "run.task=1", "run.task: 1, but this process has the number 0, and 1 " },
        { "run.parameter_servers=1", "in synchronous training every process holds" },
        { "run.replicas_to_aggregate=3", "run.batch_size, 8, must be a multiple of 3" },
        { "run.startup_delay_steps=15", "the processes make every step together" } };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(refused); i++)
        check(run(NULL, "train %s run.folder=%s %s", in("net.json"), in("e"), refused[i][0]), 2,
              refused[i][1]);
    assert_false(pm_is_folder(in("e")));
    check(run(NULL, "train %s run.folder=%s run.replicas=1 run.task=0 run.parameter_servers=0 "
                    "run.sync_replicas=true run.replicas_to_aggregate=0 run.startup_delay_steps=0",
              in("net.json"), in("f")), 0);
    check(run(NULL, "train %s run.folder=%s run.sync_replicas=false run.steps=5", in("net.json"),
              in("f")), 0);
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
        cmocka_unit_test(length),
        cmocka_unit_test(eval_split),
        cmocka_unit_test(processes),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
