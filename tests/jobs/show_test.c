/* show: the memory plan of a config, with and without a list for JSON. */
#include "base/unit.h"

#include <cjson/cJSON.h>
#include <pumice/train.h>
#include <stdlib.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(plan_without_a_list) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
