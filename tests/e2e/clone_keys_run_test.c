/* Keys for several devices, with the program: run.log_loss, run.batch_norm_update "last", and the
 * warning of unequal parts of the batch. Also the warning of a training that learns nothing. */
#include "e2e/program.h"
#include "e2e/same_run.h"

#define TWO "'devices=[\"cpu\",\"cpu\"]' "

/* With equal parts the sum of the devices' mean losses is twice the mean. The values that training
 * computes are the same. */
static void sum_of_losses(void **state)
{
    (void)state;
    check(train_net(NULL, "mean", TWO "optim.weight_decay=0.01 eval.every_steps=3"), 0);
    check(train_net(NULL, "sum", TWO "optim.weight_decay=0.01 eval.every_steps=3 run.log_loss=sum"),
          0);
    for (int step = 1; step <= 3; step++) {
        const double mean = logged("mean", step, "main_loss"), l2 = logged("mean", step, "l2");

        assert_true(mean > 0 && l2 > 0);
        assert_true(fabs(logged("mean", step, "loss") - mean - l2) <= 1e-9);
        assert_true(fabs(logged("sum", step, "main_loss") - 2 * mean) <= 1e-9);
        assert_true(fabs(logged("sum", step, "loss") - 2 * mean - l2) <= 1e-9);
    }
    same_bytes(in("mean/checkpoints/step-000003.safetensors"),
               in("sum/checkpoints/step-000003.safetensors"));
    check(train_net(NULL, "alone", ""), 0);
    check(train_net(NULL, "alone_sum", "run.log_loss=sum"), 0);
    same_losses("alone", "alone_sum", 1, 3, 0);
}

static void unequal_parts(void **state)
{
    struct result r;

    (void)state;
    check(train_net(NULL, "parts", TWO "run.batch_size=9"), 0, "warning: train: run.batch_size: 9",
          "their parts are 5 (cpu) and 4 (cpu); a multiple of 2 gives equal parts");
    check(train_net(NULL, "micro", TWO "run.batch_size=12 run.micro_batches=4"), 0,
          "their parts are 8 (cpu) and 4 (cpu); a multiple of 8 gives equal parts");
    r = train_net(NULL, "equal", TWO "run.batch_size=8"); /* no warning: the parts are equal */
    assert_null(strstr(r.err, "equally"));
    check(r, 0);
    r = train_net(NULL, "meant", /* nor here: the config sets the shares */
                  "'devices=[{\"name\":\"cpu\",\"share\":2},{\"name\":\"cpu\",\"share\":1}]'");
    assert_null(strstr(r.err, "equally"));
    check(r, 0);
}

/* The line of a run's first evaluation. Free it with free. */
static char *first_evaluation(const char *name)
{
    FILE *f = fopen(in("%s/metrics.jsonl", name), "r");
    char *line = NULL;
    size_t capacity = 0;

    assert_non_null(f);
    do
        assert_true(getline(&line, &capacity, f) > 0);
    while (!strstr(line, "\"kind\": \"eval\""));
    fclose(f);
    return line;
}

/* Evaluations use the last device's moving averages, and a resumed run continues them. */
static void moving_averages_of_the_last(void **state)
{
    static const char options[] = TWO "run.batch_norm_update=last eval.every_steps=2 ";
    char more[256];

    (void)state;
    snprintf(more, sizeof more, "%srun.steps=6", options);
    check(train_net(NULL, "last", more), 0);
    snprintf(more, sizeof more, "%srun.steps=4", options);
    check(train_net(NULL, "resumed", more), 0);
    snprintf(more, sizeof more, "%srun.steps=6", options);
    check(train_net(NULL, "resumed", more), 0, "resuming");
    same_bytes(in("last/checkpoints/step-000006.safetensors"),
               in("resumed/checkpoints/step-000006.safetensors"));
    same_metrics(in("last"), in("resumed"));
    check(train_net(NULL, "first", TWO "run.steps=6 eval.every_steps=2"), 0);
    /* the gradients do not depend on the moving averages */
    same_losses("last", "first", 1, 6, 0);
    char *a = first_evaluation("last"), *b = first_evaluation("first");

    assert_string_not_equal(a, b); /* but the evaluations do */
    free(a);
    free(b);
}

/* Without a learning rate nothing is learnt: one warning after 100 steps, none after a resume. */
static void learns_nothing(void **state)
{
    struct result r;

    (void)state;
    check(
        train_net(NULL, "stuck", "schedule.base_lr=0 run.steps=110"), 0,
        "warning: train: step 100: ", "the net has learned nothing so far; lower schedule.base_lr");
    r = train_net(NULL, "stuck", "schedule.base_lr=0 run.steps=1500");
    assert_null(strstr(r.err, "learned nothing"));
    check(r, 0);
    r = train_net(NULL, "learns", "run.steps=1100");
    assert_null(strstr(r.err, "learned nothing"));
    assert_null(strstr(r.err, "diverges"));
    check(r, 0);
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_of_losses),
        cmocka_unit_test(unequal_parts),
        cmocka_unit_test(moving_averages_of_the_last),
        cmocka_unit_test(learns_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
