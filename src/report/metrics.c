/* metrics: metrics.jsonl and the speed of a stretch of steps. */
#include "report/html.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pumice/report.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pm_metrics {
    char *path; /* owned */
    int fd;
    uint64_t evaluated; /* UINT64_MAX: no step */
};

/* Whether a line is a whole metrics object of a step up to `last`. *evaluated: its step, where it
 * is of an evaluation. */
static bool line_stays(const char *line, size_t length, uint64_t last, uint64_t *evaluated)
{
    cJSON *json = cJSON_ParseWithLength(line, length);
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(json, "step");
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "kind"));
    bool stays = cJSON_IsNumber(step) && step->valuedouble <= (double)last;

    if (stays && step->valuedouble >= 0 && kind && strcmp(kind, "eval") == 0)
        *evaluated = (uint64_t)step->valuedouble;
    cJSON_Delete(json);
    return stays;
}

/* Keeps the lines up to step `last`. */
static int drop_later_lines(const char *path, uint64_t last, uint64_t *evaluated)
{
    int err = PM_OK;
    char *text = NULL;
    size_t size = 0;
    struct pm_str retained = { 0 };

    if (last > 0)
        PM_TRY(pm_file_read(path, &text, &size));
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        if (!end)
            break; /* cut off */
        size_t length = (size_t)(end - text) - at;
        if (line_stays(text + at, length, last, evaluated))
            pm_str_bytes(&retained, text + at, length + 1);
        at += length + 1;
    }
    if (last == 0 || retained.length != size)
        PM_TRY(pm_file_write(path, retained.text ? retained.text : "", retained.length));
out:
    pm_str_free(&retained);
    pm_free(text);
    return err;
}

int pm_metrics_open(const char *run, uint64_t resumed_step, struct pm_metrics **out)
{
    int err = PM_OK;
    struct pm_metrics *m = pm_calloc(1, sizeof *m);
    struct pm_str path = { 0 };

    m->fd = -1;
    m->evaluated = UINT64_MAX;
    pm_str_add(&path, "%s/metrics.jsonl", run);
    m->path = pm_strdup(path.text);
    if (pm_file_exists(m->path))
        PM_TRY(drop_later_lines(m->path, resumed_step, &m->evaluated));
    m->fd = open(m->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (m->fd < 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be opened: %s", m->path, strerror(errno)));
    *out = m, m = NULL;
out:
    pm_str_free(&path);
    pm_metrics_close(&m);
    return err;
}

void pm_metrics_close(struct pm_metrics **m)
{
    if (!*m)
        return;
    if ((*m)->fd >= 0)
        close((*m)->fd);
    pm_free((*m)->path);
    pm_free(*m);
    *m = NULL;
}

uint64_t pm_metrics_evaluated(const struct pm_metrics *m)
{
    return m->evaluated;
}

int pm_metrics_sync(struct pm_metrics *m)
{
    if (fsync(m->fd) < 0 && errno != EINVAL)
        return pm_fail(PM_EFAIL, "%s: sync failed: %s", m->path, strerror(errno));
    return PM_OK;
}

/* The shortest of the usual precisions that is read back as the same number. */
static void add_number(struct pm_str *s, double value)
{
    char text[40];

    if (!isfinite(value)) {
        pm_str_add(s, "null");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    pm_str_add(s, "%s", text);
}

int pm_metrics_add(struct pm_metrics *m, const char *kind, uint64_t step,
                   const struct pm_metric *list, size_t count)
{
    int err = PM_OK;
    struct pm_str s = { 0 };
    off_t end = lseek(m->fd, 0, SEEK_END);
    ssize_t n;

    pm_str_add(&s, "{\"kind\": \"%s\", \"step\": %llu", kind, (unsigned long long)step);
    for (size_t i = 0; i < count; i++) {
        pm_str_add(&s, ", ");
        pm_html_json_text(&s, list[i].name);
        pm_str_add(&s, ": ");
        add_number(&s, list[i].value);
    }
    pm_str_add(&s, "}\n");
    do
        n = write(m->fd, s.text, s.length);
    while (n < 0 && errno == EINTR);
    if (n > 0 && n < (ssize_t)s.length && ftruncate(m->fd, end) < 0)
        PM_DEBUG("report", "%s: a line stays cut off", m->path);
    if (n != (ssize_t)s.length)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot write: %s", m->path,
                       n < 0 ? pm_write_error(errno) : "the disk is full"));
out:
    pm_str_free(&s);
    return err;
}

void pm_speed_start(struct pm_speed *s, double waited)
{
    *s = (struct pm_speed){ .since = pm_seconds(), .waited = waited };
}

void pm_speed_step(struct pm_speed *s, uint64_t images)
{
    s->steps++;
    s->images += images;
}

struct pm_rates pm_speed_take(struct pm_speed *s, double waited)
{
    double now = pm_seconds(), seconds = now - s->since;
    struct pm_rates r = { 0 };

    if (seconds > 0) {
        r.images_per_second = (double)s->images / seconds;
        r.wait_share = fmin(1, fmax(0, (waited - s->waited) / seconds));
    }
    if (s->steps)
        r.seconds_per_step = seconds / (double)s->steps;
    *s = (struct pm_speed){ .since = now, .waited = waited };
    return r;
}
