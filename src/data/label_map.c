/* label_map: reads the classes' names and numbers from protobuf's text form or from JSON. Both
 * readers make a list of items as they stand in the file; then one set of checks follows. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset_info.h"
#include "data/label_map.h"

/* ---- JSON ----------------------------------------------------------------------------------- */

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

/* Reads a list of items; NULL or another value is refused. */
static int read_list(struct pm_label_reading *r, const cJSON *list)
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

static int read_json(struct pm_label_reading *r, const char *text)
{
    cJSON *o = NULL;
    int err = PM_OK;

    PM_TRY(pm_json_parse(r->where, text, &o));
    PM_TRY(read_list(r, cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, "item") : o));
out:
    cJSON_Delete(o);
    return err == PM_ECONFIG ? PM_EDATA : err;
}

/* ---- checks --------------------------------------------------------------------------------- */

static bool is_background(const struct pm_label_raw *item)
{
    return !strcmp(item->name, "background") ||
           (item->display_name && !strcmp(item->display_name, "background"));
}

static int check_item(const struct pm_label_reading *r, const struct pm_label_raw *item)
{
    if (!item->name || !item->name[0])
        return pm_label_fail(r, item->place, "the item has no name: add name: \"...\"");
    if (!item->has_id)
        return pm_label_fail(r, item->place, "\"%.200s\" has no id: add id: with a number from 1",
                             item->name);
    if (!pm_is_line(item->name) || (item->display_name && !pm_is_line(item->display_name)))
        return pm_label_fail(r, item->place,
                             "\"%.200s\": a name is one line without control characters: "
                             "rename it",
                             pm_is_line(item->name) ? item->display_name : item->name);
    if (item->id < 0 || item->id > PM_MOST_LABEL_ID)
        return pm_label_fail(r, item->place, "\"%.200s\" has the id %" PRId64 ", outside 1..%d",
                             item->name, item->id, PM_MOST_LABEL_ID);
    if (item->id == 0 && !is_background(item))
        return pm_label_fail(r, item->place,
                             "\"%.200s\" has the id 0, which is the background's: number "
                             "classes from 1",
                             item->name);
    for (size_t k = 0; k < item->points_count; k++)
        if (item->points[k] && !pm_is_line(item->points[k]))
            return pm_label_fail(r, item->place,
                                 "keypoint \"%.200s\": a name is one line without control "
                                 "characters: rename it",
                                 item->points[k]);
    return PM_OK;
}

static int by_id(const void *x, const void *y)
{
    const struct pm_label_raw *a = *(struct pm_label_raw *const *)x,
                              *b = *(struct pm_label_raw *const *)y;
    return a->id != b->id        ? (a->id < b->id ? -1 : 1)
           : a->place < b->place ? -1
                                 : a->place > b->place;
}

static int by_name(const void *x, const void *y)
{
    const struct pm_label_raw *a = *(struct pm_label_raw *const *)x,
                              *b = *(struct pm_label_raw *const *)y;
    const int c = strcmp(a->name, b->name);
    return c ? c : a->place < b->place ? -1 : a->place > b->place;
}

/* Checks that ids and names are unique. */
static int check_unique(const struct pm_label_reading *r)
{
    const struct pm_label_raw **order = pm_malloc((r->count + 1) * sizeof *order);
    int err = PM_OK;

    for (size_t i = 0; i < r->count; i++)
        order[i] = &r->raw[i];
    qsort(order, r->count, sizeof *order, by_id);
    for (size_t i = 1; i < r->count; i++)
        if (order[i]->id == order[i - 1]->id)
            PM_TRY(pm_label_fail(r, order[i]->place,
                                 "\"%.200s\" has the id %" PRId64 ", which \"%.200s\" "
                                 "(%s %u) has, too: ids must be unique",
                                 order[i]->name, order[i]->id, order[i - 1]->name,
                                 r->lines ? "line" : "item", order[i - 1]->place));
    qsort(order, r->count, sizeof *order, by_name);
    for (size_t i = 1; i < r->count; i++)
        if (!strcmp(order[i]->name, order[i - 1]->name))
            PM_TRY(pm_label_fail(r, order[i]->place,
                                 "a second item has the name \"%.200s\" (%s %u): "
                                 "names must be unique",
                                 order[i]->name, r->lines ? "line" : "item", order[i - 1]->place));
out:
    pm_free(order);
    return err;
}

/* Checks the items and copies them to the arena. */
static int settle(struct pm_label_reading *r, struct pm_label_map *out)
{
    struct pm_label_item *item = pm_arena_alloc(r->arena, (r->count + 1) * sizeof *item);
    int err = PM_OK;

    if (r->count == 0 || r->count > PM_MOST_LABEL_ID + 1)
        PM_TRY(pm_fail(PM_EDATA, "%s: has %zu items; a label map has 1..%d", r->where, r->count,
                       PM_MOST_LABEL_ID + 1));
    for (size_t i = 0; i < r->count; i++) {
        const struct pm_label_raw *from = &r->raw[i];

        PM_TRY(check_item(r, from));
        item[i] = (struct pm_label_item){ (int)from->id, from->name, from->display_name, NULL,
                                          (int)from->points_count };
        if (from->points_count)
            item[i].points =
                pm_arena_copy(r->arena, from->points, from->points_count * sizeof *from->points);
    }
    PM_TRY(check_unique(r));
    *out = (struct pm_label_map){ item, (int)r->count };
out:
    return err;
}

static void free_reading(struct pm_label_reading *r)
{
    for (size_t i = 0; i < r->count; i++)
        pm_free(r->raw[i].points);
    pm_free(r->raw);
}

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
    const int err = settle(&r, &out);
    free_reading(&r);
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
    PM_TRY(first == '[' || first == '{' ? read_json(&r, text) : pm_label_read_pbtxt(&r, text));
    PM_TRY(settle(&r, out));
out:
    free_reading(&r);
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

/* ---- the map of a data folder --------------------------------------------------------------- */

/* Numbers the names of labels.txt from 1, or from 0 if the first one is the background. */
static int from_labels(struct pm_label_reading *r, const struct pm_dataset_info *info)
{
    const bool background = info->labels[0] && !strcmp(info->labels[0], "background");

    for (int i = 0; i < info->num_classes; i++) {
        struct pm_label_raw *item = info->labels[i] ? pm_label_add(r, (unsigned)i + 1) : NULL;
        if (item)
            *item = (struct pm_label_raw){ .id = i + !background,
                                           .has_id = true,
                                           .name = info->labels[i],
                                           .place = (unsigned)i + 1 };
    }
    return PM_OK;
}

int pm_label_map_of_folder(struct pm_arena *a, const char *folder, struct pm_label_map *out)
{
    struct pm_dataset_info info = { 0 };
    struct pm_label_reading r = { .arena = a,
                                  .where = pm_arena_printf(a, "%s/dataset.json", folder) };
    const char *pbtxt = pm_arena_printf(a, "%s/label_map.pbtxt", folder);
    cJSON *json = NULL;
    int err = PM_OK;

    PM_TRY(pm_dataset_info_read(a, folder, &json, &info));
    const cJSON *list = json ? cJSON_GetObjectItemCaseSensitive(json, "box_labels") : NULL;
    if (list) {
        PM_TRY(read_list(&r, list));
        PM_TRY(settle(&r, out));
    } else if (pm_file_exists(pbtxt)) {
        PM_TRY(pm_label_map_read(a, pbtxt, out));
    } else if (info.num_classes) {
        r.where = pm_arena_printf(a, "%s/labels.txt", folder);
        PM_TRY(from_labels(&r, &info));
        PM_TRY(settle(&r, out));
    } else {
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: has no label map: neither box_labels in dataset.json nor "
                       "label_map.pbtxt nor labels.txt: add one of them",
                       folder));
    }
out:
    free_reading(&r);
    cJSON_Delete(json);
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
