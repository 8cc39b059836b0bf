/* report_files: reads a run folder for its page. No content is an error: the page leaves out what
 * cannot be read. */
#include "report/page.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_BYTES = 48 << 10, JSON_BYTES = 64 << 20 };

char *pm_folder_name(const char *folder)
{
    char *real = realpath(folder, NULL);
    const char *path = real ? real : folder, *slash = strrchr(path, '/');
    char *name = pm_strdup(slash && slash[1] ? slash + 1 : path);

    free(real);
    return name;
}

struct pm_report *pm_report_open(const char *folder, bool live)
{
    struct pm_report *r = pm_calloc(1, sizeof *r);

    r->folder = pm_strdup(folder);
    r->name = pm_folder_name(folder);
    r->live = live;
    pm_report_refresh(r);
    return r;
}

void pm_report_rest(struct pm_report *r)
{
    cJSON_Delete(r->run);
    cJSON_Delete(r->config);
    for (int i = 0; i < r->evaluation_count; i++)
        cJSON_Delete(r->evaluations[i]);
    pm_free(r->log);
    r->run = r->config = NULL;
    r->evaluation_count = 0;
    r->log = NULL;
}

void pm_report_close(struct pm_report **r)
{
    if (!*r)
        return;
    pm_report_rest(*r);
    pm_free((*r)->folder);
    pm_free((*r)->name);
    pm_curves_free(&(*r)->curves);
    pm_free(*r);
    *r = NULL;
}

static void read_json(const struct pm_report *r, const char *name, cJSON **out)
{
    struct pm_str path = { 0 };
    struct stat st;
    char *text = NULL;
    size_t size;

    pm_str_add(&path, "%s/%s", r->folder, name);
    if (stat(path.text, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < JSON_BYTES &&
        pm_file_read(path.text, &text, &size) == PM_OK)
        *out = cJSON_ParseWithLength(text, size);
    if (!cJSON_IsObject(*out)) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    pm_free(text);
    pm_str_free(&path);
}

/* The last lines: from the first line's start within the last LOG_BYTES. */
static void read_log(struct pm_report *r)
{
    struct pm_str path = { 0 };
    uint64_t bytes;
    int fd = -1;

    pm_str_add(&path, "%s/log.txt", r->folder);
    if (pm_file_exists(path.text) && pm_file_open(path.text, &fd, &bytes) == PM_OK) {
        const off_t from = bytes > LOG_BYTES ? (off_t)(bytes - LOG_BYTES) : 0;
        char *text = pm_calloc(1, LOG_BYTES + 1);
        ssize_t n = pread(fd, text, LOG_BYTES, from);
        char *start = from > 0 ? strchr(text, '\n') : text;

        r->log = n > 0 ? pm_strdup(start ? start + (from > 0) : text) : NULL;
        pm_free(text);
    }
    if (fd >= 0)
        close(fd);
    pm_str_free(&path);
}

static bool same_text(const cJSON *a, const cJSON *b, const char *member)
{
    const char *x = pm_json_text_of(a, member), *y = pm_json_text_of(b, member);

    return x && y && strcmp(x, y) == 0;
}

/* The same checkpoint, data and split. */
static bool same_evaluation(const cJSON *a, const cJSON *b)
{
    return same_text(a, b, "checkpoint") && same_text(a, b, "data_path") &&
           same_text(a, b, "split");
}

static const char *written(const cJSON *evaluation)
{
    const char *text = pm_json_text_of(evaluation, "written");

    return text ? text : "";
}

/* Replaces the evaluation while training if it is of the same checkpoint, data and split; otherwise
 * inserts it by the time of writing. */
static void add_evaluation(struct pm_report *r, cJSON *e, bool training)
{
    int at = r->evaluation_count;

    if (training) {
        r->evaluations[r->evaluation_count++] = e;
        return;
    }
    if (r->own_evaluation && same_evaluation(r->evaluations[0], e)) {
        const bool later = strcmp(written(e), written(r->evaluations[0])) >= 0;

        cJSON_Delete(later ? r->evaluations[0] : e);
        r->evaluations[0] = later ? e : r->evaluations[0];
        return;
    }
    for (; at > r->own_evaluation && strcmp(written(r->evaluations[at - 1]), written(e)) < 0; at--)
        r->evaluations[at] = r->evaluations[at - 1];
    r->evaluations[at] = e;
    r->evaluation_count++;
}

size_t pm_report_evaluations(struct pm_arena *a, const char *run, const char ***paths)
{
    char **folders = NULL, **names = NULL;
    size_t folder_count = 0, count = 0, n = 0, capacity = 0;
    const char **list = NULL;

    if (pm_is_folder(run) && pm_list_folder(a, run, &folders, &folder_count) < 0)
        folder_count = 0;
    for (size_t i = 0; i < folder_count; i++) {
        const char *folder = pm_arena_printf(a, "%s/%s", run, folders[i]);

        if (strncmp(folders[i], PM_EVALUATIONS_OF, strlen(PM_EVALUATIONS_OF)) != 0 ||
            !pm_is_folder(folder) || pm_list_folder(a, folder, &names, &count) < 0)
            continue;
        for (size_t k = 0; k < count; k++) {
            if (strncmp(names[k], PM_EVALUATION_NAME, strlen(PM_EVALUATION_NAME)) != 0 ||
                !pm_ends_with(names[k], ".json"))
                continue;
            PM_GROW(list, n, capacity);
            list[n++] = pm_arena_printf(a, "%s/%s", folders[i], names[k]);
        }
    }
    *paths = pm_arena_alloc(a, (n + 1) * sizeof **paths);
    if (n)
        memcpy(*paths, list, n * sizeof **paths);
    pm_free(list);
    return n;
}

/* First the last evaluation while training, then those of pumice eval. */
static void read_evaluations(struct pm_report *r)
{
    struct pm_arena *a = pm_arena_create();
    const char **paths;
    const size_t count = pm_report_evaluations(a, r->folder, &paths);
    cJSON *e = NULL;

    read_json(r, "evaluation.json", &e);
    if (e)
        add_evaluation(r, e, true);
    r->own_evaluation = r->evaluation_count;
    for (size_t i = 0; i < count && r->evaluation_count < PM_MAX_EVALUATIONS; i++) {
        e = NULL;
        read_json(r, paths[i], &e);
        if (e)
            add_evaluation(r, e, false);
    }
    pm_arena_destroy(&a);
}

void pm_report_refresh(struct pm_report *r)
{
    struct pm_str path = { 0 };

    pm_report_rest(r);
    read_json(r, "run.json", &r->run);
    read_json(r, "config.json", &r->config);
    read_evaluations(r);
    read_log(r);
    pm_str_add(&path, "%s/metrics.jsonl", r->folder);
    pm_curves_read(&r->curves, path.text);
    pm_str_free(&path);
}

bool pm_report_empty(const struct pm_report *r)
{
    return !r->run && !r->config && r->curves.count == 0;
}

/* ---- what the files say ------------------------------------------------------------------ */

double pm_json_number_of(const cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

const char *pm_json_text_of(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

double pm_report_step(const struct pm_report *r)
{
    return fmax((double)r->curves.last_step, fmax(0, pm_json_number_of(r->run, "step")));
}

const char *pm_report_state(const struct pm_report *r)
{
    const char *state = pm_json_text_of(r->run, "state");

    if (state && strcmp(state, "running") == 0 && !r->live)
        return "interrupted";
    return state;
}

const char *pm_report_split(const struct pm_report *r)
{
    return pm_json_text_of(r->run, "eval_split");
}

bool pm_report_is_threshold(const char *metric)
{
    return strcmp(metric, "best_score") == 0;
}

bool pm_report_is_share(const struct pm_curve *c)
{
    return strcmp(c->name, "loss") != 0 && pm_curve_best(c, true).value <= 1 &&
           pm_curve_best(c, false).value >= 0;
}

static const cJSON *metric_row(const struct pm_report *r, const char *metric)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(r->run, "metrics"))
    {
        const char *name = pm_json_text_of(row, "name");
        if (name && strcmp(name, metric) == 0)
            return row;
    }
    return NULL;
}

bool pm_report_higher(const struct pm_report *r, const char *metric)
{
    const cJSON *row = metric_row(r, metric);

    return row ? cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "higher_is_better"))
               : strstr(metric, "loss") == NULL;
}

const char *pm_report_metric(const struct pm_report *r)
{
    const char *named = pm_json_text_of(r->run, "best_metric");
    const cJSON *row;

    if (named && pm_curves_find(&r->curves, "eval", named))
        return named;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(r->run, "metrics"))
    {
        const char *name = pm_json_text_of(row, "name");
        if (name && pm_curves_find(&r->curves, "eval", name))
            return name;
    }
    for (int i = 0; i < r->curves.count; i++)
        if (strcmp(r->curves.list[i].kind, "eval") == 0 && r->curves.list[i].count > 0)
            return r->curves.list[i].name;
    return NULL;
}

char *pm_report_value(double value, bool share, char buf[PM_TEXT])
{
    return share ? pm_text_share(value, buf) : pm_text_number(value, buf);
}
