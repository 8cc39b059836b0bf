/* The reference of keys: reference.c and key_classes.def agree with the option tables, and so do
 * the schema and the Markdown pages of the keys. */
#include "config/config_changes.h"
#include "config_rows.h"

#include <cjson/cJSON.h>

/* reference.c and the tables name the same keys. */
static void named(const char *section, const struct pm_opt *o)
{
    for (; o->type; o++) {
        char path[128];
        snprintf(path, sizeof path, "%s.%s", section, o->key);
        const struct pm_reference *r = pm_reference_find(path);
        if (!r || pm_refused_find(path))
            fail_msg("%s: src/config/reference.c has no KEY line for it", path);
    }
}

/* True when the table of the section or of a task has the key. */
static bool in_a_table(const struct pm_config_section *s, const char *key)
{
    const struct pm_open_task *task;

    return pm_opts_find(s->opts, key) >= 0 ||
           pm_config_other_task(&rows, NULL, s->name, key, &task);
}

static void reference(void **state)
{
    (void)state;

    for (size_t i = 0; i < rows.task_count; i++)
        for (const struct pm_task_section *t = rows.tasks[i]->sections; t->section; t++)
            if (!strchr(t->section, '.')) /* keys of eval.panoptic share the entry of
                                           * eval.panoptic */
                named(t->section, t->opts);
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        named(s->name, s->opts);
    for (const struct pm_reference *r = pm_references; r->key; r++) {
        const char *dot = strchr(r->key, '.');
        const struct pm_config_section *s =
            dot ? pm_config_section_find(r->key, (size_t)(dot - r->key)) : NULL;
        const bool refused = pm_refused_find(r->key) != NULL;
        if (dot && !s)
            fail_msg("%s: is in no section", r->key);
        if (s && refused && in_a_table(s, dot + 1))
            fail_msg("%s: is refused and accepted", r->key);
        if (s && !refused && !in_a_table(s, dot + 1) && !s->row_kind)
            fail_msg("%s: is in no table", r->key);
        if (pm_reference_find(r->key) != r)
            fail_msg("%s: stands twice", r->key);
    }
    for (const struct pm_refused *l = pm_refused_keys; l->key; l++) {
        if (!pm_reference_find(l->key))
            fail_msg("%s: src/config/reference.c has no KEY line for it", l->key);
        if (pm_refused_find(l->key) != l)
            fail_msg("%s: stands twice in src/config/refused.def", l->key);
    }
}

/* Each key has a class. */
static void classified(const char *section, const struct pm_opt *o)
{
    for (; o->type; o++) {
        char path[128];
        snprintf(path, sizeof path, "%s.%s", section, o->key);
        if (pm_key_class(path) < 0)
            fail_msg("%s: src/config/key_classes.def has no row for it: may it change when a run "
                     "resumes?",
                     path);
    }
}

static void key_classes(void **state)
{
    static const char *const keys[] = {
#define PM_KEY(key, class) key,
#include "config/key_classes.def"
#undef PM_KEY
    };

    (void)state;
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        classified(s->name, s->opts);
    for (size_t i = 0; i < rows.task_count; i++)
        for (const struct pm_task_section *t = rows.tasks[i]->sections; t->section; t++)
            if (!strchr(t->section, '.')) /* the class of an object is that of its key */
                classified(t->section, t->opts);
    assert_int_equal(pm_key_class("run.nothing"), -1);
    assert_int_equal(pm_key_class("devices"), PM_KEY_FREE);
    assert_int_equal(pm_key_class("run.steps"), PM_KEY_WHOLE);
    assert_int_equal(pm_key_class("schedule.base_lr"), PM_KEY_RESULT);
    assert_int_equal(pm_key_class("optim.momentum"), PM_KEY_RESULT);
    assert_int_equal(pm_key_class("optim.name"), PM_KEY_RUN);
    for (size_t i = 0; i < PM_COUNT(keys); i++) {
        const char *dot = strchr(keys[i], '.');

        for (size_t k = 0; k < i; k++)
            if (strcmp(keys[k], keys[i]) == 0)
                fail_msg("%s: stands twice in key_classes.def", keys[i]);
        if (dot && dot[1] && !pm_reference_find(keys[i]))
            fail_msg("%s: is in key_classes.def and in no table", keys[i]);
    }
}

static void schema(void **state)
{
    cJSON *v = pm_config_schema(&rows);
    char *text = cJSON_PrintUnformatted(v);
    (void)state;

    assert_contains(
        text,
        "\"name\":{\"description\":\"name of the optimizer\",\"default\":\"rmsprop\",\"enum\":"
        "[\"momentum\",\"adam\",\"rmsprop\",null]}");
    assert_contains(text, "\"keep_prob\":{\"type\":[\"number\",\"null\"]");
    assert_contains(text, "\"additionalProperties\":false");
    free(text);
    cJSON_Delete(v);
    text = pm_config_keys_markdown(&rows);
    assert_contains(text,
                    "| `run.steps` | int | `null` | 0.. |  | last training step; 0 = no limit; "
                    "null = not set. Training needs run.steps or run.epochs |\n");
    assert_contains(text, "### optim of adam");
    assert_contains(text, "| `export.frames` | Nets for video are not available. Remove the key."
                          " |\n");
    pm_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference),
        cmocka_unit_test(key_classes),
        cmocka_unit_test(schema),
    };

    rows.tasks = pm_open_tasks(&rows.task_count);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
