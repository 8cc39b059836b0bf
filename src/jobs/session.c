/* session: opens the data, checkpoint, device, net, variables and values, in this order. Without
 * pictures the checkpoint comes first, because it supplies the classes. Closes them in reverse. */
#include "jobs/session.h"

#include "clones/clones.h"
#include "checkpoints/warm_start.h"

#include <cjson/cJSON.h>

/* Whether the values come from the net's own file: eval.checkpoint names it, or there is no other
 * source. */
static bool is_own(const struct pm_config *c)
{
    const char *named = c->eval.checkpoint;

    if (!c->model.onnx)
        return false;
    return named && named[0]
               ? pm_same_file(named, c->model.onnx)
               : !c->run.folder || pm_checkpoint_newest_step(c->run.folder) < 0;
}

int pm_session_checkpoint(const struct pm_config *c, struct pm_checkpoint **out, bool *initial)
{
    const char *folder = c->run.folder, *own = c->model.onnx;
    char where[512];
    int err = PM_OK;

    *initial = is_own(c);
    const char *key = *initial ? "model.onnx" : "eval.checkpoint";

    snprintf(where, sizeof where, "%s: %s", pm_config_source(c, key), key);
    if (!*initial)
        return pm_checkpoint_open(folder, c->eval.checkpoint, where, out);
    PM_TRY(pm_experiment_need_onnx(c));
    if (c->model.onnx_new_head)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the last layer is new (model.onnx_new_head) and has no values before "
                       "training: train first, or set model.onnx_new_head=false",
                       where));
    PM_TRY(pm_checkpoint_open(NULL, own, where, out));
    if (c->eval.checkpoint && c->eval.checkpoint[0])
        PM_INFO("onnx", "%s: the weights are those of the model file (eval.checkpoint names it)",
                own);
    else
        PM_INFO("onnx", "%s: the weights are those of the model file: %s%s", own,
                folder ? folder : "run.folder", folder ? " has no checkpoint" : " is not set");
out:
    return err;
}

/* Creates the net's variables and loads their values, on the session's device. */
static int load_values(const struct pm_config *c, struct pm_net_want want, struct pm_session *s,
                       bool initial)
{
    char where[512];
    int err = PM_OK;

    snprintf(where, sizeof where, "%s: eval.checkpoint", pm_config_source(c, "eval.checkpoint"));
    PM_TRY(pm_experiment_net(s->e, want, &s->net, NULL));
    PM_TRY(pm_variables_create(s->device, s->net, false, NULL, &s->variables));
    PM_TRY(pm_variables_allocate(s->variables));
    if (initial)
        PM_TRY(pm_variables_init(s->variables, (uint64_t)c->run.seed, NULL));
    else
        PM_TRY(pm_values_load(s->variables, s->from, s->averages, where));
out:
    return err;
}

int pm_session_open(const struct pm_config *c, bool pictures, struct pm_net_want want,
                    struct pm_session *s)
{
    struct pm_device_options options = pm_experiment_device_options(c);
    struct pm_clone_spec *specs;
    bool initial;
    int count, err = PM_OK;

    *s = (struct pm_session){ 0 };
    if (pictures)
        PM_TRY(pm_experiment_open(c, PM_OPEN_EVAL, &s->e));
    PM_TRY(pm_session_checkpoint(c, &s->from, &initial));
    if (!pictures)
        PM_TRY(pm_experiment_open_classes(c, s->from, &s->e));
    PM_TRY(pm_experiment_devices(s->e, &specs, &count));
    PM_TRY(pm_experiment_say_devices(s->e));
    PM_TRY(pm_checkpoint_choose_averages(s->from, c->eval.averages,
                                         pm_config_source(c, "eval.averages"), "eval.averages",
                                         &s->averages));
    options.threads = specs[0].threads;
    PM_TRY(pm_device_open(&specs[0].info, &options, &s->device));
    PM_TRY(load_values(c, want, s, initial));
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
