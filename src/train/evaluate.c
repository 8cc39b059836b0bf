/* evaluate: one checkpoint, one pass, on the first device of the config. */
#include <pumice/train.h>

#include "train/evaluator.h"
#include "train/run_page.h"
#include "train/session.h"
#include "train/summaries.h"

#include <cjson/cJSON.h>
#include <pumice/formats.h>
#include <string.h>

/* Whether a checkpoint is the run's own. */
static bool is_inside(const char *path, const char *folder)
{
    const size_t n = folder ? strlen(folder) : 0;

    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

int pm_evaluate(const struct pm_config *c, struct cJSON *report)
{
    struct pm_session s = { 0 };
    struct pm_evaluator *ev = NULL;
    struct cJSON *metrics = NULL, *detail = NULL;
    double start = pm_seconds();
    uint64_t count, skipped;
    int err = PM_OK;

    PM_TRY(pm_session_open(c, PM_OPEN_EVAL, &s));
    PM_TRY(pm_evaluator_create(s.e, s.device, s.variables, &ev));
    metrics = cJSON_CreateObject();
    detail = cJSON_CreateObject();
    PM_TRY(pm_evaluator_run(ev, metrics, detail, &count, &skipped));
    if (is_inside(s.from->path, c->run.folder))
        pm_run_page_evaluated(c->run.folder, s.from->step, count, metrics, detail);
    cJSON_AddNumberToObject(report, "step", (double)s.from->step);
    cJSON_AddNumberToObject(report, "count", (double)count);
    if (c->data.on_corrupt == PM_CORRUPT_SKIP)
        cJSON_AddNumberToObject(report, "skipped", (double)skipped);
    cJSON_AddItemToObject(report, "metrics", metrics);
    metrics = NULL;
    cJSON_AddStringToObject(report, "checkpoint", s.from->path);
    cJSON_AddBoolToObject(report, "averages", s.averages);
    cJSON_AddNumberToObject(report, "seconds", pm_seconds() - start);
out:
    cJSON_Delete(metrics);
    cJSON_Delete(detail);
    pm_evaluator_destroy(&ev);
    pm_session_close(&s);
    return err;
}

void pm_evaluation_events(const struct pm_config *c, const struct cJSON *report,
                          struct pm_events **events)
{
    const uint64_t step = (uint64_t)cJSON_GetObjectItem(report, "step")->valuedouble;
    const struct cJSON *m;
    struct pm_str folder = { 0 };
    char tag[256];
    int err = PM_OK;

    pm_str_add(&folder, "%s/eval_watch", c->run.folder);
    if (!*events) {
        PM_TRY(pm_events_create(folder.text, events));
        PM_TRY(pm_events_session(*events, PM_EVENTS_START, step, NULL));
    }
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(report, "metrics")) if (cJSON_IsNumber(m))
        pm_events_scalar(*events, pm_summaries_eval_tag(m->string, tag, sizeof tag),
                         m->valuedouble);
    PM_TRY(pm_events_write(*events, step));
out:
    if (err < 0)
        PM_WARN("events", "%s; TensorBoard lacks this evaluation", pm_error_text());
    pm_str_free(&folder);
}
