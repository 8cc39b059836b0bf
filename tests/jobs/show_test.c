/* show: the memory plan of a config, with and without a list for JSON; the parameters of both
 * stages of a detector. */
#include "base/unit.h"

#include <cjson/cJSON.h>
#include <pumice/train.h>
#include <stdlib.h>
#include <string.h>

static int live; /* allocations of cJSON that are not freed */

static void *counted(size_t size)
{
    live++;
    return malloc(size);
}

static void uncounted(void *p)
{
    live -= p != NULL;
    free(p);
}

static void plan_without_a_list(void **state)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_open_sections open = pm_train_choices(a);
    const char *cpu = "devices=cpu";
    struct pm_config *c = NULL;
    cJSON *list;
    int before;

    (void)state;
    if (pm_config_parse("t.json", "{\"model\": {\"name\": \"lenet\", \"num_classes\": 10}, "
                                  "\"run\": {\"recompute\": \"off\"}}", &cpu, 1, &open, &c) < 0)
        fail_msg("%s", pm_error_text());
    cJSON_InitHooks(&(cJSON_Hooks){ counted, uncounted });
    list = cJSON_CreateArray();
    assert_int_equal(pm_show_plan(c, NULL, false, list), PM_OK);
    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_non_null(cJSON_GetObjectItem(cJSON_GetObjectItem(list->child, "recompute"), "most"));
    cJSON_Delete(list);
    before = live;
    assert_int_equal(pm_show_plan(c, NULL, false, NULL), PM_OK);
    assert_int_equal(live, before);
    cJSON_InitHooks(NULL);
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
}

/* The layers are those of the first stage, the parameters those of both: faster_rcnn_test.c has the
 * original's number. */
static void parameters_of_both_stages(void **state)
{
    static const char text[] =
        "{\"task\": \"detection\", \"model\": {\"name\": \"faster_rcnn_resnet50\", "
        "\"num_classes\": 90}, \"input\": {\"size\": [129, 161]}}";
    struct pm_arena *a = pm_arena_create();
    const struct pm_open_sections open = pm_train_choices(a);
    struct pm_config *c = NULL;
    cJSON *layers = NULL;
    const cJSON *layer;
    int64_t parameters = 0;

    (void)state;
    if (pm_config_parse("t.json", text, NULL, 0, &open, &c) < 0 ||
        pm_show_layers(c, &layers, &parameters) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(parameters, 29188171);
    assert_true(cJSON_GetArraySize(layers) > 0);
    cJSON_ArrayForEach(layer, layers)
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(layer, "name"));

        assert_int_not_equal(strncmp(name, "SecondStage", 11), 0);
    }
    cJSON_Delete(layers);
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(plan_without_a_list),
                                        cmocka_unit_test(parameters_of_both_stages) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
