/* evaluations: evaluations.h has the contract. */
#include "observers/evaluations.h"

#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

char *pm_evaluations_folder(const char *run, const char *split)
{
    struct pm_str s = { 0 };
    size_t n;

    pm_str_add(&s, "%s/" PM_EVALUATIONS_OF, run);
    n = s.length;
    pm_str_add(&s, "%s", split);
    for (; n < s.length; n++)
        if (!isalnum((unsigned char)s.text[n]) && !strchr("-_.", s.text[n]))
            s.text[n] = '_';
    return s.text;
}

/* ---- writing ----------------------------------------------------------------------------- */

/* Resolves the data folder's real path, so that its name in the config does not matter. A missing
 * folder keeps its name. */
static char *real_path(const char *folder)
{
    char *real = realpath(folder, NULL), *copy = pm_strdup(real ? real : folder);

    free(real);
    return copy;
}

static cJSON *object_of(const struct pm_evaluated *e, const char *data_path)
{
    cJSON *object = cJSON_Duplicate(e->detail, true);
    const time_t now = time(NULL);
    struct tm tm;
    char text[32];

    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &tm));
    cJSON_AddNumberToObject(object, "step", (double)e->step);
    cJSON_AddNumberToObject(object, "count", (double)e->count);
    cJSON_AddStringToObject(object, "data", e->data);
    cJSON_AddStringToObject(object, "data_path", data_path);
    cJSON_AddStringToObject(object, "split", e->split);
    cJSON_AddStringToObject(object, "checkpoint", e->checkpoint);
    cJSON_AddBoolToObject(object, "averages", e->averages);
    cJSON_AddBoolToObject(object, "in_training", e->training);
    cJSON_AddStringToObject(object, "written", text);
    cJSON_AddItemToObject(object, "metrics", cJSON_Duplicate(e->metrics, true));
    return object;
}

/* Appends "evaluation-best-000600-1a2b3c4d.json". The hash distinguishes evaluations. */
static void add_name(struct pm_str *path, const struct pm_evaluated *e, const char *data_path)
{
    const char *slash = strrchr(e->checkpoint, '/'), *file = slash ? slash + 1 : e->checkpoint;
    struct pm_str all = { 0 };

    pm_str_add(&all, "%s\n%s\n%s", e->checkpoint, data_path, e->split);
    pm_str_add(path, PM_EVALUATION_NAME "%.*s-%08x.json", (int)strcspn(file, "."), file,
               (unsigned)pm_hash_bytes(all.text, all.length, 0));
    pm_str_free(&all);
}

/* If the last evaluation while training was of another split or data folder, moves it to the files
 * of pumice eval, so that the next one does not overwrite it. */
static int keep_other(const char *run, const struct pm_evaluated *e, const char *data_path)
{
    struct pm_str from = { 0 }, to = { 0 };
    char *text = NULL, *folder = NULL;
    cJSON *old = NULL;
    int err = PM_OK;

    pm_str_add(&from, "%s/evaluation.json", run);
    if (pm_file_exists(from.text) && pm_text_read(from.text, PM_MOST_TEXT, &text) == PM_OK)
        old = cJSON_Parse(text);
    const char *split = cJSON_GetStringValue(cJSON_GetObjectItem(old, "split"));
    const char *data = cJSON_GetStringValue(cJSON_GetObjectItem(old, "data_path"));
    const char *checkpoint = cJSON_GetStringValue(cJSON_GetObjectItem(old, "checkpoint"));
    if (!split || !data || !checkpoint ||
        (strcmp(split, e->split) == 0 && strcmp(data, data_path) == 0))
        goto out;
    folder = pm_evaluations_folder(run, split);
    PM_TRY(pm_make_folders(folder));
    pm_str_add(&to, "%s/", folder);
    add_name(&to, &(struct pm_evaluated){ .split = split, .checkpoint = checkpoint }, data);
    if (rename(from.text, to.text) < 0)
        err = pm_fail(PM_EFAIL, "%s: cannot be moved to %s", from.text, to.text);
out:
    cJSON_Delete(old);
    pm_free(folder);
    pm_free(text);
    pm_str_free(&from);
    pm_str_free(&to);
    return err;
}

/* ---- kept files -------------------------------------------------------------------------- */

struct stored {
    const char *path; /* in the arena */
    struct timespec changed;
};

/* Compares by time, oldest first. */
static int by_time(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;

    if (x->changed.tv_sec != y->changed.tv_sec)
        return x->changed.tv_sec < y->changed.tv_sec ? -1 : 1;
    if (x->changed.tv_nsec != y->changed.tv_nsec)
        return x->changed.tv_nsec < y->changed.tv_nsec ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Removes all but the newest `keep` files of RUN/eval_SPLIT. */
static void keep_newest(const char *run, size_t keep)
{
    struct pm_arena *a = pm_arena_create();
    const char **paths = NULL;
    const size_t count = pm_report_evaluations(a, run, &paths);
    struct stored *list = pm_arena_alloc(a, (count + 1) * sizeof *list);

    for (size_t i = 0; i < count; i++) {
        struct stat st = { 0 };

        list[i].path = pm_arena_printf(a, "%s/%s", run, paths[i]);
        if (stat(list[i].path, &st) == 0)
            list[i].changed = st.st_mtim;
    }
    qsort(list, count, sizeof *list, by_time);
    for (size_t i = 0; i + keep < count; i++)
        remove(list[i].path);
    pm_arena_destroy(&a);
}

int pm_evaluations_write(const char *run, const char *folder, const struct pm_evaluated *e)
{
    char *data_path = real_path(e->data), *text = NULL;
    cJSON *object = object_of(e, data_path);
    struct pm_str path = { 0 };
    int err = PM_OK;

    pm_str_add(&path, "%s/", e->training ? run : folder);
    if (e->training)
        pm_str_add(&path, "evaluation.json");
    else
        add_name(&path, e, data_path);
    PM_TRY(e->training ? keep_other(run, e, data_path) : pm_make_folders(folder));
    text = pm_json_print(object);
    PM_TRY(pm_file_write(path.text, text, strlen(text)));
    keep_newest(run, PM_EVALUATIONS_KEPT);
out:
    pm_free(text);
    cJSON_Delete(object);
    pm_str_free(&path);
    pm_free(data_path);
    return err;
}

void pm_evaluations_forget(const char *run)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/evaluation.json", run);
    remove(path.text);
    pm_str_free(&path);
    keep_newest(run, 0);
}
