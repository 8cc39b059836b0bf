/* same_run: compares two run folders of one config: the kept checkpoints and their bytes, the
 * best one, each line of metrics.jsonl without times, and the last evaluation. */
#ifndef SAME_RUN_H
#define SAME_RUN_H

#include "base/unit.h"

#include <cjson/cJSON.h>

static inline char *run_text(const char *run, const char *name, size_t *size)
{
    struct pm_str path = { 0 };
    char *data = NULL;

    pm_str_add(&path, "%s/%s", run, name);
    if (pm_file_read(path.text, &data, size) < 0)
        fail_msg("%s", pm_error_text());
    pm_str_free(&path);
    return data;
}

static inline bool run_has(const char *run, const char *name)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/%s", run, name);
    const bool has = pm_file_exists(path.text);
    pm_str_free(&path);
    return has;
}

/* The file has the same bytes in both runs or is missing in both. */
static inline void same_run_file(const char *a, const char *b, const char *name)
{
    size_t n, m;

    if (run_has(a, name) != run_has(b, name))
        fail_msg("%s is only in %s", name, run_has(a, name) ? a : b);
    if (!run_has(a, name))
        return;
    char *x = run_text(a, name, &n), *y = run_text(b, name, &m);
    if (n != m || memcmp(x, y, n) != 0)
        fail_msg("%s of %s and %s differ", name, a, b);
    pm_free(x);
    pm_free(y);
}

/* Members that depend on the clock. */
static inline bool is_time(const char *key)
{
    static const char *const times[] = { "images_per_second", "seconds_per_step", "wait_share",
                                         "queue_fill" };

    for (size_t i = 0; i < PM_COUNT(times); i++)
        if (strcmp(key, times[i]) == 0)
            return true;
    return strncmp(key, "seconds_", 8) == 0 || strncmp(key, "rank_", 5) == 0 ||
           strcmp(key, "slowest_rank") == 0 || strcmp(key, "exchanged_bytes") == 0;
}

/* The line as JSON without its times; the caller frees it. */
static inline char *timeless(const char *line)
{
    cJSON *json = cJSON_Parse(line);

    if (!json)
        fail_msg("no JSON in metrics.jsonl: %s", line);
    for (cJSON *m = json->child, *next; m; m = next) {
        next = m->next;
        if (is_time(m->string))
            cJSON_Delete(cJSON_DetachItemViaPointer(json, m));
    }
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}

static inline void same_metrics(const char *a, const char *b)
{
    char *text_a = run_text(a, "metrics.jsonl", NULL), *rest_a;
    char *text_b = run_text(b, "metrics.jsonl", NULL), *rest_b;
    char *x = strtok_r(text_a, "\n", &rest_a), *y = strtok_r(text_b, "\n", &rest_b);

    for (; x && y; x = strtok_r(NULL, "\n", &rest_a), y = strtok_r(NULL, "\n", &rest_b)) {
        char *p = timeless(x), *q = timeless(y);

        if (strcmp(p, q) != 0)
            fail_msg("metrics.jsonl of %s and %s differ:\n%s\n%s", a, b, p, q);
        cJSON_free(p);
        cJSON_free(q);
    }
    if (x || y)
        fail_msg("metrics.jsonl of %s and %s: one ends where the other has %s", a, b, x ? x : y);
    pm_free(text_a);
    pm_free(text_b);
}

/* Compares names and bytes in RUN/checkpoints, except keep.json, which holds times. */
static inline void same_checkpoints(const char *a, const char *b)
{
    struct pm_arena *arena = pm_arena_create();
    char **x = NULL, **y = NULL;
    size_t n = 0, m = 0;

    if (pm_list_folder(arena, pm_arena_printf(arena, "%s/checkpoints", a), &x, &n) < 0 ||
        pm_list_folder(arena, pm_arena_printf(arena, "%s/checkpoints", b), &y, &m) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < n && i < m; i++) {
        if (strcmp(x[i], y[i]) != 0)
            fail_msg("checkpoints of %s and %s differ: %s and %s", a, b, x[i], y[i]);
        if (strcmp(x[i], "keep.json") != 0)
            same_run_file(a, b, pm_arena_printf(arena, "checkpoints/%s", x[i]));
    }
    if (n != m)
        fail_msg("checkpoints: %zu files in %s, %zu in %s; %s is one too many", n, a, m, b,
                 n > m ? x[m] : y[n]);
    pm_arena_destroy(&arena);
}

/* The step of evaluation.json; -1 without the file. */
static inline int evaluated_step(const char *run)
{
    int step = -1;

    if (run_has(run, "evaluation.json")) {
        char *text = run_text(run, "evaluation.json", NULL);
        cJSON *json = cJSON_Parse(text);

        step = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(json, "step"));
        cJSON_Delete(json);
        pm_free(text);
    }
    return step;
}

/* Fails the test when the runs differ. */
static inline void same_run(const char *a, const char *b)
{
    same_checkpoints(a, b);
    same_run_file(a, b, "latest");
    same_run_file(a, b, "eval/per_class.csv");
    same_metrics(a, b);
    assert_int_equal(evaluated_step(a), evaluated_step(b));
}

#endif
