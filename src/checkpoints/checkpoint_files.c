/* checkpoint_files: the files in RUN/checkpoints: their names, the record (.json) beside each
 * tensors' file, and best.json. */
#include "checkpoints/checkpoint_files.h"

#include <errno.h>
#include <pumice/options.h>
#include <stdlib.h>
#include <string.h>

const char *pm_ckpt_path(struct pm_str *s, const char *folder, const char *name)
{
    s->length = 0;
    pm_str_add(s, "%s/%s", folder, name);
    return s->text;
}

void pm_ckpt_folder(struct pm_str *folder, const char *run)
{
    if (!pm_is_folder(pm_ckpt_path(folder, run, "checkpoints"))) {
        folder->length = 0;
        pm_str_add(folder, "%s", run);
    }
}

char *pm_ckpt_step_name(uint64_t step, const char *suffix, char buf[64])
{
    snprintf(buf, 64, "step-%06llu%s", (unsigned long long)step, suffix);
    return buf;
}

char *pm_ckpt_best_name(uint64_t step, const char *suffix, char buf[64])
{
    snprintf(buf, 64, "best-%06llu%s", (unsigned long long)step, suffix);
    return buf;
}

/* Reads the step of "step-000123.json"; false for other names. */
static bool step_of(const char *name, uint64_t *step)
{
    char again[64], *end;

    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
        return false;
    errno = 0;
    *step = strtoull(name + 5, &end, 10);
    return errno == 0 && strcmp(pm_ckpt_step_name(*step, ".json", again), name) == 0;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

size_t pm_ckpt_steps(const char *folder, uint64_t **steps)
{
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t count = 0, n = 0;

    *steps = NULL;
    if (pm_is_folder(folder) && pm_list_folder(a, folder, &names, &count) == PM_OK) {
        *steps = pm_malloc((count + 1) * sizeof **steps);
        for (size_t i = 0; i < count; i++)
            n += step_of(names[i], &(*steps)[n]);
        qsort(*steps, n, sizeof **steps, ascending);
    }
    pm_arena_destroy(&a);
    return n;
}

int64_t pm_checkpoint_newest_step(const char *run)
{
    struct pm_str folder = { 0 };
    uint64_t *steps;
    int64_t newest = -1;
    size_t count;

    pm_ckpt_folder(&folder, run);
    count = pm_ckpt_steps(folder.text, &steps);
    if (count)
        newest = (int64_t)steps[count - 1];
    pm_free(steps);
    pm_str_free(&folder);
    return newest;
}

/* ---- records --------------------------------------------------------------------------- */

static bool is_hex64(const char *s)
{
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static int record_parse(const char *path, struct record *r)
{
    const cJSON *step, *file, *sha;

    r->json = cJSON_Parse(r->text);
    step = cJSON_GetObjectItemCaseSensitive(r->json, "step");
    file = cJSON_GetObjectItemCaseSensitive(r->json, "file");
    sha = cJSON_GetObjectItemCaseSensitive(r->json, "sha256");
    if (!cJSON_IsNumber(step) || !cJSON_IsString(file) || !cJSON_IsString(sha) ||
        !(step->valuedouble >= 0 && step->valuedouble <= 0x1p53) || !is_hex64(sha->valuestring) ||
        strchr(file->valuestring, '/') || file->valuestring[0] == '.')
        return pm_fail(
            PM_EDATA,
            "%s: this does not describe a checkpoint: step, file or sha256 is missing or invalid",
            path);
    r->step = (uint64_t)step->valuedouble;
    r->file = file->valuestring;
    r->sha256 = sha->valuestring;
    return PM_OK;
}

int pm_ckpt_record_read(const char *folder, const char *name, struct record *r)
{
    int err = PM_OK;
    struct pm_str path = { 0 };

    *r = (struct record){ 0 };
    pm_ckpt_path(&path, folder, name);
    PM_TRY(pm_text_read(path.text, PM_MOST_TEXT, &r->text));
    PM_TRY(record_parse(path.text, r));
out:
    pm_str_free(&path);
    return err;
}

void pm_ckpt_record_free(struct record *r)
{
    cJSON_Delete(r->json);
    pm_free(r->text);
    *r = (struct record){ 0 };
}

bool pm_ckpt_is_record(const char *folder, const char *name)
{
    uint64_t step;
    char best[64];
    const char *digits = name + strcspn(name, "0123456789");
    bool is = step_of(name, &step) ||
              strcmp(pm_ckpt_best_name(strtoull(digits, NULL, 10), ".json", best), name) == 0;
    struct pm_str path = { 0 };
    char *text = NULL;
    cJSON *json = NULL;

    if (!is && pm_text_read(pm_ckpt_path(&path, folder, name), PM_MOST_TEXT, &text) == PM_OK) {
        json = cJSON_Parse(text);
        is = cJSON_GetObjectItemCaseSensitive(json, "sha256") != NULL;
    }
    cJSON_Delete(json);
    pm_free(text);
    pm_str_free(&path);
    return is;
}

int pm_ckpt_write_json(const char *folder, const char *name, const cJSON *json)
{
    struct pm_str path = { 0 };
    char *text = pm_json_print(json);
    int err = pm_file_write(pm_ckpt_path(&path, folder, name), text, strlen(text));

    pm_free(text);
    pm_str_free(&path);
    return err;
}

int pm_ckpt_record_write_as(const struct record *r, const char *folder, const char *name,
                            const char *file)
{
    cJSON *copy = cJSON_Duplicate(r->json, true);
    int err;

    cJSON_ReplaceItemInObjectCaseSensitive(copy, "file", cJSON_CreateString(file));
    err = pm_ckpt_write_json(folder, name, copy);
    cJSON_Delete(copy);
    return err;
}

/* ---- the best -------------------------------------------------------------------------- */

int pm_ckpt_best_read(const char *folder, struct best *b)
{
    int err = PM_OK;
    struct pm_str path = { 0 };
    char *text = NULL;
    cJSON *json = NULL;
    const cJSON *metric, *value, *step;

    *b = (struct best){ 0 };
    if (!pm_file_exists(pm_ckpt_path(&path, folder, "best.json")))
        goto out;
    PM_TRY(pm_text_read(path.text, PM_MOST_TEXT, &text));
    json = cJSON_Parse(text);
    metric = cJSON_GetObjectItemCaseSensitive(json, "metric");
    value = cJSON_GetObjectItemCaseSensitive(json, "value");
    step = cJSON_GetObjectItemCaseSensitive(json, "step");
    if (!cJSON_IsString(metric) || !(cJSON_IsNumber(value) || cJSON_IsNull(value)) ||
        !cJSON_IsNumber(step) ||
        !(step->valuedouble >= 0 && step->valuedouble <= 0x1p53))
        PM_TRY(pm_fail(PM_EDATA, "%s: metric, value or step is missing or invalid; remove the file",
                       path.text));
    b->metric = pm_strdup(metric->valuestring);
    b->value = cJSON_GetNumberValue(value); /* null: NAN */
    b->step = (uint64_t)step->valuedouble;
out:
    cJSON_Delete(json);
    pm_free(text);
    pm_str_free(&path);
    return err;
}

void pm_ckpt_best_free(struct best *b)
{
    pm_free(b->metric);
    *b = (struct best){ 0 };
}
