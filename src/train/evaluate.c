/* evaluate: one checkpoint, one pass, on the first device of the config. */
#include <pumice/train.h>

#include "train/clones.h"
#include "train/evaluator.h"
#include "train/state.h"

#include <cjson/cJSON.h>

int pm_evaluate(const struct pm_config *c, struct cJSON *report)
{
    struct pm_experiment *e = NULL;
    struct pm_clone_spec *specs;
    struct pm_device *d = NULL;
    struct pm_net *net = NULL;
    struct pm_variables *v = NULL;
    struct pm_checkpoint *from = NULL;
    struct pm_evaluator *ev = NULL;
    double start = pm_seconds();
    struct cJSON *metrics;
    uint64_t count;
    char where[512];
    int specs_count, err = PM_OK;

    PM_TRY(pm_experiment_open(c, PM_OPEN_EVAL, &e));
    PM_TRY(pm_experiment_devices(e, &specs, &specs_count));
    snprintf(where, sizeof where, "%s: eval.checkpoint", c->path);
    PM_TRY(pm_checkpoint_open(c->run.folder, c->eval.checkpoint, where, &from));
    PM_TRY(pm_device_open(&specs[0].info, &(struct pm_device_options){
        .threads = specs[0].threads, .segment_ms = c->run.segment_ms,
        .validate = c->run.validate }, &d));
    PM_TRY(pm_experiment_net(e, 1, false, &net, NULL));
    PM_TRY(pm_variables_create(d, net, false, NULL, &v));
    PM_TRY(pm_values_load(v, from));
    PM_TRY(pm_evaluator_create(e, d, v, &ev));
    cJSON_AddNumberToObject(report, "step", (double)from->step);
    metrics = cJSON_CreateObject();
    err = pm_evaluator_run(ev, true, metrics, &count);
    cJSON_AddNumberToObject(report, "count", (double)count);
    cJSON_AddItemToObject(report, "metrics", metrics);
    PM_TRY(err);
    cJSON_AddStringToObject(report, "checkpoint", from->path);
    cJSON_AddNumberToObject(report, "seconds", pm_seconds() - start);
out:
    pm_evaluator_destroy(&ev);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    pm_device_close(&d);
    pm_checkpoint_close(&from);
    pm_experiment_close(&e);
    return err;
}
