/* study_results: study.json and study.jsonl in the study's folder. */
#include "study/study_results.h"

#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- study.json -------------------------------------------------------------------------- */

/* Returns the first member in which two studies differ, or NULL. */
static const char *difference(const cJSON *was, const cJSON *is)
{
    for (const cJSON *m = is->child; m; m = m->next)
        if (!cJSON_Compare(cJSON_GetObjectItemCaseSensitive(was, m->string), m, true))
            return m->string;
    return NULL;
}

static int check_folder(const struct pm_study *s, struct pm_arena *a)
{
    const char *path = pm_arena_printf(a, "%s/study.json", s->folder), *other = NULL;
    char *text = NULL;
    cJSON *was = NULL;
    int err = PM_OK;

    if (!pm_file_exists(path)) {
        text = pm_json_print(s->identity);
        PM_TRY(pm_file_write(path, text, strlen(text)));
        goto out;
    }
    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    PM_TRY(pm_json_parse(path, text, &was));
    other = difference(was, s->identity);
    if (other)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: study.folder: %s belongs to another study, or to another "
                       "version of the program (%s differs): choose another folder, or remove that "
                       "one", s->path, s->folder, other));
out:
    cJSON_Delete(was);
    pm_free(text);
    return err;
}

/* ---- study.jsonl ------------------------------------------------------------------------- */

/* Returns the number of the point with this name, or -1. */
static int point_of(const struct pm_study *s, const char *name)
{
    for (int i = 0; name && i < s->points_count; i++)
        if (strcmp(s->points[i].name, name) == 0)
            return i;
    return -1;
}

static int read_line(struct pm_study_results *r, const struct pm_study *s, const char *line,
                     size_t length, int number, bool retry, struct pm_str *stays)
{
    cJSON *o = cJSON_ParseWithLength(line, length);
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(o, s->metric);
    const char *message = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "error"));
    const cJSON *repeat = cJSON_GetObjectItemCaseSensitive(o, "repeat");
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(o, "step");
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(o, "seconds");
    const int point = point_of(
        s, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "point")));
    int err = PM_OK;

    if (point < 0 || !cJSON_IsNumber(repeat) || repeat->valueint < 0 ||
        repeat->valueint >= s->repeats || !cJSON_IsNumber(step) || step->valuedouble < 0 ||
        step->valuedouble > 0x1p53 ||
        (!message && !cJSON_IsNumber(value)))
        PM_TRY(pm_fail(PM_EDATA, "%s:%d: this is not a result of the study: restore the file, or "
                       "remove it, which starts the runs again where they are", r->path, number));
    if (message && retry)
        goto out;
    PM_GROW(r->list, r->count, r->capacity);
    r->list[r->count++] = (struct pm_study_result){
        .point = point, .repeat = repeat->valueint, .step = (int64_t)step->valuedouble,
        .value = message ? NAN : value->valuedouble,
        .seconds = cJSON_IsNumber(seconds) ? seconds->valuedouble : 0,
        .message = message ? pm_arena_strdup(r->arena, message) : NULL,
    };
    pm_str_bytes(stays, line, length);
out:
    cJSON_Delete(o);
    return err;
}

static int read_lines(struct pm_study_results *r, const struct pm_study *s, bool retry)
{
    struct pm_str stays = { 0 };
    char *text = NULL;
    size_t size = 0;
    int number = 0, err = PM_OK;

    if (!pm_file_exists(r->path))
        return PM_OK;
    PM_TRY(pm_file_read(r->path, &text, &size));
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);

        if (!end)
            break; /* the process died while it wrote */
        const size_t length = (size_t)(end - text) - at + 1;
        PM_TRY(read_line(r, s, text + at, length, ++number, retry, &stays));
        at += length;
    }
    if (stays.length != size)
        PM_TRY(pm_file_write(r->path, stays.text ? stays.text : "", stays.length));
out:
    pm_str_free(&stays);
    pm_free(text);
    return err;
}

int pm_study_results_open(const struct pm_study *s, bool retry, struct pm_study_results *out)
{
    int err = PM_OK;

    *out = (struct pm_study_results){ .arena = pm_arena_create(), .fd = -1 };
    PM_TRY(pm_run_lock(s->folder, &out->lock));
    PM_TRY(check_folder(s, out->arena));
    out->path = pm_strdup(pm_arena_printf(out->arena, "%s/study.jsonl", s->folder));
    PM_TRY(read_lines(out, s, retry));
    out->fd = open(out->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (out->fd < 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be opened: %s", out->path, strerror(errno)));
    PM_TRY(pm_sync_parent(out->path));
out:
    if (err < 0)
        pm_study_results_close(out);
    return err;
}

void pm_study_results_close(struct pm_study_results *r)
{
    if (!r->arena)
        return;
    if (r->fd >= 0)
        close(r->fd);
    pm_run_unlock(&r->lock);
    pm_free(r->path);
    pm_free(r->list);
    pm_arena_destroy(&r->arena);
    *r = (struct pm_study_results){ .fd = -1 };
}

int pm_study_results_add(struct pm_study_results *r, const struct pm_study *s,
                         const struct pm_study_result *one)
{
    cJSON *o = cJSON_CreateObject();
    struct pm_str line = { 0 };
    char *text;
    int err = PM_OK;

    cJSON_AddStringToObject(o, "point", s->points[one->point].name);
    cJSON_AddNumberToObject(o, "repeat", one->repeat);
    cJSON_AddNumberToObject(o, "step", (double)one->step);
    if (!one->message)
        cJSON_AddNumberToObject(o, s->metric, one->value);
    cJSON_AddNumberToObject(o, "seconds", one->seconds);
    if (one->message)
        cJSON_AddStringToObject(o, "error", one->message);
    text = cJSON_PrintUnformatted(o);
    pm_str_add(&line, "%s\n", text);
    cJSON_free(text);
    PM_TRY(pm_write_all(r->fd, r->path, line.text, line.length));
    if (fsync(r->fd) < 0 && errno != EINVAL)
        PM_TRY(pm_fail(PM_EFAIL, "%s: sync failed: %s", r->path, strerror(errno)));
    PM_GROW(r->list, r->count, r->capacity);
    r->list[r->count] = *one;
    if (one->message)
        r->list[r->count].message = pm_arena_strdup(r->arena, one->message);
    r->count++;
out:
    pm_str_free(&line);
    cJSON_Delete(o);
    return err;
}

const struct pm_study_result *pm_study_results_find(const struct pm_study_results *r, int point,
                                                    int repeat, int64_t step)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].point == point && r->list[i].repeat == repeat && r->list[i].step == step)
            return &r->list[i];
    return NULL;
}

int pm_study_mean(const struct pm_study *s, const struct pm_study_results *r, int point,
                  int64_t step, double *mean, double *spread)
{
    double *values = pm_calloc((size_t)s->repeats, sizeof *values);
    int count;

    for (int k = 0; k < s->repeats; k++) {
        const struct pm_study_result *one = pm_study_results_find(r, point, k, step);

        values[k] = one && !one->message ? one->value : NAN;
    }
    count = pm_mean_spread(values, s->repeats, mean, spread);
    pm_free(values);
    return count;
}
