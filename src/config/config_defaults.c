/* config_defaults: a task's own defaults. They become values of the tree, so every reader of the
 * config, and its printed form, has them. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <string.h>

/* Returns the value of "section.key"; NULL: the config does not give it. */
static const cJSON *given(const cJSON *tree, const char *key)
{
    const struct pm_config_section *s = pm_config_section_find(key, strcspn(key, "."));
    const cJSON *object = s ? cJSON_GetObjectItemCaseSensitive(tree, s->name) : NULL;
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key + strcspn(key, ".") + 1);

    return cJSON_IsNull(v) ? NULL : v;
}

static bool applies(const cJSON *tree, const struct pm_task_default *d)
{
    const cJSON *v = d->when ? given(tree, d->when) : NULL;

    if (given(tree, d->key))
        return false;
    return !d->when || (cJSON_IsString(v) && strcmp(v->valuestring, d->is) == 0);
}

/* Returns the section's object, which is created if the config does not have it; NULL: the config
 * has a value that is not an object. */
static cJSON *section_of(cJSON *tree, const char *key)
{
    const struct pm_config_section *s = pm_config_section_find(key, strcspn(key, "."));
    cJSON *object = cJSON_GetObjectItemCaseSensitive(tree, s->name);

    if (cJSON_IsNull(object)) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, s->name);
        object = NULL;
    }
    object = object ? object : cJSON_AddObjectToObject(tree, s->name);
    return cJSON_IsObject(object) ? object : NULL;
}

void pm_config_apply_defaults(struct pm_config *c)
{
    const struct pm_open_task *task = c->task_row;

    for (const struct pm_task_default *d = task ? task->defaults : NULL; d && d->key; d++) {
        const char *name = d->key + strcspn(d->key, ".") + 1;
        cJSON *section = applies(c->tree, d) ? section_of(c->tree, d->key) : NULL;

        if (!section)
            continue;
        cJSON_DeleteItemFromObjectCaseSensitive(section, name); /* null, if anything */
        cJSON_AddItemToObject(section, name, cJSON_Parse(d->value));
        pm_config_origin_default(c->origins, d->key,
                                 pm_arena_printf(c->arena, "default of %s", task->name));
    }
}

bool pm_config_is_default(const struct pm_config *c, const char *path)
{
    static const char word[] = "default";
    const char *origin = pm_config_origin(c, path);
    const size_t n = sizeof word - 1;

    return strncmp(origin, word, n) == 0 && (!origin[n] || strncmp(origin + n, " of ", 4) == 0);
}
