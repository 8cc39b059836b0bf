/* evaluate: one checkpoint, one pass, on the first device of the config. */
#include <pumice/train.h>

#include "train/evaluator.h"
#include "train/session.h"

#include <cjson/cJSON.h>

int pm_evaluate(const struct pm_config *c, struct cJSON *report)
{
    struct pm_session s = { 0 };
    struct pm_evaluator *ev = NULL;
    struct cJSON *metrics = NULL;
    double start = pm_seconds();
    uint64_t count, skipped;
    int err = PM_OK;

    PM_TRY(pm_session_open(c, PM_OPEN_EVAL, &s));
    PM_TRY(pm_evaluator_create(s.e, s.device, s.variables, &ev));
    metrics = cJSON_CreateObject();
    PM_TRY(pm_evaluator_run(ev, metrics, &count, &skipped));
    cJSON_AddNumberToObject(report, "step", (double)s.from->step);
    cJSON_AddNumberToObject(report, "count", (double)count);
    if (c->data.on_corrupt == PM_CORRUPT_SKIP)
        cJSON_AddNumberToObject(report, "skipped", (double)skipped);
    cJSON_AddItemToObject(report, "metrics", metrics);
    metrics = NULL;
    cJSON_AddStringToObject(report, "checkpoint", s.from->path);
    cJSON_AddNumberToObject(report, "seconds", pm_seconds() - start);
out:
    cJSON_Delete(metrics);
    pm_evaluator_destroy(&ev);
    pm_session_close(&s);
    return err;
}
