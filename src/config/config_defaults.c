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

/* Whether a key of a section has this text, in the config or as the key's own default. */
static bool is_text(const cJSON *tree, const char *key, const char *text)
{
    const struct pm_config_section *s = pm_config_section_find(key, strcspn(key, "."));
    const cJSON *v = given(tree, key);
    cJSON *own = v ? NULL : pm_opt_default(&s->opts[pm_opts_find(s->opts, strchr(key, '.') + 1)]);
    const char *is = cJSON_GetStringValue(v ? v : own);
    const bool same = is && strcmp(is, text) == 0;

    cJSON_Delete(own);
    return same;
}

static bool applies(const cJSON *tree, const struct pm_task_default *d)
{
    return !given(tree, d->key) && (!d->when || is_text(tree, d->when, d->is));
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
