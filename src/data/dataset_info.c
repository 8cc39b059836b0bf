/* dataset_info: reads dataset.json and labels.txt into struct pm_dataset_info, and converts it to
 * the JSON object that a checkpoint stores about its data. The object has dataset.json's members,
 * and labels.txt as "labels". */
#include "data/dataset_info.h"
#include "data/label_reading.h"

#include <pumice/objects.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 1 << 20 };

static int json_int(const cJSON *o, const char *key, int most, const char *path, int *out)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!v)
        return PM_OK;
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= most) ||
        v->valuedouble != (int)v->valuedouble)
        return pm_fail(PM_EDATA, "%s: %s is not a whole number of 0..%d", path, key, most);
    *out = (int)v->valuedouble;
    return PM_OK;
}

/* Reads names in order; NULL if an entry has no text. Without a list, *count is unchanged. */
static void read_names(struct pm_arena *a, const cJSON *list, int *count, const char *const **out)
{
    const int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    const char **names = pm_arena_alloc(a, ((size_t)n + 1) * sizeof *names);
    int i = 0;

    if (n == 0 || n > MOST_CLASSES)
        return;
    for (const cJSON *v = list->child; v; v = v->next, i++)
        names[i] = cJSON_IsString(v) ? pm_arena_strdup(a, v->valuestring) : NULL;
    *count = n;
    *out = names;
}

/* Reads a list of numbers of 0..most. */
static int read_ints(struct pm_arena *a, const cJSON *o, const char *key, int most,
                     const char *path, struct pm_ints *out)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, key);
    const int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    int *v = pm_arena_alloc(a, ((size_t)count + 1) * sizeof *v), i = 0;

    for (const cJSON *n = count ? list->child : NULL; n; n = n->next) {
        if (!cJSON_IsNumber(n) || n->valuedouble < 0 || n->valuedouble > most ||
            n->valuedouble != (double)(int)n->valuedouble)
            return pm_fail(PM_EDATA, "%s: %s: entry %d is not a number of 0..%d", path, key, i + 1,
                           most);
        v[i++] = n->valueint;
    }
    *out = (struct pm_ints){ count, v };
    return PM_OK;
}

const char *pm_mirrored_points_wrong(const int *mirrored, int count)
{
    for (int k = 0; k < count; k++) {
        if (mirrored[k] < 0 || mirrored[k] >= count)
            return "has a number that is none of a keypoint";
        if (mirrored[mirrored[k]] != k)
            return "must exchange keypoints in pairs, or leave them";
    }
    return NULL;
}

static int read_mirrored(struct pm_arena *a, const cJSON *o, const char *path, struct pm_ints *out)
{
    const int err = read_ints(a, o, "mirrored_keypoints", 65535, path, out);
    const char *wrong = err < 0 ? NULL : pm_mirrored_points_wrong(out->v, out->count);

    return wrong ? pm_fail(PM_EDATA, "%s: mirrored_keypoints %s", path, wrong) : err;
}

static int read_members(struct pm_arena *a, const cJSON *o, const char *path,
                        struct pm_dataset_info *out)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(o, "name");
    const cJSON *colormap = cJSON_GetObjectItemCaseSensitive(o, "colormap");
    const cJSON *digest = cJSON_GetObjectItemCaseSensitive(o, "digest");
    int err = PM_OK;

    if (cJSON_IsString(name))
        out->name = pm_arena_strdup(a, name->valuestring);
    if (cJSON_IsString(digest))
        out->digest = pm_arena_strdup(a, digest->valuestring);
    PM_TRY(json_int(o, "num_classes", MOST_CLASSES, path, &out->num_classes));
    PM_TRY(json_int(o, "height", 1 << 16, path, &out->height));
    PM_TRY(json_int(o, "width", 1 << 16, path, &out->width));
    PM_TRY(json_int(o, "channels", 4, path, &out->channels));
    PM_TRY(json_int(o, "ignore_label", 65535, path, &out->ignore_label));
    if (cJSON_IsString(colormap))
        out->colormap = pm_arena_strdup(a, colormap->valuestring);
    read_names(a, cJSON_GetObjectItemCaseSensitive(o, "map_labels"), &out->map_classes,
               &out->map_labels);
    PM_TRY(read_ints(a, o, "thing_classes", 65535, path, &out->thing_classes));
    PM_TRY(read_mirrored(a, o, path, &out->mirrored_points));
out:
    return err;
}

/* Stores num_classes names as labels. Label maps without their own classes get the same ones. */
static void settle(struct pm_arena *a, const char *const *names, int count,
                   struct pm_dataset_info *out)
{
    if (out->num_classes == 0)
        out->num_classes = count;
    const char **filled = pm_arena_alloc(a, ((size_t)out->num_classes + 1) * sizeof *filled);
    for (int i = 0; i < out->num_classes; i++)
        filled[i] = i < count ? names[i] : NULL;
    out->labels = filled;
    if (out->map_classes == 0) {
        out->map_classes = out->num_classes;
        out->map_labels = filled;
    }
}

/* ---- a data folder ------------------------------------------------------------------------- */

static int read_json(struct pm_arena *a, const char *folder, cJSON **json,
                     struct pm_dataset_info *out)
{
    const char *path = pm_arena_printf(a, "%s/dataset.json", folder);
    char *text = NULL;
    int err = PM_OK;

    if (!pm_file_exists(path))
        return PM_OK;
    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    PM_TRY(pm_json_parse(path, text, json));
    if (!cJSON_IsObject(*json))
        PM_TRY(pm_fail(PM_EDATA, "%s: the file is not a JSON object", path));
    PM_TRY(read_members(a, *json, path, out));
out:
    pm_free(text);
    return err == PM_ECONFIG ? PM_EDATA : err;
}

/* Reads labels.txt: one "id:name" per line, split at the first colon. */
static int read_labels(struct pm_arena *a, const char *folder, struct pm_dataset_info *out)
{
    int err = PM_OK, most = -1, line_number = 0;
    char *text = NULL, *save = NULL;
    const char **labels = NULL, *path = pm_arena_printf(a, "%s/labels.txt", folder);
    size_t capacity = 0;

    if (pm_file_exists(path))
        PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    for (char *line = text ? strtok_r(text, "\r\n", &save) : NULL; line;
         line = strtok_r(NULL, "\r\n", &save)) {
        char *end = NULL;
        const long id = strtol(line, &end, 10);
        line_number++;
        if (end == line || *end != ':' || id < 0 || id >= MOST_CLASSES)
            PM_TRY(pm_fail(PM_EDATA, "%s:%d: \"%.40s\" must be \"id:name\" with an id of 0..%d",
                           path, line_number, line, MOST_CLASSES - 1));
        for (size_t had = capacity; (size_t)id >= capacity; had = capacity) {
            capacity = capacity ? 2 * capacity : 16;
            labels = pm_realloc(labels, capacity * sizeof *labels);
            memset(labels + had, 0, (capacity - had) * sizeof *labels);
        }
        labels[id] = pm_arena_strdup(a, end + 1);
        most = id > most ? (int)id : most;
    }
    settle(a, labels, most + 1, out);
out:
    pm_free(labels);
    pm_free(text);
    return err;
}

/* Returns the last part of the folder's real path, because "." is a poor name for a data set. */
static const char *folder_name(struct pm_arena *a, const char *folder)
{
    char *real = realpath(folder, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    const char *name = pm_arena_strdup(a, slash && slash[1] ? slash + 1 : folder);
    free(real);
    return name;
}

int pm_dataset_info_read(struct pm_arena *a, const char *folder, cJSON **json,
                         struct pm_dataset_info *out)
{
    int err = PM_OK;

    *json = NULL;
    out->name = folder_name(a, folder);
    out->ignore_label = -1;
    PM_TRY(read_json(a, folder, json, out));
    PM_TRY(read_labels(a, folder, out));
out:
    return err;
}

int pm_dataset_describe(struct pm_arena *a, const char *folder, struct pm_dataset_info *out)
{
    cJSON *json = NULL;
    int err;

    *out = (struct pm_dataset_info){ 0 };
    err = pm_dataset_info_read(a, folder, &json, out);
    cJSON_Delete(json);
    return err;
}

/* ---- what a checkpoint keeps --------------------------------------------------------------- */

static void add_names(cJSON *o, const char *key, const char *const *names, int count)
{
    cJSON *list = cJSON_AddArrayToObject(o, key);

    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(list, names[i] ? cJSON_CreateString(names[i]) : cJSON_CreateNull());
}

struct cJSON *pm_dataset_info_dump(const struct pm_dataset_info *info)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", info->name ? info->name : "");
    if (info->num_classes)
        add_names(o, "labels", info->labels, info->num_classes);
    if (info->map_classes && info->map_labels != info->labels)
        add_names(o, "map_labels", info->map_labels, info->map_classes);
    if (info->thing_classes.count)
        cJSON_AddItemToObject(
            o, "thing_classes",
            cJSON_CreateIntArray(info->thing_classes.v, info->thing_classes.count));
    if (info->mirrored_points.count)
        cJSON_AddItemToObject(
            o, "mirrored_keypoints",
            cJSON_CreateIntArray(info->mirrored_points.v, info->mirrored_points.count));
    if (info->ignore_label >= 0)
        cJSON_AddNumberToObject(o, "ignore_label", info->ignore_label);
    if (info->box_labels)
        cJSON_AddItemToObject(o, "box_labels", pm_label_map_json(info->box_labels));
    if (info->colormap)
        cJSON_AddStringToObject(o, "colormap", info->colormap);
    if (info->digest)
        cJSON_AddStringToObject(o, "digest", info->digest);
    if (info->height) {
        cJSON_AddNumberToObject(o, "height", info->height);
        cJSON_AddNumberToObject(o, "width", info->width);
        cJSON_AddNumberToObject(o, "channels", info->channels);
    }
    return o;
}

static int read_box_labels(struct pm_arena *a, const cJSON *o, const char *where,
                           struct pm_dataset_info *out)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "box_labels");
    struct pm_label_map *map = pm_arena_alloc(a, sizeof *map);

    if (!list)
        return PM_OK;
    out->box_labels = map;
    return pm_label_map_of_list(a, list, pm_arena_printf(a, "%s: data.box_labels", where), map);
}

int pm_dataset_info_parse(struct pm_arena *a, const struct cJSON *object, const char *where,
                          struct pm_dataset_info *out)
{
    const char *const *names = NULL;
    int count = 0, err = PM_OK;

    *out = (struct pm_dataset_info){ .ignore_label = -1 };
    if (!cJSON_IsObject(object))
        PM_TRY(pm_fail(PM_EDATA, "%s: data: this is not a JSON object", where));
    PM_TRY(read_members(a, object, where, out));
    read_names(a, cJSON_GetObjectItemCaseSensitive(object, "labels"), &count, &names);
    settle(a, names, count, out);
    PM_TRY(read_box_labels(a, object, where, out));
out:
    return err;
}
