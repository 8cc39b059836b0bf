/* checkpoint_keep: decides which checkpoints stay: the newest few, one in every so many hours, and
 * the best. */
#include "checkpoints/checkpoint_files.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the newest, and one in every so many hours ---------------------------------------- */

/* keep.json: {"since": s, "steps": [...]}. `since` is the time (seconds since 1970) of the last
 * checkpoint kept by the hours rule; at first, the time of the first checkpoint. It must be stored,
 * because the files that hold this time are removed. */
struct hours {
    double since; /* 0 = not yet begun */
    uint64_t *steps;
    size_t count, capacity;
    bool changed;
};

static void hours_read(const char *path, struct hours *h)
{
    char *text = NULL;
    cJSON *json = NULL;
    const cJSON *step;

    if (pm_file_exists(path) && pm_text_read(path, PM_MOST_TEXT, &text) == PM_OK)
        json = cJSON_Parse(text);
    h->since = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, "since"));
    if (!(h->since >= 0))
        h->since = 0;
    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(json, "steps"))
    {
        PM_GROW(h->steps, h->count, h->capacity);
        if (cJSON_IsNumber(step) && step->valuedouble >= 0 && step->valuedouble <= 0x1p53)
            h->steps[h->count++] = (uint64_t)step->valuedouble;
    }
    cJSON_Delete(json);
    pm_free(text);
}

static int hours_write(const char *path, const struct hours *h)
{
    struct pm_str s = { 0 };
    int err;

    pm_str_add(&s, "{\n  \"since\": %.0f,\n  \"steps\": [", h->since);
    for (size_t i = 0; i < h->count; i++)
        pm_str_add(&s, "%s%llu", i ? ", " : "", (unsigned long long)h->steps[i]);
    pm_str_add(&s, "]\n}\n");
    err = pm_file_write(path, s.text, s.length);
    pm_str_free(&s);
    return err;
}

static bool hours_has(const struct hours *h, uint64_t step)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->steps[i] == step)
            return true;
    return false;
}

/* Returns when the checkpoint was saved, in seconds since 1970; 0 if unknown. */
static double saved_at(const char *folder, uint64_t step)
{
    struct pm_str path = { 0 };
    struct stat st;
    char name[64];
    double seconds = 0;

    if (stat(pm_ckpt_path(&path, folder, pm_ckpt_step_name(step, ".json", name)), &st) == 0)
        seconds = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
    pm_str_free(&path);
    return seconds;
}

/* Whether a checkpoint that is no longer among the newest stays. This is decided once, when it
 * leaves them. */
static bool hours_keep(struct hours *h, const char *folder, uint64_t step, double every_hours)
{
    double at = saved_at(folder, step);

    if (hours_has(h, step))
        return true;
    if (!(every_hours > 0) || at < h->since + every_hours * 3600)
        return false;
    PM_GROW(h->steps, h->count, h->capacity);
    h->steps[h->count++] = step;
    h->since = at;
    h->changed = true;
    return true;
}

static void remove_file(const char *folder, const char *name)
{
    struct pm_str path = { 0 };

    if (unlink(pm_ckpt_path(&path, folder, name)) != 0 && errno != ENOENT)
        PM_WARN("checkpoint", "%s: cannot be removed: %s", path.text, strerror(errno));
    pm_str_free(&path);
}

/* Removes the .json first: without it, the rest counts as left over, never as a damaged
 * checkpoint. */
static void remove_pair(const char *folder, const char *json_name)
{
    struct record r;
    char *file = pm_ckpt_record_read(folder, json_name, &r) == PM_OK ? pm_strdup(r.file) : NULL;

    remove_file(folder, json_name);
    if (file)
        remove_file(folder, file);
    pm_ckpt_record_free(&r);
    pm_free(file);
}

void pm_ckpt_keep_apply(const char *folder, uint64_t step, const struct pm_keep *keep)
{
    struct pm_str path = { 0 };
    struct hours h = { 0 };
    uint64_t *steps;
    size_t count = pm_ckpt_steps(folder, &steps), here = 0, newest = (size_t)keep->newest;
    char name[64];

    while (here < count && steps[here] <= step)
        here++;
    /* Removes steps beyond the saved one. The run was resumed before them because they are
     * damaged. */
    for (size_t i = here; i < count; i++) {
        PM_WARN("checkpoint", "removing %s: its step is after the step from which the run resumes",
                pm_ckpt_step_name(steps[i], "", name));
        remove_pair(folder, pm_ckpt_step_name(steps[i], ".json", name));
    }
    hours_read(pm_ckpt_path(&path, folder, "keep.json"), &h);
    if (keep->every_hours > 0 && h.since == 0 && here > 0) {
        h.since = saved_at(folder, steps[0]);
        h.changed = true;
    }
    bool *stays = pm_calloc(here + 1, sizeof *stays);
    for (size_t i = 0; i < here; i++)
        stays[i] = newest == 0 || i + newest >= here ||
                   hours_keep(&h, folder, steps[i], keep->every_hours);
    if (h.changed && hours_write(path.text, &h) < 0)
        PM_WARN("checkpoint", "%s", pm_error_text());
    for (size_t i = 0; i < here; i++)
        if (!stays[i])
            remove_pair(folder, pm_ckpt_step_name(steps[i], ".json", name));
    pm_free(stays);
    pm_free(h.steps);
    pm_free(steps);
    pm_str_free(&path);
}

/* ---- the best -------------------------------------------------------------------------- */

/* Gives folder/from a second name. Copies its bytes if the file system has no links. */
static int second_name(const char *folder, const char *from, const char *to)
{
    int err = PM_OK;
    struct pm_str source = { 0 }, target = { 0 };
    char *bytes = NULL;
    size_t size;

    pm_ckpt_path(&source, folder, from);
    pm_ckpt_path(&target, folder, to);
    unlink(target.text);
    if (link(source.text, target.text) == 0)
        goto out;
    PM_TRY(pm_file_read(source.text, &bytes, &size));
    PM_TRY(pm_file_write(target.text, bytes, size));
out:
    pm_free(bytes);
    pm_str_free(&source);
    pm_str_free(&target);
    return err;
}

static int best_write(const char *folder, const char *metric, double value, uint64_t step)
{
    cJSON *json = cJSON_CreateObject();
    int err;

    cJSON_AddStringToObject(json, "metric", metric);
    cJSON_AddNumberToObject(json, "value", value);
    cJSON_AddNumberToObject(json, "step", (double)step);
    err = pm_ckpt_write_json(folder, "best.json", json);
    cJSON_Delete(json);
    return err;
}

/* Removes every best-* except this step's. */
static void remove_other_bests(const char *folder, uint64_t step)
{
    struct pm_arena *a = pm_arena_create();
    char **names, json[64], file[64];
    size_t count = 0;

    pm_ckpt_best_name(step, ".json", json);
    pm_ckpt_best_name(step, ".safetensors", file);
    if (pm_list_folder(a, folder, &names, &count) == PM_OK)
        for (size_t i = 0; i < count; i++)
            if (strncmp(names[i], "best-", 5) == 0 && strcmp(names[i], json) != 0 &&
                strcmp(names[i], file) != 0)
                remove_file(folder, names[i]);
    pm_arena_destroy(&a);
}

void pm_ckpt_best_clean(const char *folder)
{
    struct best b = { 0 };

    if (pm_ckpt_best_read(folder, &b) == PM_OK)
        remove_other_bests(folder, b.metric ? b.step : UINT64_MAX);
    else
        PM_DEBUG("checkpoint", "best-* files are not removed: %s", pm_error_text());
    pm_ckpt_best_free(&b);
}

int pm_checkpoint_keep_best(const char *run, uint64_t step, const char *metric, double value,
                            bool higher_is_better, bool *is_best)
{
    int err = PM_OK;
    struct pm_str folder = { 0 };
    struct best former = { 0 };
    struct record r = { 0 };
    char json[64], file[64], best_json[64];
    bool better;

    pm_ckpt_path(&folder, run, "checkpoints");
    if (pm_ckpt_best_read(folder.text, &former) < 0)
        PM_WARN("checkpoint", "the best checkpoint so far is not known: %s", pm_error_text());
    better = !former.metric || strcmp(former.metric, metric) != 0 ||
             (isfinite(value) &&
              (!isfinite(former.value) ||
               (higher_is_better ? value > former.value : value < former.value)));
    if (is_best)
        *is_best = better;
    if (!better)
        goto out;
    PM_TRY(pm_ckpt_record_read(folder.text, pm_ckpt_step_name(step, ".json", json), &r));
    PM_TRY(second_name(folder.text, r.file, pm_ckpt_best_name(step, ".safetensors", file)));
    PM_TRY(pm_ckpt_record_write_as(&r, folder.text, pm_ckpt_best_name(step, ".json", best_json),
                                   file));
    PM_TRY(best_write(folder.text, metric, value, step));
    remove_other_bests(folder.text, step);
out:
    pm_ckpt_record_free(&r);
    pm_ckpt_best_free(&former);
    pm_str_free(&folder);
    return err;
}
