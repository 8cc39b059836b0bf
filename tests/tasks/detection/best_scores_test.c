/* eval.score_threshold "best": which evaluation of a run folder decides. */
#include "base/unit.h"
#include "tasks/detection/detection.h"

static void put(const char *folder, const char *name, const char *text)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/%s", folder, name);
    assert_int_equal(pm_file_write(path.text, text, strlen(text)), PM_OK);
    pm_str_free(&path);
}

/* The latest one counts, in training or by pumice eval. A class without a best score has that of
 * all classes. Evaluations with other classes, and damaged files, do not count. */
static void latest_evaluation(void **state)
{
    char *run = make_folder();
    struct pm_str folder = { 0 };
    double scores[2] = { 7, 7 };

    (void)state;
    assert_false(pm_detection_best_scores("/none", 2, scores));
    assert_false(pm_detection_best_scores(run, 2, scores));
    put(run, "evaluation.json",
        "{\"written\": \"2026-01-02 00:00:00 UTC\", \"metrics\": {\"best_score\": 0.125}, "
        "\"per_class\": {\"best_score\": [0.25, null]}}");
    assert_true(pm_detection_best_scores(run, 2, scores));
    assert_true(scores[0] == 0.25 && scores[1] == 0.125);
    assert_false(pm_detection_best_scores(run, 3, scores));

    pm_str_add(&folder, "%s/eval_test", run);
    assert_int_equal(pm_make_folders(folder.text), PM_OK);
    put(folder.text, "evaluation-1.json", "{");
    put(folder.text, "evaluation-2.json", "{\"written\": \"2027\", \"per_class\": 3}");
    put(folder.text, "evaluation-3.json",
        "{\"written\": \"2026-01-01\", \"per_class\": {\"best_score\": [0.75, 0.75]}}");
    assert_true(pm_detection_best_scores(run, 2, scores));
    assert_true(scores[0] == 0.25);
    put(folder.text, "evaluation-4.json",
        "{\"written\": \"2026-01-03\", \"per_class\": {\"best_score\": [null, 0.375]}}");
    assert_true(pm_detection_best_scores(run, 2, scores));
    assert_true(scores[0] == 0.5 && scores[1] == 0.375);
    pm_str_free(&folder);
    drop_folder(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(latest_evaluation) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
