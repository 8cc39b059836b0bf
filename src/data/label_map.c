/* label_map: the classes' names and numbers: finds, copies and prints them, and reads them from a
 * file in either format. */
#include <cjson/cJSON.h>
#include <string.h>

#include "data/label_reading.h"

int pm_label_map_check(const struct pm_label_map *map, const char *where)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_label_reading r = { .arena = a, .where = where };
    struct pm_label_map out;

    for (int i = 0; i < map->count; i++) {
        const struct pm_label_item *from = &map->item[i];
        struct pm_label_raw *item = pm_label_add(&r, (unsigned)i + 1);

        *item = (struct pm_label_raw){ .id = from->id, .has_id = true, .name = from->name,
                                       .display_name = from->display_name, .place = item->place };
    }
    const int err = pm_label_settle(&r, &out);
    pm_label_reading_free(&r);
    pm_arena_destroy(&a);
    return err;
}

int pm_label_map_parse(struct pm_arena *a, const char *text, const char *where,
                       struct pm_label_map *out)
{
    struct pm_label_reading r = { .arena = a, .where = where };
    text += strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3; /* byte order mark */
    const char first = text[strspn(text, " \t\r\n")];
    int err = PM_OK;

    *out = (struct pm_label_map){ NULL, 0 };
    PM_TRY(first == '[' || first == '{' ? pm_label_read_json(&r, text)
                                        : pm_label_read_pbtxt(&r, text));
    PM_TRY(pm_label_settle(&r, out));
out:
    pm_label_reading_free(&r);
    return err;
}

int pm_label_map_read(struct pm_arena *a, const char *path, struct pm_label_map *out)
{
    char *text = NULL;
    int err = PM_OK;

    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    PM_TRY(pm_label_map_parse(a, text ? text : "", path, out));
out:
    pm_free(text);
    return err;
}

void pm_label_map_copy(struct pm_arena *a, const struct pm_label_map *from,
                       struct pm_label_map *out)
{
    struct pm_label_item *item = pm_arena_alloc(a, ((size_t)from->count + 1) * sizeof *item);

    for (int i = 0; i < from->count; i++) {
        const struct pm_label_item *was = &from->item[i];
        const size_t points = (size_t)was->points_count;
        const char **names = pm_arena_alloc(a, (points + 1) * sizeof *names);

        for (size_t k = 0; k < points; k++)
            names[k] = was->points[k] ? pm_arena_strdup(a, was->points[k]) : NULL;
        item[i] = (struct pm_label_item){ was->id, pm_arena_strdup(a, was->name), NULL,
                                          points ? names : NULL, was->points_count };
        if (was->display_name)
            item[i].display_name = pm_arena_strdup(a, was->display_name);
    }
    *out = (struct pm_label_map){ item, from->count };
}

/* ---- look-ups and writing ------------------------------------------------------------------- */

int pm_label_map_find(const struct pm_label_map *map, const char *text)
{
    int id = -1;

    for (int i = 0; i < map->count; i++) {
        const struct pm_label_item *item = &map->item[i];
        if (!strcmp(item->name, text) || (item->display_name && !strcmp(item->display_name, text)))
            id = item->id > id ? item->id : id;
    }
    return id;
}

const struct pm_label_item *pm_label_map_item(const struct pm_label_map *map, int64_t id)
{
    for (int i = 0; i < map->count; i++)
        if (map->item[i].id == id)
            return &map->item[i];
    return NULL;
}

const char *pm_label_map_nearest(const struct pm_label_map *map, const char *text)
{
    const char **names = pm_malloc((size_t)(2 * map->count + 1) * sizeof *names);
    size_t n = 0;

    for (int i = 0; i < map->count; i++) {
        names[n++] = map->item[i].name;
        if (map->item[i].display_name)
            names[n++] = map->item[i].display_name;
    }
    const char *near = pm_nearest(text, names, n);
    pm_free(names);
    return near;
}

static void print_text(struct pm_str *out, const char *field, const char *text)
{
    pm_str_add(out, "%s: \"", field);
    for (const char *p = text; *p; p++)
        pm_str_add(out, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    pm_str_add(out, "\"");
}

void pm_label_map_print(const struct pm_label_map *map, struct pm_str *out)
{
    for (int i = 0; i < map->count; i++) {
        const struct pm_label_item *item = &map->item[i];

        pm_str_add(out, "item {\n");
        print_text(out, "  name", item->name);
        pm_str_add(out, "\n  id: %d\n", item->id);
        if (item->display_name) {
            print_text(out, "  display_name", item->display_name);
            pm_str_add(out, "\n");
        }
        for (int k = 0; k < item->points_count; k++) {
            if (!item->points[k])
                continue;
            pm_str_add(out, "  keypoints { id: %d ", k);
            print_text(out, "label", item->points[k]);
            pm_str_add(out, " }\n");
        }
        pm_str_add(out, "}\n");
    }
}

struct cJSON *pm_label_map_json(const struct pm_label_map *map)
{
    struct cJSON *list = cJSON_CreateArray();

    for (int i = 0; i < map->count; i++) {
        const struct pm_label_item *item = &map->item[i];
        struct cJSON *o = cJSON_CreateObject();

        cJSON_AddNumberToObject(o, "id", item->id);
        cJSON_AddStringToObject(o, "name", item->name);
        if (item->display_name)
            cJSON_AddStringToObject(o, "display_name", item->display_name);
        cJSON_AddItemToArray(list, o);
    }
    return list;
}
