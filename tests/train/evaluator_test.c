/* Evaluation of a task without details and without samples; both are optional in a task's row. */
#include "base/unit.h"
#include "train/evaluator.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>

enum { PICTURES = 6 };

static struct pm_device *cpu(void)
{
    struct pm_device_info *list = NULL;
    struct pm_device *d = NULL;
    size_t count, index;

    if (pm_device_list(&list, &count) < 0 ||
        pm_device_find(list, count, "cpu", "test", &index) < 0 ||
        pm_device_open(&list[index], NULL, &d) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(list);
    return d;
}

/* Runs one pass with this row in place of the experiment's. */
static void evaluate(struct pm_experiment *e, const struct pm_task_row *row, struct cJSON *metrics,
                     struct cJSON *detail)
{
    struct pm_device *d = cpu();
    struct pm_variables *v = NULL;
    struct pm_evaluator *ev = NULL;
    struct pm_net *net = NULL;
    uint64_t count = 0, skipped;

    e->task_row = row;
    if (pm_experiment_net(e, (struct pm_net_want){ PM_USE_EVAL, PICTURES, 0, 0 }, &net, NULL) < 0 ||
        pm_variables_create(d, net, false, NULL, &v) < 0 || pm_variables_allocate(v) < 0 ||
        pm_variables_init(v, 1, NULL) < 0 || pm_evaluator_create(e, d, v, &ev) < 0 ||
        pm_evaluator_run(ev, metrics, detail, &count, &skipped) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(count, PICTURES);
    pm_evaluator_destroy(&ev);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    pm_device_close(&d);
}

static void without_details(void **state)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_open_sections open = pm_train_choices(a);
    char folder[] = "/tmp/pumice-evaluator-XXXXXX";
    struct cJSON *metrics = cJSON_CreateObject(), *detail = cJSON_CreateObject();
    struct pm_experiment *e = NULL;
    struct pm_config *c = NULL;

    (void)state;
    assert_non_null(mkdtemp(folder));
    const char *data = pm_arena_printf(a, "%s/shapes", folder);
    const char *text = pm_arena_printf(
        a,
        "{\"model\": {\"name\": \"lenet\"}, \"data\": {\"folder\": \"%s\"},"
        " \"input\": {\"size\": 28, \"channels\": 3}, \"eval\": {\"batch_size\": %d}}",
        data, PICTURES);
    if (pm_shapes_make(data, 32, PICTURES, PICTURES, PICTURES, 1) < 0 ||
        pm_config_parse("t.json", text, NULL, 0, &open, &c) < 0 ||
        pm_experiment_open(c, PM_OPEN_EVAL, &e) < 0)
        fail_msg("%s", pm_error_text());
    const struct pm_task_row *whole = e->task_row;
    struct pm_task_row bare = *whole;
    bare.score_detail = NULL;
    bare.score_samples = NULL;
    bare.score_sample = NULL;
    evaluate(e, &bare, metrics, detail);
    assert_non_null(cJSON_GetObjectItem(metrics, "accuracy"));
    assert_int_equal(cJSON_GetArraySize(detail), 1);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(detail, "samples")), 0);
    evaluate(e, whole, metrics, detail);
    assert_true(cJSON_GetArraySize(detail) > 1);
    pm_experiment_close(&e);
    pm_config_destroy(&c);
    cJSON_Delete(metrics);
    cJSON_Delete(detail);
    assert_int_equal(pm_remove_tree(folder), PM_OK);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(without_details) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
