/* Shared by the tests of the conversion of pipeline configs: one conversion, and its values. */
#ifndef PIPELINE_COMMON_H
#define PIPELINE_COMMON_H

#include "base/unit.h"

#include <cjson/cJSON.h>

#include "jobs/pipeline/fields.h"

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

#endif
