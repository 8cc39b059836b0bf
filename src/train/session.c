/* session: opened in the order data, device, net, variables, values; closed in reverse. */
#include "train/session.h"

#include "train/averages.h"
#include "train/clones.h"
#include "train/state.h"

#include <cjson/cJSON.h>

int pm_session_open(const struct pm_config *c, int open, struct pm_session *s)
{
    struct pm_clone_spec *specs;
    char where[512];
    int count, err = PM_OK;

    *s = (struct pm_session){ 0 };
    PM_TRY(pm_experiment_open(c, open, &s->e));
    PM_TRY(pm_experiment_devices(s->e, &specs, &count));
    snprintf(where, sizeof where, "%s: eval.checkpoint", c->path);
    PM_TRY(pm_checkpoint_open(c->run.folder, c->eval.checkpoint, where, &s->from));
    PM_TRY(pm_averages_choose(s->from, c->eval.averages, c->path, "eval.averages", &s->averages));
    PM_TRY(pm_device_open(&specs[0].info, &(struct pm_device_options){
        .threads = specs[0].threads, .segment_ms = c->run.segment_ms,
        .hang_seconds = pm_experiment_hang_seconds(c), .validate = c->run.validate },
        &s->device));
    PM_TRY(pm_experiment_net(s->e, 1, PM_USE_HEADS, &s->net, NULL));
    PM_TRY(pm_variables_create(s->device, s->net, false, NULL, &s->variables));
    PM_TRY(pm_variables_allocate(s->variables));
    PM_TRY(pm_values_load(s->variables, s->from, s->averages, where));
out:
    if (err < 0)
        pm_session_close(s);
    return err;
}

void pm_session_add_step(const struct pm_session *s, struct cJSON *report)
{
    if (s->from->has_step)
        cJSON_AddNumberToObject(report, "step", (double)s->from->step);
    else
        cJSON_AddNullToObject(report, "step");
}

void pm_session_close(struct pm_session *s)
{
    pm_variables_destroy(&s->variables);
    pm_net_destroy(&s->net);
    pm_device_close(&s->device);
    pm_checkpoint_close(&s->from);
    pm_experiment_close(&s->e);
}
