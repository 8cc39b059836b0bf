/* Writes the option tables as a JSON Schema, for editors. markdown.c prints them for people. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <string.h>

/* ---- JSON Schema ----------------------------------------------------------------------- */

/* Adds the options of a row or a task to a section's properties. If two rows use one key with
 * different meanings, the schema allows either, because the row is known only when the file is
 * read. */
static void add_table(cJSON *properties, const struct pm_opt *opts)
{
    cJSON *own = cJSON_CreateObject();

    if (opts)
        pm_opts_schema(opts, own);
    while (own->child) {
        cJSON *v = cJSON_DetachItemViaPointer(own, own->child);
        cJSON *old = cJSON_GetObjectItemCaseSensitive(properties, v->string);
        cJSON *list = cJSON_GetObjectItemCaseSensitive(old, "anyOf");
        if (!old) {
            cJSON_AddItemToObject(properties, v->string, v);
        } else if (cJSON_Compare(old, v, true)) {
            cJSON_Delete(v);
        } else if (list) {
            cJSON_AddItemToArray(list, v);
        } else {
            char *key = pm_strdup(v->string);
            cJSON *either = cJSON_CreateObject();
            list = cJSON_AddArrayToObject(either, "anyOf");
            cJSON_AddItemToArray(list, cJSON_DetachItemViaPointer(properties, old));
            cJSON_AddItemToArray(list, v);
            cJSON_AddItemToObject(properties, key, either);
            pm_free(key);
        }
    }
    cJSON_Delete(own);
}

/* Limits the key that chooses a row to the rows' names. If rows have other names, too, the names
 * are only examples. */
static void limit_names(cJSON *property, const struct pm_open_rows *rows)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < rows->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(rows->rows[i].name));
    cJSON_AddItemToArray(list, cJSON_CreateNull());
    cJSON_AddItemToObject(property, rows->known_as ? "examples" : "enum", list);
    if (!rows->known_as)
        cJSON_DeleteItemFromObjectCaseSensitive(property, "type");
}

/* Describes the entries of input.augment: a name, and the options of any augmentation. */
static void add_augment(cJSON *augment, const struct pm_open_rows *rows)
{
    cJSON *types = cJSON_AddArrayToObject(augment, "type"), *items, *properties, *name, *required;

    cJSON_AddItemToArray(types, cJSON_CreateString("array"));
    cJSON_AddItemToArray(types, cJSON_CreateString("null"));
    items = cJSON_AddObjectToObject(augment, "items");
    cJSON_AddStringToObject(items, "type", "object");
    properties = cJSON_AddObjectToObject(items, "properties");
    name = cJSON_AddArrayToObject(cJSON_AddObjectToObject(properties, "name"), "enum");
    for (size_t i = 0; i < rows->count; i++) {
        cJSON_AddItemToArray(name, cJSON_CreateString(rows->rows[i].name));
        add_table(properties, rows->rows[i].opts);
    }
    required = cJSON_AddArrayToObject(items, "required");
    cJSON_AddItemToArray(required, cJSON_CreateString("name"));
    cJSON_AddBoolToObject(items, "additionalProperties", false);
}

static void add_side(cJSON *v)
{
    cJSON_AddStringToObject(v, "type", "integer");
    cJSON_AddNumberToObject(v, "minimum", 1);
    cJSON_AddNumberToObject(v, "maximum", 16384);
}

/* Describes the entries of input.buckets: a side, or [height, width]. */
static void add_buckets(cJSON *buckets)
{
    cJSON *types = cJSON_AddArrayToObject(buckets, "type"), *any, *side, *size;

    cJSON_AddItemToArray(types, cJSON_CreateString("array"));
    cJSON_AddItemToArray(types, cJSON_CreateString("null"));
    any = cJSON_AddArrayToObject(cJSON_AddObjectToObject(buckets, "items"), "anyOf");
    cJSON_AddItemToArray(any, side = cJSON_CreateObject());
    add_side(side);
    cJSON_AddItemToArray(any, size = cJSON_CreateObject());
    cJSON_AddStringToObject(size, "type", "array");
    add_side(cJSON_AddObjectToObject(size, "items"));
    cJSON_AddNumberToObject(size, "minItems", 2);
    cJSON_AddNumberToObject(size, "maxItems", 2);
}

static cJSON *section_schema(const struct pm_config_section *s, const struct pm_open_sections *open)
{
    const struct pm_open_rows *rows = pm_config_rows(s, open);
    cJSON *v = cJSON_CreateObject();

    cJSON_AddStringToObject(v, "description", s->help);
    cJSON_AddStringToObject(v, "type", "object");
    cJSON *properties = cJSON_AddObjectToObject(v, "properties");
    pm_opts_schema(s->opts, properties);
    for (size_t i = 0; i < open->task_count; i++)
        add_table(properties, pm_config_task_opts(open->tasks[i], s->name));
    for (size_t i = 0; rows && i < rows->count; i++)
        add_table(properties, rows->rows[i].opts);
    if (rows && rows->count)
        limit_names(cJSON_GetObjectItemCaseSensitive(properties, s->row_key), rows);
    if (strcmp(s->name, "input") == 0 && open->augmentations.count)
        add_augment(cJSON_GetObjectItemCaseSensitive(properties, "augment"), &open->augmentations);
    if (strcmp(s->name, "input") == 0 && cJSON_HasObjectItem(properties, "buckets"))
        add_buckets(cJSON_GetObjectItemCaseSensitive(properties, "buckets"));
    if (strcmp(s->name, "run") == 0)
        pm_config_schema_early_stop(cJSON_GetObjectItemCaseSensitive(properties, "early_stop"));
    cJSON_AddBoolToObject(v, "additionalProperties", !rows ? false : rows->count == 0);
    return v;
}

static cJSON *described(cJSON *parent, const char *key, const char *help)
{
    cJSON *v = cJSON_AddObjectToObject(parent, key);

    cJSON_AddStringToObject(v, "description", help);
    return v;
}

struct cJSON *pm_config_schema(const struct pm_open_sections *open)
{
    cJSON *out = cJSON_CreateObject();

    cJSON_AddStringToObject(out, "$schema", "https://json-schema.org/draft/2020-12/schema");
    cJSON_AddStringToObject(out, "title", "Pumice config");
    cJSON_AddStringToObject(out, "type", "object");
    cJSON *properties = cJSON_AddObjectToObject(out, "properties");
    cJSON_AddStringToObject(described(properties, "$schema", "this schema, for editors"), "type",
                            "string");
    cJSON_AddStringToObject(described(properties, "description", "a note for people"), "type",
                            "string");
    cJSON *base = described(properties, "base",
                            "config files to merge before this one; paths are relative to it");
    cJSON *types = cJSON_AddArrayToObject(base, "type");
    cJSON_AddItemToArray(types, cJSON_CreateString("array"));
    cJSON_AddItemToArray(types, cJSON_CreateString("string"));
    cJSON *task = described(properties, "task", "what the net is trained for");
    cJSON *list = cJSON_AddArrayToObject(task, "enum");
    for (size_t k = 0; k < open->task_count; k++)
        cJSON_AddItemToArray(list, cJSON_CreateString(open->tasks[k]->name));
    pm_config_schema_devices(properties);
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        cJSON_AddItemToObject(properties, s->name, section_schema(s, open));
    cJSON_AddBoolToObject(out, "additionalProperties", false);
    return out;
}
