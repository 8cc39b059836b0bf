/* The files that training and evaluation write for report.html, and the command that writes it. */
#include "e2e/program.h"

#include <pumice/report.h>

static struct result train(const struct how *how, const char *name, const char *more)
{
    return run(how, "train %s run.folder=%s run.steps=6 eval.every_steps=3 %s", in("net.json"),
               in("%s", name), more);
}

static cJSON *read_json(const char *path)
{
    char *text = get_text(path);
    cJSON *json = cJSON_Parse(text);

    if (!cJSON_IsObject(json))
        fail_msg("%s: no JSON object", path);
    pm_free(text);
    return json;
}

static const char *string_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

    if (!text)
        fail_msg("no text %s", key);
    return text;
}

static double sum_of(const cJSON *list)
{
    const cJSON *v;
    double sum = 0;

    cJSON_ArrayForEach(v, list)
        sum += v->valuedouble;
    return sum;
}

/* The path below FOLDER of the only file of pumice eval for this split and checkpoint. */
static const char *file_of(const char *name, const char *split, const char *checkpoint)
{
    struct pm_arena *a = pm_arena_create();
    const char **paths, *found = NULL;
    const size_t count = pm_report_evaluations(a, in("%s", name), &paths);
    char start[256];

    snprintf(start, sizeof start, "eval_%s/evaluation-%s-", split, checkpoint);
    for (size_t i = 0; i < count; i++)
        if (strncmp(paths[i], start, strlen(start)) == 0) {
            assert_null(found);
            found = in("%s/%s", name, paths[i]);
        }
    pm_arena_destroy(&a);
    if (!found)
        fail_msg("%s: no evaluation %s...", name, start);
    return found;
}

static size_t files_of(const char *name)
{
    struct pm_arena *a = pm_arena_create();
    const char **paths;
    const size_t count = pm_report_evaluations(a, in("%s", name), &paths);

    pm_arena_destroy(&a);
    return count;
}

static void check_evaluation(const char *path, int step)
{
    cJSON *e = read_json(path);
    const cJSON *classes = cJSON_GetObjectItem(e, "per_class");
    const cJSON *confusion = cJSON_GetObjectItem(e, "confusion"), *sample;
    const double right = sum_of(cJSON_GetObjectItem(classes, "right"));
    double all = 0, own = 0;
    bool was_wrong = true;

    assert_true(number_of(e, "step") == step && number_of(e, "count") == 20);
    assert_true(sum_of(cJSON_GetObjectItem(classes, "count")) == 20);
    assert_true(fabs(number_of(cJSON_GetObjectItem(e, "metrics"), "accuracy") - right / 20) < 1e-9);
    for (int i = 0; i + 2 < cJSON_GetArraySize(confusion); i += 3) {
        const double n = cJSON_GetArrayItem(confusion, i + 2)->valuedouble;
        all += n;
        own += cJSON_GetArrayItem(confusion, i)->valueint ==
                       cJSON_GetArrayItem(confusion, i + 1)->valueint
                   ? n
                   : 0;
    }
    assert_true(all == 20 && own == right);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(e, "labels")), 4);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(e, "samples")), 20);
    cJSON_ArrayForEach(sample, cJSON_GetObjectItem(e, "samples"))
    {
        const bool is_right = cJSON_IsTrue(cJSON_GetObjectItem(sample, "right"));

        assert_true(was_wrong || is_right); /* wrong predictions come first */
        was_wrong = !is_right;
        assert_true(is_right == (number_of(sample, "label") == number_of(sample, "predicted")));
        assert_true(pm_ends_with(string_of(sample, "file"), ".png"));
        assert_true(number_of(sample, "width") == 16 && number_of(sample, "probability") >= 0.25);
        assert_true(strncmp(string_of(sample, "picture"), "data:image/png;base64,iVBOR", 27) == 0);
    }
    cJSON_Delete(e);
}

static void training_leaves_a_page(void **state)
{
    (void)state;
    check(train(NULL, "one", "run.keep_best=recall_at_5"), 2,
          "'recall_at_5' is not a metric of this net's evaluation: it needs more than five classes "
          "(accuracy, loss)");
    check(train(NULL, "one", "run.keep_best=loss"), 0);
    cJSON *r = read_json(in("one/run.json"));
    const cJSON *origins = cJSON_GetObjectItem(r, "origins");
    assert_string_equal(string_of(r, "state"), "finished");
    assert_string_equal(string_of(r, "net"), "layer list");
    assert_string_equal(string_of(r, "best_metric"), "loss");
    assert_string_equal(string_of(origins, "run.steps"), "command line");
    assert_non_null(strstr(string_of(origins, "optim.name"), "net.json:"));
    assert_null(cJSON_GetObjectItem(origins, "run.seed"));
    assert_true(number_of(r, "step") == 6 && number_of(r, "train_examples") == 40);
    const cJSON *device = cJSON_GetArrayItem(cJSON_GetObjectItem(r, "devices"), 0);
    assert_string_equal(string_of(device, "address"), "cpu");
    assert_true(number_of(device, "examples") == 8 && number_of(device, "memory_used") > 0);
    cJSON_Delete(r);
    check_evaluation(in("one/evaluation.json"), 6);
    char *page = get_text(in("one/report.html"));
    assert_contains(page, "</html>");
    assert_contains(page, "finished");
    assert_contains(page, "id=\"loss\"");
    assert_contains(page, "Confusion matrix");
    pm_free(page);
}

/* The same evaluation with another batch size gives the same samples. The evaluation during
 * training is kept. */
static void evaluation_is_stored(void **state)
{
    (void)state;
    check(train(NULL, "two", "run.save_every_steps=3"), 0);
    cJSON *before = read_json(in("two/evaluation.json"));
    check(run(NULL, "eval %s run.folder=%s eval.checkpoint=3", in("net.json"), in("two")), 0);
    check_evaluation(file_of("two", "test", "step-000003"), 3);
    check(run(NULL, "eval %s run.folder=%s eval.batch_size=3", in("net.json"), in("two")), 0);
    check_evaluation(file_of("two", "test", "step-000006"), 6);
    check_evaluation(in("two/evaluation.json"), 6);
    cJSON *after = read_json(file_of("two", "test", "step-000006"));
    assert_true(cJSON_Compare(cJSON_GetObjectItem(before, "samples"),
                              cJSON_GetObjectItem(after, "samples"), true));
    assert_true(cJSON_Compare(cJSON_GetObjectItem(before, "confusion"),
                              cJSON_GetObjectItem(after, "confusion"), true));
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(before, "in_training")));
    assert_false(cJSON_IsTrue(cJSON_GetObjectItem(after, "in_training")));
    assert_string_equal(string_of(before, "checkpoint"), string_of(after, "checkpoint"));
    assert_string_equal(string_of(before, "data_path"), string_of(after, "data_path"));
    cJSON_Delete(before);
    cJSON_Delete(after);
    /* A checkpoint of another run adds nothing to this run. */
    assert_int_equal(files_of("two"), 2);
    check(
        run(NULL, "eval %s run.folder=%s eval.checkpoint=%s", in("net.json"), in("two"), in("one")),
        0);
    assert_int_equal(files_of("two"), 2);
    /* A checkpoint of this run does, for any path that names it: the same evaluation is written
     * again. */
    assert_int_equal(unlink(file_of("two", "test", "step-000003")), 0);
    check(run(NULL, "eval %s run.folder=%s eval.checkpoint=%s", in("net.json"), in("two"),
              in("one/../two/checkpoints/step-000003.safetensors")), 0);
    check_evaluation(file_of("two", "test", "step-000003"), 3);
}

/* Evaluations of other splits, folders and checkpoints have their own sections with their own
 * numbers. The best metric remains that of training's evaluations. */
static void evaluations_stay_apart(void **state)
{
    struct pm_str tile = { 0 };
    double accuracy;

    (void)state;
    check(run(NULL, "dataset make shapes %s size=16 train=8 validation=9 test=15 seed=5",
              in("other")),
          0);
    check(train(NULL, "eight", "run.keep_best=accuracy"), 0);
    cJSON *e = read_json(in("eight/evaluation.json"));
    accuracy = number_of(cJSON_GetObjectItem(e, "metrics"), "accuracy");
    cJSON_Delete(e);
    check(
        run(NULL, "eval %s run.folder=%s data.eval_split=validation", in("net.json"), in("eight")),
        0);
    check(run(NULL, "eval %s run.folder=%s eval.checkpoint=best", in("net.json"), in("eight")), 0);
    check(
        run(NULL, "eval %s run.folder=%s data.folder=%s", in("net.json"), in("eight"), in("other")),
        0);
    check(
        run(NULL, "eval %s run.folder=%s data.folder=%s", in("net.json"), in("eight"), in("other")),
        0);
    assert_int_equal(files_of("eight"), 3);
    char *page = get_text(in("eight/report.html"));
    assert_contains(page, ">test at step 6</h3>\n<p class=\"note\">20 pictures of ");
    assert_contains(page, ">validation at step 6</h3>\n<p class=\"note\">8 pictures of ");
    assert_contains(page, ", best checkpoint</h3>\n<p class=\"note\">20 pictures of ");
    assert_contains(page, ">test at step 6</h3>\n<p class=\"note\">15 pictures of ");
    assert_contains(page, "other, split test, checkpoints/step-000006.safetensors");
    assert_contains(page, "data, split test, evaluated while training");
    pm_str_add(&tile, "<dt>Best accuracy</dt><dd>%.4g", 100 * accuracy);
    assert_contains(page, tile.text);
    assert_contains(page, " on test");
    pm_free(page);
    pm_str_free(&tile);
    /* A new run in the folder starts without them. */
    check(run(NULL, "train %s run.folder=%s run.steps=1", in("net.json"), in("nine")), 0);
    check(run(NULL, "eval %s run.folder=%s", in("net.json"), in("nine")), 0);
    assert_int_equal(files_of("nine"), 1);
    assert_int_equal(pm_remove_tree(in("nine/checkpoints")), 0);
    check(run(NULL, "train %s run.folder=%s run.steps=1", in("net.json"), in("nine")), 0);
    assert_int_equal(files_of("nine"), 0);
}

/* A resumed run that evaluates another split keeps the result of the first one. */
static void another_split_when_resumed(void **state)
{
    (void)state;
    check(train(NULL, "ten", ""), 0);
    check(train(NULL, "ten", "run.steps=9 data.eval_split=validation"), 0);
    cJSON *now = read_json(in("ten/evaluation.json"));
    cJSON *before = read_json(file_of("ten", "test", "step-000006"));
    assert_string_equal(string_of(now, "split"), "validation");
    assert_string_equal(string_of(before, "split"), "test");
    assert_int_equal(files_of("ten"), 1);
    char *page = get_text(in("ten/report.html"));
    assert_contains(page, ">validation at step 9</h3>");
    assert_contains(page, ">test at step 6</h3>");
    assert_contains(page, "<h3>Metrics on validation</h3>");
    pm_free(page);
    cJSON_Delete(now);
    cJSON_Delete(before);
}

static void resuming_continues_it(void **state)
{
    (void)state;
    check(train(NULL, "three", ""), 0);
    cJSON *first = read_json(in("three/run.json"));
    check(train(NULL, "three", "run.steps=9"), 0);
    cJSON *second = read_json(in("three/run.json"));
    assert_string_equal(string_of(first, "started"), string_of(second, "started"));
    assert_true(number_of(second, "seconds") > number_of(first, "seconds"));
    assert_true(number_of(second, "step") == 9);
    cJSON_Delete(first);
    cJSON_Delete(second);
}

static void failures_are_reported_on_it(void **state)
{
    (void)state;
    check(train(NULL, "four", "schedule.base_lr=1000 optim.weight_decay=0.5 run.steps=300"), 1,
          "not finite");
    cJSON *r = read_json(in("four/run.json"));
    assert_string_equal(string_of(r, "state"), "failed");
    assert_non_null(strstr(string_of(r, "error"), "not finite"));
    cJSON_Delete(r);
    char *page = get_text(in("four/report.html"));
    assert_contains(page, "class=\"failure\"");
    pm_free(page);
}

/* When the page cannot be written, there is one warning and the run is complete. */
static void training_does_without_it(void **state)
{
    const char *at;
    int warnings = 0;

    (void)state;
    assert_int_equal(pm_make_folders(in("five/report.html/x")), 0);
    struct result r = train(NULL, "five", "");
    for (at = r.err; (at = strstr(at, "warning: report:")) != NULL; at++)
        warnings++;
    assert_int_equal(warnings, 1);
    check(r, 0);
    assert_true(pm_file_exists(in("five/checkpoints/step-000006.safetensors")));
    assert_int_equal(temporaries(in("five")), 0);
}

static void the_command(void **state)
{
    (void)state;
    assert_int_equal(unlink(in("one/report.html")), 0);
    check(run(NULL, "report %s", in("one")), 0);
    assert_true(pm_file_exists(in("one/report.html")));
    struct result r =
        run(NULL, "report %s %s --out %s --json", in("one"), in("two"), in("both.html"));
    cJSON *json = json_of(&r);
    assert_true(number_of(json, "runs") == 2);
    assert_string_equal(string_of(json, "report"), in("both.html"));
    cJSON_Delete(json);
    check(r, 0);
    char *page = get_text(in("both.html"));
    assert_contains(page, "2 runs");
    pm_free(page);
    check(run(NULL, "report"), 2, "needs a run folder");
    check(run(NULL, "report %s", in("nowhere")), 3, in("nowhere"), "no such folder");
    check(run(NULL, "report %s", in("data")), 3, in("data"), "this is not a run folder");
    check(run(NULL, "report %s run.steps=3", in("one")), 2, "run.steps=3");
    check(run(NULL, "report %s --out %s", in("one"), in("nowhere/x.html")), 1,
          in("nowhere/x.html"));
}

/* The console shows the loss of the data and, beside it, the part of weight decay. */
static void console_shows_both_losses(void **state)
{
    struct result r = run(NULL, "train %s run.folder=%s run.steps=2 optim.weight_decay=0.01 --json",
                          in("net.json"), in("six"));
    cJSON *summary = json_of(&r), *first;
    char *lines = get_text(in("six/metrics.jsonl"));
    const char *said = strstr(r.err, "loss ");
    double loss = 0, decay = 0;

    (void)state;
    assert_non_null(said);
    assert_int_equal(sscanf(said, "loss %lf (+ %lf weight decay)", &loss, &decay), 2);
    first = cJSON_ParseWithOpts(lines, NULL, false);
    assert_true(decay > 0);
    assert_float_equal(decay, number_of(first, "l2"), 1e-4);
    assert_float_equal(loss + decay, number_of(first, "loss"), 2e-4);
    assert_float_equal(loss, number_of(first, "main_loss"), 1e-4);
    assert_true(number_of(summary, "l2") > 0 &&
                number_of(summary, "loss") > number_of(summary, "l2"));
    cJSON_Delete(first);
    cJSON_Delete(summary);
    pm_free(lines);
    check(r, 0);
    r = train(NULL, "seven", "");
    assert_contains(r.err, "loss ");
    assert_null(strstr(r.err, "weight decay"));
    check(r, 0);
}

static int setup(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_leaves_a_page), cmocka_unit_test(evaluation_is_stored),
        cmocka_unit_test(evaluations_stay_apart),
        cmocka_unit_test(another_split_when_resumed),
        cmocka_unit_test(resuming_continues_it), cmocka_unit_test(failures_are_reported_on_it),
        cmocka_unit_test(training_does_without_it), cmocka_unit_test(the_command),
        cmocka_unit_test(console_shows_both_losses),
    };

    return cmocka_run_group_tests_name("report_run", tests, setup, drop_world);
}
