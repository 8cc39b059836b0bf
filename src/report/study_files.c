/* study_files: reads the folder of a study for its table and its page, and ranks the points. */
#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- study.json -------------------------------------------------------------------------- */

static int read_study(struct pm_study_report *s)
{
    struct pm_str path = { 0 };
    char *text = NULL;
    int err = PM_OK;

    pm_str_add(&path, "%s/study.json", s->folder);
    PM_TRY(pm_text_read(path.text, PM_MOST_TEXT, &text));
    s->study = cJSON_Parse(text);
    if (!cJSON_IsObject(s->study))
        PM_TRY(pm_fail(PM_EDATA, "%s: this is no file of a study: restore it, or remove the folder",
                       path.text));
out:
    pm_free(text);
    pm_str_free(&path);
    return err;
}

/* A whole number of a member, within [low, high]; other is given for anything else. */
static int64_t whole_of(const cJSON *o, const char *name, double low, double high, int64_t other)
{
    const double v = pm_json_number_of(o, name);

    return v >= low && v <= high ? (int64_t)v : other;
}

static void read_points(struct pm_study_report *s)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(s->study, "points"), *p;
    const char *metric = pm_json_text_of(s->study, "metric");

    s->metric = metric ? metric : "";
    s->higher_is_better =
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s->study, "higher_is_better"));
    s->repeats = (int)whole_of(s->study, "repeats", 1, 1e6, 1);
    s->seed = whole_of(s->study, "seed", -0x1p53, 0x1p53, 0);
    if (!cJSON_IsArray(list))
        list = NULL;
    s->rows = pm_calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *s->rows);
    cJSON_ArrayForEach(p, list)
    {
        const char *name = pm_json_text_of(p, "name");
        const cJSON *values = cJSON_GetObjectItemCaseSensitive(p, "values");

        s->rows[s->points] = (struct pm_study_row){
            .name = name ? name : "", .point = s->points, .step = -1, .mean = NAN, .spread = NAN,
            .values = cJSON_IsObject(values) ? values : NULL,
        };
        s->points++;
    }
}

/* ---- study.jsonl ------------------------------------------------------------------------- */

struct result {
    int point, repeat;
    int64_t step;
    double value;        /* NAN: the run failed */
    const char *message; /* borrowed; NULL: it did not */
};

/* The number of the point with this name, or -1. The search begins at *at, because neighbouring
 * lines have neighbouring points. */
static int point_of(const struct pm_study_report *s, const char *name, int *at)
{
    for (int k = 0; name && k < s->points; k++) {
        const int i = (*at + k) % s->points;

        if (strcmp(s->rows[i].name, name) == 0)
            return *at = i;
    }
    return -1;
}

static void read_lines(struct pm_study_report *s)
{
    struct pm_str path = { 0 };
    char *text = NULL;
    size_t size = 0;

    s->results = cJSON_CreateArray();
    pm_str_add(&path, "%s/study.jsonl", s->folder);
    if (!pm_file_exists(path.text) || pm_file_read(path.text, &text, &size) < 0)
        size = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);

        if (!end)
            break; /* somebody writes it now, or died while writing */
        cJSON *o = cJSON_ParseWithLength(text + at, (size_t)(end - text) - at);
        if (o)
            cJSON_AddItemToArray(s->results, o);
        at = (size_t)(end - text) + 1;
    }
    pm_free(text);
    pm_str_free(&path);
}

/* Whether a line is a result of the study. */
static bool read_result(struct pm_study_report *s, const cJSON *o, int *at, struct result *out)
{
    const int64_t step = whole_of(o, "step", 0, 0x1p53, -1);
    const int repeat = (int)whole_of(o, "repeat", 0, s->repeats - 1, -1);

    *out = (struct result){
        .point = point_of(s, pm_json_text_of(o, "point"), at), .repeat = repeat, .step = step,
        .message = pm_json_text_of(o, "error"), .value = pm_json_number_of(o, s->metric),
    };
    if (out->point < 0 || repeat < 0 || step < 0 || (!out->message && !isfinite(out->value)))
        return false;
    if (out->message)
        out->value = NAN;
    s->seconds += fmax(0, pm_json_number_of(o, "seconds")); /* fmax ignores NAN */
    return true;
}

/* Orders steps: 0 is the end of a run. */
static int compare_steps(int64_t a, int64_t b)
{
    const uint64_t x = (uint64_t)a - 1, y = (uint64_t)b - 1;

    return x < y ? -1 : x > y;
}

/* By point, then by step, then by repeat: sums do not depend on the order of the lines. */
static int compare_results(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    const int steps = compare_steps(x->step, y->step);

    return x->point != y->point ? x->point - y->point : steps ? steps : x->repeat - y->repeat;
}

/* ---- rows -------------------------------------------------------------------------------- */

int pm_mean_spread(const double *values, int count, double *mean, double *spread)
{
    double sum = 0, squares = 0;
    int n = 0;

    for (int i = 0; i < count; i++)
        if (isfinite(values[i])) {
            sum += values[i];
            n++;
        }
    *mean = n ? sum / n : NAN;
    for (int i = 0; i < count; i++)
        if (isfinite(values[i]))
            squares += (values[i] - *mean) * (values[i] - *mean);
    *spread = n > 1 ? sqrt(squares / (n - 1)) : n ? 0 : NAN;
    return n;
}

/* Fills the row of the results of one point, [count] by step and repeat. */
static void fill_row(struct pm_study_report *s, const struct result *list, int count)
{
    struct pm_study_row *w = &s->rows[list->point];
    double *values = pm_calloc((size_t)count, sizeof *values);
    bool *seen = pm_calloc((size_t)s->repeats, sizeof *seen);

    w->step = list[count - 1].step;
    for (int i = 0; i < count; i++) /* the last step with a value, else the last one */
        if (isfinite(list[i].value))
            w->step = list[i].step;
    for (int i = count; i-- > 0;) { /* a run's last result is its state */
        if (!seen[list[i].repeat]) {
            seen[list[i].repeat] = true;
            s->runs_done++;
            s->runs_failed += list[i].message != NULL;
        }
    }
    for (int i = 0; i < count; i++) {
        if (list[i].step != w->step)
            continue;
        values[w->runs++] = list[i].value;
        w->failed += list[i].message != NULL;
        w->message = list[i].message ? list[i].message : w->message;
    }
    pm_mean_spread(values, w->runs, &w->mean, &w->spread);
    pm_free(values);
    pm_free(seen);
}

static bool higher; /* for qsort */

static int compare_rows(const void *a, const void *b)
{
    const struct pm_study_row *x = a, *y = b;

    if ((x->step < 0) != (y->step < 0))
        return x->step < 0 ? 1 : -1;
    if (x->step != y->step)
        return -compare_steps(x->step, y->step);
    if (isfinite(x->mean) != isfinite(y->mean))
        return isfinite(x->mean) ? -1 : 1;
    if (isfinite(x->mean) && x->mean != y->mean)
        return (x->mean > y->mean) == higher ? -1 : 1;
    return x->point - y->point;
}

static void make_rows(struct pm_study_report *s)
{
    struct result *list =
        pm_calloc((size_t)cJSON_GetArraySize(s->results) + 1, sizeof *list);
    const cJSON *o;
    int count = 0, at = 0;

    cJSON_ArrayForEach(o, s->results)
        count += read_result(s, o, &at, &list[count]);
    qsort(list, (size_t)count, sizeof *list, compare_results);
    for (int i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && list[i + n].point == list[i].point;)
            n++;
        fill_row(s, &list[i], n);
    }
    higher = s->higher_is_better;
    qsort(s->rows, (size_t)s->points, sizeof *s->rows, compare_rows);
    pm_free(list);
}

/* ---- the interface ----------------------------------------------------------------------- */

bool pm_is_study(const char *folder)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/study.json", folder);
    const bool is = pm_file_exists(path.text);
    pm_str_free(&path);
    return is;
}

int pm_study_report_open(const char *folder, struct pm_study_report **out)
{
    struct pm_study_report *s = pm_calloc(1, sizeof *s);
    int err = PM_OK;

    s->folder = pm_strdup(folder);
    s->name = pm_folder_name(folder);
    PM_TRY(read_study(s));
    read_points(s);
    read_lines(s);
    make_rows(s);
    *out = s, s = NULL;
out:
    pm_study_report_close(&s);
    return err;
}

void pm_study_report_close(struct pm_study_report **study)
{
    struct pm_study_report *s = *study;

    if (!s)
        return;
    cJSON_Delete(s->study);
    cJSON_Delete(s->results);
    pm_free(s->rows);
    pm_free(s->folder);
    pm_free(s->name);
    pm_free(s);
    *study = NULL;
}

const char *pm_study_folder_of(struct pm_arena *a, const char *point, int repeats, int64_t seed,
                               int repeat)
{
    return repeats > 1 ? pm_arena_printf(a, "%s,seed=%lld", point, (long long)(seed + repeat))
                       : pm_arena_strdup(a, point);
}
