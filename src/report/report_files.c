/* report_files: reads a run folder for its page. Nothing that is found there is an error: what
 * cannot be read is not shown. */
#include "report/page.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_BYTES = 48 << 10, JSON_BYTES = 64 << 20 };

static char *name_of(const char *folder)
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
    r->name = name_of(folder);
    r->live = live;
    pm_report_refresh(r);
    return r;
}

void pm_report_rest(struct pm_report *r)
{
    cJSON_Delete(r->run);
    cJSON_Delete(r->config);
    cJSON_Delete(r->evaluation);
    pm_free(r->log);
    r->run = r->config = r->evaluation = NULL;
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
    int fd;

    pm_str_add(&path, "%s/log.txt", r->folder);
    if (pm_file_open(path.text, &fd, &bytes) == PM_OK) {
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

void pm_report_refresh(struct pm_report *r)
{
    struct pm_str path = { 0 };

    pm_report_rest(r);
    read_json(r, "run.json", &r->run);
    read_json(r, "config.json", &r->config);
    read_json(r, "evaluation.json", &r->evaluation);
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
