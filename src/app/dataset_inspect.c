/* pumice dataset inspect: shows the contents of TFRecord files, as JSON or as text made from it. */
#include "app/app.h"
#include "app/dataset_boxes.h"
#include "app/dataset_check.h"
#include "app/dataset_words.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <pumice/objects.h>
#include <pumice/task.h>

#include "data/photo_survey.h"
#include "data/photos.h"

/* ---- records -------------------------------------------------------------------------------- */

static bool is_text(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isprint(data[i]) && data[i] < 0x80)
            return false;
    return size > 0 && size <= 60;
}

/* Describes one value of bytes: a picture and its size, a short text, or only the number of bytes.
 * Warns of bytes that begin like a picture and cannot be decoded, unless that was reported
 * before. */
static void add_bytes_text(struct pm_str *s, const char *key, const uint8_t *data, size_t size,
                           bool reported)
{
    const char *format = pm_image_format(data, size);
    struct pm_image8 im;

    if (is_text(data, size)) {
        pm_str_add(s, "\"%.*s\"", (int)size, (const char *)data);
        return;
    }
    if (format && pm_image_decode(data, size, 0, 0, key, &im) == PM_OK) {
        pm_str_add(s, "%s %d x %d x %d, ", format, im.height, im.width, im.channels);
        pm_image_free(&im);
    } else if (format && !reported) {
        PM_WARN("data", "%s", pm_error_text());
    }
    pm_str_add(s, "%zu bytes", size);
}

/* Adds a task's description of a value; false if no task describes it. *own: its key belongs to a
 * task. */
static bool add_task_text(struct pm_str *s, const char *key, const uint8_t *data, size_t size,
                          bool *own)
{
    size_t count;
    const struct pm_task_row *const *task = pm_tasks(&count);

    *own = false;
    for (size_t i = 0; i < count && !*own; i++)
        if (task[i]->inspect && task[i]->inspect->value(key, data, size, s, own))
            return true;
    return false;
}

/* Returns the first values of a feature as text. */
static char *value_text(const struct pm_example *e, const char *key, const char *kind, size_t count)
{
    struct pm_str s = { 0 };
    const size_t most = strcmp(kind, "bytes") ? 8 : 3, shown = count < most ? count : most;
    const int64_t *ints = NULL;
    const float *floats = NULL;
    const uint8_t *data = NULL;
    size_t n = 0;
    bool own;

    pm_str_add(&s, "%s", "");
    for (size_t i = 0; i < shown; i++) {
        pm_str_add(&s, "%s", i ? ", " : "");
        if (!strcmp(kind, "integers") && pm_example_ints(e, key, &ints, &n) == 1 && i < n)
            pm_str_add(&s, "%" PRId64, ints[i]);
        else if (!strcmp(kind, "floats") && pm_example_floats(e, key, &floats, &n) == 1 && i < n)
            pm_str_add(&s, "%g", (double)floats[i]);
        else if (!strcmp(kind, "bytes") && pm_example_bytes_at(e, key, i, &data, &n) == 1 &&
                 !add_task_text(&s, key, data, n, &own))
            add_bytes_text(&s, key, data, n, own);
    }
    if (count > shown)
        pm_str_add(&s, ", ...");
    return s.text;
}

static int compare_keys(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Returns the features with keys sorted by name: each record may have a different order. */
static cJSON *features_json(const struct pm_example *e, struct pm_arena *a)
{
    cJSON *list = cJSON_CreateArray();
    const size_t count = pm_example_count(e);
    const char **keys = pm_arena_alloc(a, (count + 1) * sizeof *keys);

    for (size_t i = 0; i < count; i++) {
        const char *kind = NULL;
        size_t values = 0;
        keys[i] = pm_example_key(e, i, &kind, &values);
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < count; i++) {
            const char *kind = NULL;
            size_t values = 0;
            if (pm_example_key(e, i, &kind, &values) != keys[k])
                continue;
            cJSON *f = cJSON_CreateObject();
            char *text = value_text(e, keys[k], kind, values);
            cJSON_AddStringToObject(f, "key", keys[k]);
            cJSON_AddStringToObject(f, "type", kind);
            cJSON_AddNumberToObject(f, "values", (double)values);
            cJSON_AddStringToObject(f, "first", text);
            cJSON_AddItemToArray(list, f);
            pm_free(text);
        }
    return list;
}

static int read_example(struct pm_dataset *d, size_t i, uint8_t **buf, size_t *capacity,
                        struct pm_example **e)
{
    char where[512];
    size_t size = 0;
    const int err = pm_dataset_read(d, i, buf, capacity, &size);

    return err < 0 ? err
                   : pm_example_parse(*buf, size, pm_dataset_where(d, i, where, sizeof where), e);
}

enum { COUNTED = 1001 };

/* Adds "7": n for each label that occurs; higher labels are counted under more_name. */
static void add_counts(cJSON *o, const uint64_t *counts, uint64_t more, const char *more_name)
{
    for (int k = 0; k < COUNTED; k++) {
        char id[24];
        snprintf(id, sizeof id, "%d", k);
        if (counts[k])
            cJSON_AddNumberToObject(o, id, (double)counts[k]);
    }
    if (more)
        cJSON_AddNumberToObject(o, more_name, (double)more);
}

/* The parts of one task in the records of a split. */
struct parts {
    uint64_t records, counts[COUNTED], more;
};

/* Checks the tasks' own parts of a record. Returns 1 if there are any, or an error. */
static int check_parts(const struct pm_example *e, const struct pm_dataset_info *info,
                       const char *where, struct parts *parts)
{
    size_t count;
    const struct pm_task_row *const *task = pm_tasks(&count);
    int found = 0;

    for (size_t i = 0; i < count; i++) {
        struct parts *p = &parts[i];
        const int err = task[i]->inspect ? task[i]->inspect->check(e, info, where, p->counts,
                                                                   COUNTED, &p->more) : 0;

        if (err < 0)
            return err;
        p->records += (uint64_t)err;
        found |= err;
    }
    return found;
}

static void add_parts(cJSON *split, const struct parts *parts)
{
    size_t count;
    const struct pm_task_row *const *task = pm_tasks(&count);

    for (size_t i = 0; i < count; i++) {
        const struct pm_task_inspect *of = task[i]->inspect;

        if (!of || !parts[i].records)
            continue;
        cJSON_AddNumberToObject(split, of->parts, (double)parts[i].records);
        add_counts(cJSON_AddObjectToObject(split, of->counts), parts[i].counts, parts[i].more,
                   "more");
    }
}

/* Reads every record: checksums, messages, the count of each label, and the tasks' own parts.
 * *objects becomes true if a record has objects for detection; then a damaged record is not an
 * error here, because app_check_split reports it. */
static int check_all(struct pm_dataset *d, cJSON *split, bool *objects,
                     struct app_word_check *words)
{
    int err = PM_OK;
    struct pm_example *e = NULL;
    uint8_t *buf = NULL;
    size_t tasks = 0, capacity = 0;
    uint64_t *counts = pm_calloc(COUNTED, sizeof *counts), without = 0;
    struct parts *parts = NULL;
    bool any_parts = false;
    const struct pm_dataset_info *info = pm_dataset_get_info(d);
    char where[512];

    pm_tasks(&tasks);
    parts = pm_calloc(tasks, sizeof *parts);
    for (size_t i = 0; i < info->count; i++) {
        int64_t label = -1;
        err = read_example(d, i, &buf, &capacity, &e);
        if (*objects && (err == PM_ECORRUPT || err == PM_EDATA))
            continue;
        PM_TRY(err);
        *objects |= app_check_applies(e);
        const int found = pm_example_int(e, "image/class/label", &label);
        PM_TRY(found);
        if (found && label >= 0 && label < COUNTED)
            counts[label]++;
        else
            without++;
        const int own = check_parts(e, info, pm_dataset_where(d, i, where, sizeof where), parts);
        PM_TRY(own);
        PM_TRY(app_check_word(words, e, where));
        any_parts |= own;
        pm_example_destroy(&e);
    }
    if (without < info->count || (!any_parts && !*objects))
        add_counts(cJSON_AddObjectToObject(split, "labels"), counts, without, "none");
    add_parts(split, parts);
out:
    pm_example_destroy(&e);
    pm_free(buf);
    pm_free(parts);
    pm_free(counts);
    return err;
}

/* Saves a value of the record unchanged, as FOLDER/SPLIT_00003.jpg. folder NULL: saves nothing. */
static int save(const struct pm_example *e, const char *key, const char *split, size_t i,
                const char *folder, struct pm_arena *a)
{
    int err = PM_OK;

    if (!folder)
        return PM_OK;
    PM_TRY(pm_make_folders(folder));
    PM_TRY(pm_record_save(e, key, pm_arena_printf(a, "%s/%s_%05zu", folder, split, i)));
out:
    return err;
}

/* Saves the tasks' own parts as pictures, FOLDER/SPLIT_00003.png and so on. folder NULL: saves
 * nothing. */
static int save_parts(const struct pm_example *e, const struct pm_dataset_info *info,
                      const char *split, size_t i, const char *folder, struct pm_arena *a)
{
    size_t count;
    const struct pm_task_row *const *task = pm_tasks(&count);
    int err = PM_OK;

    if (!folder)
        return PM_OK;
    PM_TRY(pm_make_folders(folder));
    for (size_t k = 0; k < count; k++)
        if (task[k]->inspect)
            PM_TRY(task[k]->inspect->save(e, info,
                                          pm_arena_printf(a, "%s/%s_%05zu", folder, split, i)));
out:
    return err;
}

static cJSON *names_json(const char *const *names, int count)
{
    cJSON *list = cJSON_CreateArray();

    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(list, names[i] ? cJSON_CreateString(names[i]) : cJSON_CreateNull());
    return list;
}

/* Adds the properties of all splits. */
static void add_info(cJSON *out, const struct pm_dataset_info *info)
{
    cJSON_AddNumberToObject(out, "num_classes", info->num_classes);
    cJSON_AddItemToObject(out, "labels", names_json(info->labels, info->num_classes));
    if (info->map_labels != info->labels)
        cJSON_AddItemToObject(out, "map_labels", names_json(info->map_labels, info->map_classes));
    if (info->ignore_label >= 0)
        cJSON_AddNumberToObject(out, "ignore_label", info->ignore_label);
    if (info->thing_classes.count)
        cJSON_AddItemToObject(
            out, "thing_classes",
            cJSON_CreateIntArray(info->thing_classes.v, info->thing_classes.count));
    if (info->colormap)
        cJSON_AddStringToObject(out, "colormap", info->colormap);
    cJSON_AddNumberToObject(out, "height", info->height);
    cJSON_AddNumberToObject(out, "width", info->width);
    cJSON_AddNumberToObject(out, "channels", info->channels);
}

/* Reads the classes of boxes; none if the folder has no label map. */
static int read_box_labels(const char *folder, struct pm_arena *a, struct pm_label_map *map)
{
    *map = (struct pm_label_map){ 0 };
    if (!pm_file_exists(pm_arena_printf(a, "%s/label_map.pbtxt", folder)))
        return PM_OK;
    return pm_label_map_of_folder(a, folder, map);
}

struct job {
    const struct app_inspect *flags;
    struct pm_arena *a;
    struct app_check check;
    struct app_word_check words;
    cJSON *out;
};

/* Adds the first records of a split, and saves their pictures. */
static int inspect_records(struct job *j, struct pm_dataset *d, const char *name,
                           const struct pm_label_map *map, cJSON *records)
{
    int err = PM_OK;
    const struct pm_dataset_info *info = pm_dataset_get_info(d);
    const struct app_inspect *flags = j->flags;
    struct pm_example *e = NULL;
    uint8_t *buf = NULL;
    size_t capacity = 0;
    char where[512];

    for (size_t i = 0; i < info->count && i < (size_t)flags->records; i++) {
        PM_TRY(read_example(d, i, &buf, &capacity, &e));
        cJSON_AddItemToArray(records, features_json(e, j->a));
        PM_TRY(save(e, "image/encoded", name, i, flags->pictures, j->a));
        PM_TRY(save_parts(e, info, name, i, flags->maps, j->a));
        PM_TRY(app_save_drawn(e, map, pm_dataset_where(d, i, where, sizeof where), flags->boxes,
                              pm_arena_printf(j->a, "%s/%s_%05zu.png", flags->boxes, name, i)));
        pm_example_destroy(&e);
    }
out:
    pm_example_destroy(&e);
    pm_free(buf);
    return err;
}

static int inspect_split(struct job *j, const char *folder, const char *name)
{
    int err = PM_OK;
    struct pm_dataset *d = NULL;
    struct pm_label_map *map = pm_arena_alloc(j->a, sizeof *map);
    cJSON *split;

    PM_TRY(read_box_labels(folder, j->a, map));
    PM_TRY(pm_dataset_open(folder, name, &d));
    const struct pm_dataset_info *info = pm_dataset_get_info(d);
    bool objects = map->count > 0;
    split = cJSON_CreateObject();
    cJSON_AddItemToArray(cJSON_GetObjectItem(j->out, "splits"), split);
    cJSON_AddStringToObject(split, "name", name);
    cJSON_AddNumberToObject(split, "records", (double)info->count);
    cJSON_AddNumberToObject(split, "files", (double)info->files);
    cJSON_AddNumberToObject(split, "bytes", (double)info->bytes);
    PM_TRY(inspect_records(j, d, name, map, cJSON_AddArrayToObject(split, "first_records")));
    if (j->flags->check)
        PM_TRY(check_all(d, split, &objects, &j->words));
    if (j->flags->check && objects)
        PM_TRY(app_check_split(&j->check, d, name, map));
    if (!cJSON_GetObjectItem(j->out, "num_classes")) {
        add_info(j->out, info);
        if (map->count)
            cJSON_AddItemToObject(j->out, "box_labels", pm_label_map_json(map));
    }
out:
    pm_dataset_close(&d);
    return err;
}

/* ---- inspect's text -------------------------------------------------------------------------- */

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);
    return v ? v->valuedouble : 0;
}

/* Adds "  what: 0 x 12, 3 x 7"; nothing if counts is NULL. */
static void counts_text(struct pm_str *s, const char *what, const cJSON *counts)
{
    if (!counts)
        return;
    pm_str_add(s, "  %s:", what);
    for (const cJSON *f = counts->child; f; f = f->next)
        pm_str_add(s, " %s x %.0f%s", f->string, f->valuedouble, f->next ? "," : "");
    pm_str_add(s, "\n");
}

static void split_text(struct pm_str *s, const cJSON *split)
{
    size_t tasks;
    const struct pm_task_row *const *task = pm_tasks(&tasks);
    const cJSON *record, *f;
    char bytes[24];
    const double records = number(split, "records"), files = number(split, "files");
    int n = 0;

    pm_str_name(s, cJSON_GetObjectItem(split, "name")->valuestring, 0);
    pm_str_add(s, ": %.0f %s in %.0f %s, %s\n", records, pm_plural(records, "record", "records"),
               files, pm_plural(files, "file", "files"),
               pm_bytes_text((uint64_t)number(split, "bytes"), bytes));
    cJSON_ArrayForEach(record, cJSON_GetObjectItem(split, "first_records"))
    {
        pm_str_add(s, "  record %d\n", n++);
        cJSON_ArrayForEach(f, record)
        {
            pm_str_add(s, "    ");
            pm_str_name(s, cJSON_GetObjectItem(f, "key")->valuestring, 36);
            pm_str_add(s, " %-8s %4.0f  ", cJSON_GetObjectItem(f, "type")->valuestring,
                       number(f, "values"));
            pm_str_name(s, cJSON_GetObjectItem(f, "first")->valuestring, 0);
            pm_str_add(s, "\n");
        }
    }
    counts_text(s, "every record is whole; labels", cJSON_GetObjectItem(split, "labels"));
    app_check_split_text(s, cJSON_GetObjectItem(split, "objects"));
    for (size_t i = 0; i < tasks; i++)
        if (task[i]->inspect)
            counts_text(s, task[i]->inspect->heading,
                        cJSON_GetObjectItem(split, task[i]->inspect->counts));
}

/* Adds " (ants, bees, ...)", at most twenty names of a list of texts or of objects with names. */
static void names_text(struct pm_str *s, const cJSON *labels)
{
    int n = 0;

    for (const cJSON *l = labels ? labels->child : NULL; l && n < 20; l = l->next, n++)
    {
        pm_str_add(s, n ? ", " : " (");
        const cJSON *shown = cJSON_GetObjectItem(l, "display_name");
        const cJSON *name = shown ? shown : cJSON_IsObject(l) ? cJSON_GetObjectItem(l, "name") : l;
        pm_str_name(s, cJSON_IsString(name) ? name->valuestring : "?", 0);
    }
    if (n > 0)
        pm_str_add(s, "%s", n < cJSON_GetArraySize(labels) ? ", ...)" : ")");
}

static char *inspect_text(const cJSON *o)
{
    struct pm_str s = { 0 };
    const cJSON *split, *maps = cJSON_GetObjectItem(o, "map_labels");
    const double classes = number(o, "num_classes");
    const cJSON *boxes = classes > 0 ? NULL : cJSON_GetObjectItem(o, "box_labels");
    const cJSON *ignore = cJSON_GetObjectItem(o, "ignore_label");

    pm_str_name(&s, cJSON_GetObjectItem(o, "path")->valuestring, 0);
    if (classes > 0)
        pm_str_add(&s, ": %.0f %s", classes, pm_plural(classes, "class", "classes"));
    else if (boxes)
        pm_str_add(&s, ": %d %s of boxes", cJSON_GetArraySize(boxes),
                   pm_plural(cJSON_GetArraySize(boxes), "class", "classes"));
    else
        pm_str_add(&s, ": classes unknown (no labels.txt or dataset.json)");
    names_text(&s, boxes ? boxes : cJSON_GetObjectItem(o, "labels"));
    if (maps) {
        pm_str_add(&s, ", in maps %d", cJSON_GetArraySize(maps));
        names_text(&s, maps);
    }
    if (ignore)
        pm_str_add(&s, ", %d is ignored", ignore->valueint);
    const cJSON *things = cJSON_GetObjectItem(o, "thing_classes");
    for (const cJSON *v = things ? things->child : NULL; v; v = v->next)
        pm_str_add(&s, "%s %d", v == things->child ? ", instances of" : "", v->valueint);
    if (number(o, "height") > 0)
        pm_str_add(&s, ", %.0f x %.0f x %.0f", number(o, "height"), number(o, "width"),
                   number(o, "channels"));
    pm_str_add(&s, "\n");
    if (cJSON_GetObjectItem(o, "pictures")) {
        counts_text(&s, "pictures", cJSON_GetObjectItem(o, "pictures"));
        pm_str_add(&s, "  The pictures are not converted yet. pumice train converts them.\n");
    }
    cJSON_ArrayForEach(split, cJSON_GetObjectItem(o, "splits")) split_text(&s, split);
    app_check_findings_text(&s, cJSON_GetObjectItem(o, "findings"));
    return s.text;
}

/* Counts the pictures of a folder that is not converted. */
static int inspect_pictures(struct job *j, const char *path)
{
    struct pm_photo_survey s;
    cJSON *labels, *counts;
    int err = PM_OK;

    PM_TRY(pm_photos_survey(j->a, path, 0, &s));
    cJSON_AddNumberToObject(j->out, "num_classes", s.class_count);
    labels = cJSON_AddArrayToObject(j->out, "labels");
    counts = cJSON_AddObjectToObject(j->out, "pictures");
    for (int k = 0; k < s.class_count; k++) {
        cJSON_AddItemToArray(labels, cJSON_CreateString(s.classes[k]));
        cJSON_AddNumberToObject(counts, s.classes[k], (double)s.counts[k]);
    }
out:
    return err;
}

static int inspect_path(struct job *j, const char *path)
{
    int err = PM_OK;
    const char **names = NULL;
    size_t count = 0;

    if (!pm_is_folder(path)) {
        if (!pm_file_exists(path))
            PM_TRY(pm_fail(PM_EDATA, "%s: no such file or folder", path));
        const char *slash = strrchr(path, '/');
        const char *folder = !slash ? "." : pm_arena_printf(j->a, "%.*s", (int)(slash - path),
                                                            path);
        PM_TRY(inspect_split(j, folder[0] ? folder : "/", slash ? slash + 1 : path));
        goto out;
    }
    if (pm_folder_kind(path) == PM_FOLDER_PHOTOS) {
        const char *place = pm_photos_last(j->a, path);

        if (!place) {
            PM_TRY(inspect_pictures(j, path));
            goto out;
        }
        PM_INFO("data", "%s: inspecting its last conversion, %s", path, place);
        path = place;
    }
    PM_TRY(pm_dataset_list(j->a, path, &names, &count));
    if (count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: no TFRecord files in it", path));
    for (size_t i = 0; i < count; i++)
        PM_TRY(inspect_split(j, path, names[i]));
out:
    return err;
}

static int print_report(const cJSON *out, struct app_globals *g)
{
    if (g->json)
        return app_print_json(g, out);
    char *text = inspect_text(out);
    const int err = app_print(text);

    pm_free(text);
    return err;
}

int app_dataset_inspect(const struct app_args *args, const struct app_inspect *flags,
                        struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    size_t wrong = 0;
    struct job j = { .flags = flags, .a = a, .out = cJSON_CreateObject() };

    app_check_start(&j.check);
    if (args->words_count != 1 || args->overrides_count)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: dataset inspect needs one file or folder"));
    cJSON_AddStringToObject(j.out, "path", args->words[0]);
    cJSON_AddArrayToObject(j.out, "splits");
    PM_TRY(inspect_path(&j, args->words[0]));
    if (j.check.splits)
        wrong = app_check_report(&j.check, j.out);
    PM_TRY(print_report(j.out, g));
    if (wrong)
        PM_TRY(pm_fail(PM_EDATA, "%s: %zu %s would make training or its evaluation wrong: see "
                       "\"wrong\" in the report", args->words[0], wrong,
                       pm_plural((double)wrong, "finding", "findings")));
    PM_TRY(app_word_check_result(&j.words, args->words[0]));
out:
    app_word_check_free(&j.words);
    app_check_free(&j.check);
    cJSON_Delete(j.out);
    return err;
}
