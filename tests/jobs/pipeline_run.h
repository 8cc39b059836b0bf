/* pipeline_run: converts texts of pipeline configs into one config, and checks its keys and notes.
 * Tests have set_up and tear_down. */
#ifndef PIPELINE_RUN_H
#define PIPELINE_RUN_H

#include "base/unit.h"
#include "jobs/pipeline/fields.h"

#include <cjson/cJSON.h>

static struct pm_pipeline p;

static inline int set_up(void **state)
{
    (void)state;
    p = (struct pm_pipeline){ .arena = pm_arena_create(), .config = cJSON_CreateObject(),
                              .notes = cJSON_CreateArray() };
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    cJSON_Delete(p.config);
    cJSON_Delete(p.notes);
    pm_arena_destroy(&p.arena);
    return 0;
}

static inline void converted(const char *text)
{
    if (pm_pipeline_text(&p, "p.config", text) < 0)
        fail_msg("%s", pm_error_text());
}

static inline void has(const char *key, const char *json)
{
    cJSON *value = pm_pipeline_get(&p, key);
    char *text = value ? cJSON_PrintUnformatted(value) : NULL;

    if (!text || strcmp(text, json) != 0)
        fail_msg("%s: %s instead of %s", key, text ? text : "nothing", json);
    free(text);
}

/* Checks that the config has no such key. */
static inline void lacks(const char *key)
{
    if (pm_pipeline_get(&p, key))
        fail_msg("%s is there", key);
}

/* Converts a text, and checks its only note. differs: the run differs from the original's. */
static inline void noted(const char *text, unsigned line, const char *field, bool differs)
{
    cJSON *note;

    cJSON_Delete(p.notes);
    p.notes = cJSON_CreateArray();
    converted(text);
    note = cJSON_GetArrayItem(p.notes, 0);
    if (cJSON_GetArraySize(p.notes) != 1)
        fail_msg("%s: %d notes", text, cJSON_GetArraySize(p.notes));
    assert_string_equal(cJSON_GetObjectItem(note, "file")->valuestring, "p.config");
    assert_int_equal(cJSON_GetObjectItem(note, "line")->valueint, line);
    assert_string_equal(cJSON_GetObjectItem(note, "field")->valuestring, field);
    assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(note, "differs")), differs);
}

#endif
