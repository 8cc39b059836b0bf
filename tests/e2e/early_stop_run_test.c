/* run.early_stop and the default of run.keep_best, tested with the program. */
#include "e2e/same_run.h"
#include "e2e/program.h"

/* No value is better by 1000 than the first one, so the run ends after `patience` more. */
#define STOPS "run.steps=20 eval.every_steps=2 run.early_stop.min_delta=1000 "

static char *member_of(const char *path, const char *key)
{
    char *text = get_text(path);
    cJSON *json = cJSON_Parse(text);
    const cJSON *v = cJSON_GetObjectItem(json, key);
    char *out = v ? cJSON_PrintUnformatted(v) : NULL;

    cJSON_Delete(json);
    pm_free(text);
    return out;
}

static void is_member(const char *path, const char *key, const char *value)
{
    char *text = member_of(path, key);

    assert_non_null(text);
    assert_string_equal(text, value);
    free(text);
}

/* The log and --json state the reason and the best checkpoint. A finished run stays finished. */
static void ends(void **state)
{
    struct result r;
    char *text, *again;
    (void)state;

    check(train_net(NULL, "a", STOPS "run.early_stop.patience=2 run.early_stop.metric=loss "
                               "run.keep_best=loss"), 0,
          "run.early_stop: no better loss than ", " (step 2) in 2 evaluations: training ends at "
          "step 6; the checkpoint with the best loss is ", "/a/checkpoints/best-0000");
    is_member(in("a/run.json"), "state", "\"finished\"");
    is_member(in("a/run.json"), "step", "6");
    text = get_text(in("a/metrics.jsonl"));
    r = run(NULL, "train %s run.folder=%s --json " STOPS "run.early_stop.patience=2 "
                  "run.early_stop.metric=loss run.keep_best=loss", in("net.json"), in("a"));
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\"early_stop\": \"no better loss than "));
    assert_non_null(strstr(r.err, "training ends at step 6"));
    drop(&r);
    again = get_text(in("a/metrics.jsonl"));
    assert_string_equal(text, again);
    pm_free(text);
    pm_free(again);
}

/* With more patience the run goes on as if it had not ended. */
static void goes_on(void **state)
{
    (void)state;
    check(train_net(NULL, "b", STOPS "run.early_stop.patience=1"), 0, "ends at step 4",
          "in 1 evaluation:");
    check(train_net(NULL, "b", STOPS "run.early_stop.patience=4"), 0, "ends at step 10");
    check(train_net(NULL, "whole", STOPS "run.early_stop.patience=4"), 0, "ends at step 10");
    same_run(in("whole"), in("b"));
    /* Another metric counts anew. */
    check(train_net(NULL, "b", STOPS "run.early_stop.metric=loss run.early_stop.patience=1"), 0,
          "in 1 evaluation: training ends at step 14");
}

/* A run that ends at run.steps says nothing. */
static void not_needed(void **state)
{
    struct result r = train_net(NULL, "c", "run.steps=4 eval.every_steps=2 "
                                           "run.early_stop.patience=1 "
                                           "run.early_stop.min_delta=1000");
    (void)state;
    assert_int_equal(r.code, 0);
    assert_null(strstr(r.err, "run.early_stop"));
    drop(&r);
    check(train_net(NULL, "d", STOPS "run.early_stop.patience=1 run.keep_best=none"), 0,
          "ends at step 4; run.keep_best is none, so no best checkpoint is kept");
    assert_false(pm_file_exists(in("d/checkpoints/best.json")));
}

/* Without run.keep_best the task's first metric selects the best checkpoint, which is there after
 * one evaluation. */
static void best_by_default(void **state)
{
    (void)state;
    check(train_net(NULL, "e", "run.steps=3 eval.every_steps=2"), 0, "best accuracy so far",
          "train: done: 3 steps in ", "; the best accuracy is ", ", at step ",
          "/e/report.html\n", "train: next: pumice eval ",
          "/e eval.checkpoint=best; pumice predict ",
          " PICTURES eval.checkpoint=best; pumice export ");
    /* A finished run says what comes next, but not that it did something. */
    struct result r = train_net(NULL, "e", "run.steps=3 eval.every_steps=2");
    assert_null(strstr(r.err, "train: done: "));
    assert_contains(r.err, "train: next: pumice eval ");
    check(r, 0);
    r = run(NULL, "-q train %s 'run.folder=%s/it'\\''s' run.steps=1", in("net.json"), in("."));
    assert_null(strstr(r.err, "train: "));
    check(r, 0);
    check(run(NULL, "train %s 'run.folder=%s/it'\\''s' run.steps=2", in("net.json"), in(".")), 0,
          "train: done: 1 step in ", "/it'\\''s'; pumice predict '");
    is_member(in("e/checkpoints/best.json"), "metric", "\"accuracy\"");
    check(run(NULL, "eval %s run.folder=%s eval.checkpoint=best", in("net.json"), in("e")), 0);
    check(train_net(NULL, "f", "run.steps=3"), 0);
    check(run(NULL, "eval %s run.folder=%s eval.checkpoint=best", in("net.json"), in("f")), 3,
          "has no best checkpoint: evaluations during training choose it; set eval.every_steps");
}

/* A run that continues another one with init.restore counts its own evaluations only, because only
 * their best checkpoint is in its folder. */
static void continues_another(void **state)
{
    (void)state;
    check(train_net(NULL, "h", STOPS "run.early_stop.patience=1"), 0, "ends at step 4");
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s init.restore=all " STOPS
                    "run.early_stop.patience=2", in("net.json"), in("i"), in("h")), 0,
          " (step 4) in 2 evaluations: training ends at step 8",
          "/i/checkpoints/best-000004.safetensors");
}

/* A run of so many epochs ends eval --watch, too, also if run.steps are more. */
static void watched(void **state)
{
    (void)state;
    for (int steps = 0; steps < 2; steps++) {
        struct result r = run(NULL, "eval %s run.folder=%s --watch run.steps=%s run.epochs=0.4",
                              in("net.json"), in("e"), steps ? "1000" : "null");
        assert_int_equal(r.code, 0);
        assert_non_null(strstr(r.out, "step 3"));
        drop(&r);
    }
}

static void refused(void **state)
{
    static const char *const bad[][2] = {
        { "run.early_stop=true", "run.early_stop: an object such as" },
        { "run.early_stop.patience=0", "command line: run.early_stop.patience: 0 is outside 1.." },
        { "run.early_stop.patients=3", "command line: run.early_stop.patients: unknown key" },
        { "run.early_stop.metric=miou", "'miou' is not a metric of classification" },
        { "run.early_stop.min_delta=-1", "run.early_stop.min_delta: -1 is outside 0.." },
        { "eval.every_steps=0 run.early_stop.patience=3",
          "run.early_stop: needs evaluations while training: set eval.every_steps" },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(bad); i++)
        check(run(NULL, "train %s run.folder=%s eval.every_steps=2 %s", in("net.json"), in("g"),
                  bad[i][0]), 2, bad[i][1]);
    assert_false(pm_is_folder(in("g")));
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),    cmocka_unit_test(goes_on), cmocka_unit_test(not_needed),
        cmocka_unit_test(best_by_default), cmocka_unit_test(continues_another),
        cmocka_unit_test(watched), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
