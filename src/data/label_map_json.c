/* label_map_json: reads label maps in JSON: a list of objects with id and name. */
#include <cjson/cJSON.h>

#include "data/label_reading.h"

static int json_text(const struct pm_label_reading *r, const cJSON *o, const char *key,
                     unsigned place, const char **out)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    if (!v)
        return PM_OK;
    if (!cJSON_IsString(v))
        return pm_label_fail(r, place, "%s is not a text", key);
    *out = pm_arena_strdup(r->arena, v->valuestring);
    return PM_OK;
}

static int json_id(const struct pm_label_reading *r, const cJSON *o, unsigned place, int64_t *out,
                   bool *found)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, "id");

    *found = v != NULL;
    if (!v)
        return PM_OK;
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= -1e15 && v->valuedouble <= 1e15) ||
        v->valuedouble != (double)(int64_t)v->valuedouble)
        return pm_label_fail(r, place, "id is not a whole number");
    *out = (int64_t)v->valuedouble;
    return PM_OK;
}

static int json_points(const struct pm_label_reading *r, const cJSON *list,
                       struct pm_label_raw *item)
{
    int err = PM_OK;

    if (list && !cJSON_IsArray(list))
        PM_TRY(pm_label_fail(r, item->place, "keypoints is not a list"));
    for (const cJSON *v = list ? list->child : NULL; v; v = v->next) {
        int64_t id = -1;
        const char *name = "";
        bool found = false;

        PM_TRY(json_id(r, v, item->place, &id, &found));
        PM_TRY(json_text(r, v, "label", item->place, &name));
        PM_TRY(pm_label_add_point(r, item, id, name, item->place));
    }
out:
    return err;
}

int pm_label_read_list(struct pm_label_reading *r, const cJSON *list)
{
    unsigned n = 0;
    int err = PM_OK;

    if (!cJSON_IsArray(list))
        PM_TRY(
            pm_fail(PM_EDATA, "%s: a label map is a list of objects with id and name", r->where));
    for (const cJSON *v = list->child; v; v = v->next) {
        struct pm_label_raw *item = pm_label_add(r, ++n);

        if (!cJSON_IsObject(v))
            PM_TRY(pm_label_fail(r, n, "no object with id and name"));
        PM_TRY(json_id(r, v, n, &item->id, &item->has_id));
        PM_TRY(json_text(r, v, "name", n, &item->name));
        PM_TRY(json_text(r, v, "display_name", n, &item->display_name));
        PM_TRY(json_points(r, cJSON_GetObjectItemCaseSensitive(v, "keypoints"), item));
    }
out:
    return err;
}

int pm_label_read_json(struct pm_label_reading *r, const char *text)
{
    cJSON *o = NULL;
    int err = PM_OK;

    PM_TRY(pm_json_parse(r->where, text, &o));
    if (cJSON_IsObject(o))
        PM_TRY(pm_label_read_list(r, cJSON_GetObjectItemCaseSensitive(o, "item")));
    else
        PM_TRY(pm_label_read_list(r, o));
out:
    cJSON_Delete(o);
    return err == PM_ECONFIG ? PM_EDATA : err;
}

int pm_label_map_of_list(struct pm_arena *a, const cJSON *list, const char *where,
                         struct pm_label_map *out)
{
    struct pm_label_reading r = { .arena = a, .where = where };
    int err = PM_OK;

    PM_TRY(pm_label_read_list(&r, list));
    PM_TRY(pm_label_settle(&r, out));
out:
    pm_label_reading_free(&r);
    return err;
}
