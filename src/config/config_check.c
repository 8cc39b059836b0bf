/* Checks of value combinations in a config: keys that exclude, need or limit each other. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <string.h>

static int check_size(const struct pm_config *c, const char *path, struct pm_ints size)
{
    if (size.count <= 2)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s %s: %d numbers; a side or [height, width] is needed",
                   pm_config_place(c, path), path, size.count);
}

static int check_model(const struct pm_config *c)
{
    if (c->model.layers && !cJSON_IsArray(c->model.layers))
        return pm_fail(PM_ECONFIG, "%s model.layers: a list [ { \"layer\": ... }, ... ] is needed",
                       pm_config_place(c, "model.layers"));
    const int given = (c->model.name != NULL) + (c->model.layers != NULL) + (c->model.onnx != NULL);

    if (given > 1)
        return pm_fail(PM_ECONFIG,
                       "%s model: %s and %s are both given; give only one, which defines the net",
                       pm_config_place(c, c->model.onnx ? "model.onnx" : "model.layers"),
                       c->model.name ? "name" : "layers", c->model.onnx ? "onnx" : "layers");
    if (given == 0 && !c->study.vary) /* study.vary may give it; the points are checked */
        return pm_fail(PM_ECONFIG,
                       "%s: model.name is not given (nor model.layers, nor model.onnx); it selects "
                       "the net, as in model.name=lenet",
                       pm_config_source(c, "model.name"));
    const char *of = c->model_row ? c->model_row->task : NULL;
    const char *also = c->task_row ? c->task_row->nets_of : NULL;

    if (of && strcmp(of, c->task) != 0 && (!also || strcmp(of, also) != 0))
        return pm_fail(PM_ECONFIG, "%s model.name: %s is a net for %s, but task is %s",
                       pm_config_place(c, "model.name"), c->model.name, of, c->task);
    if (!c->model.onnx && (c->model.onnx_logits || c->model.onnx_new_head))
        return pm_fail(
            PM_ECONFIG, "%s model.%s: this key is for ONNX models, but model.onnx is not given",
            pm_config_place(c, c->model.onnx_logits ? "model.onnx_logits" : "model.onnx_new_head"),
            c->model.onnx_logits ? "onnx_logits" : "onnx_new_head");
    return PM_OK;
}

/* Quantised training has one clone and whole batches, as in the originals. */
static int check_quantized(const struct pm_config *c)
{
    const char *unused = c->model.quantize_freeze_steps > 0 ? "model.quantize_freeze_steps"
                         : c->model.quantize_symmetric      ? "model.quantize_symmetric"
                                                            : NULL;

    if (c->model.quantize_delay < 0 && unused)
        return pm_fail(PM_ECONFIG,
                       "%s %s: it is set, but the net is not quantised in training: set "
                       "model.quantize_delay to 0 or more, or remove the key",
                       pm_config_place(c, unused), unused);
    if (c->model.quantize_delay < 0)
        return PM_OK;
    if (c->devices_count > 1)
        return pm_fail(PM_ECONFIG,
                       "%s devices: %d are given, but a net that is quantised in training "
                       "(model.quantize_delay %d) can be trained on one device only: give one, or "
                       "set model.quantize_delay to -1",
                       pm_config_place(c, "devices"), c->devices_count, c->model.quantize_delay);
    if (c->run.micro_batches > 1)
        return pm_fail(PM_ECONFIG,
                       "%s run.micro_batches: %d, but a net that is quantised in training "
                       "(model.quantize_delay %d) computes its ranges from the whole batch: set it "
                       "to 1, or model.quantize_delay to -1",
                       pm_config_place(c, "run.micro_batches"), c->run.micro_batches,
                       c->model.quantize_delay);
    return PM_OK;
}

/* Checks that key names a metric of the task. The net's own list is checked when it is known. */
static int check_metric(const struct pm_config *c, const char *key, const char *name)
{
    const struct pm_metric_kind *m = c->task_row ? c->task_row->metrics : NULL;
    const char *names = "";
    bool is = !m;

    for (; m && m->name; m++) {
        is |= strcmp(m->name, name) == 0;
        names = pm_arena_printf(c->arena, "%s%s%s", names, *names ? ", " : "", m->name);
    }
    if (!is)
        return pm_fail(PM_ECONFIG, "%s %s: '%s' is not a metric of %s (%s)",
                       pm_config_place(c, key), key, name, c->task, names);
    if (c->eval.every_steps == 0)
        return pm_fail(PM_ECONFIG, "%s %s: needs evaluations while training: set eval.every_steps",
                       pm_config_place(c, key), key);
    return PM_OK;
}

static int check_best(const struct pm_config *c)
{
    const char *best = c->run.keep_best;
    int err = PM_OK;

    if (strcmp(best, "auto") != 0 && strcmp(best, "none") != 0)
        PM_TRY(check_metric(c, "run.keep_best", best));
    if (c->early_stop && strcmp(c->early_stop->metric, "auto") != 0)
        PM_TRY(check_metric(c, "run.early_stop.metric", c->early_stop->metric));
    if (c->study.vary && strcmp(c->study.metric, "auto") != 0)
        PM_TRY(check_metric(c, "study.metric", c->study.metric));
    if (c->study.vary && c->eval.every_steps == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s study.vary: runs are compared by their evaluations while "
                       "training: set eval.every_steps", pm_config_place(c, "study.vary")));
    if (c->early_stop && c->eval.every_steps == 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s run.early_stop: needs evaluations while training: set eval.every_steps",
                       pm_config_place(c, "run.early_stop")));
out:
    return err;
}

/* config_devices.c has already checked that all devices of a list have a share or none. */
static int check_balance(const struct pm_config *c)
{
    bool shares = c->devices[0].share > 0;

    for (int i = 0; i < c->replicas_count; i++) {
        const struct pm_config_replica *r = &c->replicas[i];

        shares |= r->share > 0 || (r->devices && r->devices[0].share > 0);
    }
    if (c->run.balance != PM_BALANCE_AUTO || !shares)
        return PM_OK;
    return pm_fail(PM_ECONFIG,
                   "%s run.balance: \"auto\" measures the shares, but devices or replicas sets "
                   "them: set shares, or this key",
                   pm_config_place(c, "run.balance"));
}

/* init.restore "all" continues another run, so nothing of it may be left out. */
static int check_restore(const struct pm_config *c)
{
    const struct pm_config_init *i = &c->init;
    const char *key = i->exclude_scopes.count              ? "init.exclude_scopes"
                      : i->ignore_missing                  ? "init.ignore_missing"
                      : i->averages != PM_AVERAGES_OFF     ? "init.averages"
                      : i->load_all                        ? "init.load_all"
                      : i->type == PM_INIT_CLASSIFICATION  ? "init.type"
                                                           : NULL;

    if (i->restore != PM_RESTORE_ALL)
        return PM_OK;
    if (!i->checkpoint)
        return pm_fail(PM_ECONFIG,
                       "%s init.restore: \"all\", but init.checkpoint is not set: name the "
                       "checkpoint to continue from",
                       pm_config_place(c, "init.restore"));
    if (key)
        return pm_fail(PM_ECONFIG,
                       "%s %s: init.restore \"all\" restores the whole checkpoint: remove %s, or "
                       "set init.restore to \"variables\"",
                       pm_config_place(c, key), key, key);
    return PM_OK;
}

int pm_config_check(const struct pm_config *c)
{
    int err = PM_OK;

    PM_TRY(check_model(c));
    PM_TRY(check_quantized(c));
    PM_TRY(check_balance(c));
    PM_TRY(check_size(c, "input.size", c->input.size));
    PM_TRY(check_size(c, "input.eval_size", c->input.eval_size));
    PM_TRY(check_best(c));
    PM_TRY(check_restore(c));
    if (c->run.batch_size == PM_WORD)
        goto out;
    if (c->run.batch_size % c->run.micro_batches != 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s run.micro_batches: %d does not divide run.batch_size %d",
                       pm_config_place(c, "run.micro_batches"), c->run.micro_batches,
                       c->run.batch_size));
    if (c->run.batch_size < c->devices_count)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s run.batch_size: %d is less than one example for each of %d "
                       "devices",
                       pm_config_place(c, "run.batch_size"), c->run.batch_size, c->devices_count));
out:
    return err;
}
