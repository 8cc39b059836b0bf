/* Training that is killed between any two of its writes and started again ends like an
 * uninterrupted run: each evaluation stands once in metrics.jsonl, and the best checkpoint and
 * the kept checkpoints are the same. A finished run that is started again makes missing
 * evaluations and repeats none. */
#include "e2e/same_run.h"
#include "faults/faults.h"

/* Checkpoints at steps 2, 3 and 4; evaluations at 3 (with a checkpoint only for the best) and at
 * the end. */
#define BEST                                                                                       \
    "run.steps=4 run.save_every_steps=2 run.keep=2 run.log_every_steps=1 eval.every_steps=3 "      \
    "run.keep_best=loss"
/* Checkpoints at steps 2, 4 and 5; evaluations at 2 and 4, where a checkpoint is due, too, and
 * at 5. */
#define PLAIN                                                                                      \
    "run.steps=5 run.save_every_steps=2 run.log_every_steps=1 eval.every_steps=2 "                 \
    "run.keep_best=none"
/* Checkpoints at steps 3 and 4; evaluations at 2, where no checkpoint is due, and at 4. */
#define APART                                                                                      \
    "run.steps=4 run.save_every_steps=3 run.log_every_steps=1 eval.every_steps=2 "                 \
    "run.keep_best=none"
/* Ends at step 6, because no later value is better by 1000 than that of step 2. Checkpoints at each
 * evaluation, at step 4 also by save_every_steps. */
#define STOPS                                                                                      \
    "run.steps=20 run.save_every_steps=4 run.log_every_steps=1 eval.every_steps=2 "                \
    "run.early_stop.metric=loss run.early_stop.patience=2 run.early_stop.min_delta=1000"

/* Number of evaluations in metrics.jsonl. */
static int eval_lines(const char *name)
{
    char *text = get_text(in("%s/metrics.jsonl", name));
    const int n = count_text(text, "\"kind\": \"eval\"");

    pm_free(text);
    return n;
}

/* Number of lines of a file. */
static int lines_of(const char *path)
{
    char *text = get_text(path);
    const int n = count_text(text, "\n");

    pm_free(text);
    return n;
}

/* Kills a run after each call that `which` selects, starts it again and compares it with the run
 * `whole`. */
static void killed_after_each(const char *whole, const char *which, const char *options)
{
    int kills = 0;

    unlink(in("calls"));
    pm_remove_tree(in("torn"));
    check(train_net(&(struct how[]){ with_faults("%s PM_FAULT_LOG=%s", which, in("calls")) }[0],
                    "torn", options),
          0);
    same_run(in("%s", whole), in("torn"));
    const int calls = lines_of(in("calls"));
    assert_true(calls > 2);
    for (int n = 1; n <= calls; n++) {
        struct how how = with_faults("%s PM_FAULT_AT=%d PM_FAULT_DO=kill_after", which, n);

        pm_remove_tree(in("torn"));
        struct result r = train_net(&how, "torn", options);
        kills += r.code == -SIGKILL;
        if (r.code != 0)
            assert_int_equal(r.code, -SIGKILL);
        if (r.code)
            print_message("%s", strstr(r.err, "fault: "));
        drop(&r);
        check(train_net(NULL, "torn", options), 0);
        same_run(in("%s", whole), in("torn"));
        assert_int_equal(temporaries(in("torn")), 0);
    }
    assert_true(kills >= calls - 2);
}

static void killed_between_two_writes(void **state)
{
    (void)state;
    check(train_net(NULL, "best", BEST), 0);
    assert_int_equal(eval_lines("best"), 2);
    killed_after_each("best", "PM_FAULT_CALLS=rename,link,unlink PM_FAULT_PATH=/torn/checkpoints/",
                      BEST);
    killed_after_each("best", "PM_FAULT_CALLS=rename,pwrite PM_FAULT_PATH=/torn/eval", BEST);
    killed_after_each("best", "PM_FAULT_CALLS=write PM_FAULT_PATH=/torn/metrics.jsonl", BEST);
    killed_after_each("best", "PM_FAULT_CALLS=rename PM_FAULT_PATH=/torn/latest", BEST);
}

/* The same without a best checkpoint. */
static void killed_beside_a_checkpoint(void **state)
{
    (void)state;
    check(train_net(NULL, "plain", PLAIN), 0);
    assert_int_equal(eval_lines("plain"), 3);
    killed_after_each("plain", "PM_FAULT_CALLS=write PM_FAULT_PATH=/torn/metrics.jsonl", PLAIN);
    killed_after_each("plain", "PM_FAULT_CALLS=rename PM_FAULT_PATH=/torn/latest", PLAIN);
}

/* The number of evaluations without a better value is part of the saved state. */
static void killed_before_an_early_end(void **state)
{
    (void)state;
    check(train_net(NULL, "stops", STOPS), 0, "training ends at step 6");
    assert_int_equal(eval_lines("stops"), 3);
    killed_after_each("stops", "PM_FAULT_CALLS=rename,link,unlink PM_FAULT_PATH=/torn/checkpoints/",
                      STOPS);
    killed_after_each("stops", "PM_FAULT_CALLS=write PM_FAULT_PATH=/torn/metrics.jsonl", STOPS);
    check(train_net(NULL, "stops_alone", STOPS " run.keep_best=none"), 0, "ends at step 6");
    killed_after_each("stops_alone", "PM_FAULT_CALLS=write PM_FAULT_PATH=/torn/metrics.jsonl",
                      STOPS " run.keep_best=none");
}

static void killed_at_a_step_without_a_checkpoint(void **state)
{
    (void)state;
    check(train_net(NULL, "apart", APART), 0);
    assert_int_equal(eval_lines("apart"), 2);
    killed_after_each("apart", "PM_FAULT_CALLS=write PM_FAULT_PATH=/torn/metrics.jsonl", APART);
}

/* The running metrics of segmentation are part of the saved state. */
static void a_segmentation_counts_on(void **state)
{
    static const char pixels[] =
        "run.steps=4 run.save_every_steps=2 run.log_every_steps=1 task=segmentation "
        "'model.layers=[{\"name\":\"conv\",\"layer\":\"conv2d\",\"filters\":5}]' "
        "data.folder=%s model.num_classes=5 input.preprocessing=deeplab optim.weight_decay=0";
    char options[1024];

    (void)state;
    snprintf(options, sizeof options, pixels, in("data"));
    check(train_net(NULL, "pixels", options), 0);
    char *text = get_text(in("pixels/metrics.jsonl"));
    assert_non_null(strstr(text, "\"miou\""));
    pm_free(text);
    killed_after_each("pixels", "PM_FAULT_CALLS=write PM_FAULT_PATH=/torn/metrics.jsonl", options);
}

static void an_ended_run_evaluates_what_it_lacks(void **state)
{
    struct result r;

    (void)state;
    check(train_net(NULL, "ended", PLAIN), 0);
    r = train_net(NULL, "ended", PLAIN);
    assert_int_equal(r.code, 0);
    assert_null(strstr(r.err, "20 pictures")); /* no evaluation is repeated */
    drop(&r);
    assert_int_equal(eval_lines("ended"), 3);
    check(train_net(NULL, "late", "run.steps=5"), 0); /* the config asks for no evaluation */
    assert_int_equal(eval_lines("late"), 0);
    check(train_net(NULL, "late", "run.steps=5 eval.every_steps=3"), 0, "step 5, 20 pictures");
    assert_int_equal(eval_lines("late"), 1);
}

/* An evaluation counts as made only after its best checkpoint was decided. */
static void best_that_cannot_be_written(void **state)
{
    const struct how full = with_faults("PM_FAULT_CALLS=write PM_FAULT_DO=ENOSPC PM_FAULT_AT=1 "
                                        "PM_FAULT_PATH=unjudged/checkpoints/best.json");

    (void)state;
    check(train_net(NULL, "judged", BEST), 0);
    check(train_net(&full, "unjudged", BEST), 1, "best.json", "No space left");
    assert_int_equal(eval_lines("unjudged"), 0);
    check(train_net(NULL, "unjudged", BEST), 0);
    same_run(in("judged"), in("unjudged"));
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_between_two_writes),
        cmocka_unit_test(killed_beside_a_checkpoint),
        cmocka_unit_test(killed_before_an_early_end),
        cmocka_unit_test(killed_at_a_step_without_a_checkpoint),
        cmocka_unit_test(a_segmentation_counts_on),
        cmocka_unit_test(an_ended_run_evaluates_what_it_lacks),
        cmocka_unit_test(best_that_cannot_be_written),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
