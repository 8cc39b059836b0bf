/* What single values of a config cannot show: keys that exclude, need or bound each other. */
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
        return pm_fail(PM_ECONFIG, "%s model: %s and %s are both given; one of them makes the network",
                       pm_config_place(c, c->model.onnx ? "model.onnx" : "model.layers"),
                       c->model.name ? "name" : "layers", c->model.onnx ? "onnx" : "layers");
    if (given == 0)
        return pm_fail(PM_ECONFIG,
                       "%s: model.name is not given (nor model.layers, nor model.onnx); it names the "
                       "network, as in model.name=lenet",
                       c->path);
    const char *of = c->model_row && c->model_row->task ? c->model_row->task
                                                        : pm_config_tasks[PM_TASK_CLASSIFICATION];

    if (c->model_row && strcmp(of, pm_config_task(c)) != 0)
        return pm_fail(PM_ECONFIG, "%s model.name: %s is a net for %s, but task is %s",
                       pm_config_place(c, "model.name"), c->model.name, of, pm_config_task(c));
    if (!c->model.onnx && (c->model.onnx_logits || c->model.onnx_new_head))
        return pm_fail(PM_ECONFIG, "%s model.%s: is of an ONNX model, but model.onnx is not given",
                       pm_config_place(c, c->model.onnx_logits ? "model.onnx_logits"
                                                               : "model.onnx_new_head"),
                       c->model.onnx_logits ? "onnx_logits" : "onnx_new_head");
    return PM_OK;
}

/* The key by which a picture is seen more than once, or not as it is; NULL for none. */
static const char *looks_key(const struct pm_config *c)
{
    const struct pm_floats e = c->eval.scales, x = c->exporting.scales;

    return c->eval.flip                              ? "eval.flip"
           : e.count > 1 || (e.count && e.v[0] != 1) ? "eval.scales"
           : c->exporting.flip                          ? "export.flip"
           : x.count > 1 || (x.count && x.v[0] != 1) ? "export.scales" : NULL;
}

/* As the originals have it: one clone, whole batches, and in evaluation one look at a picture. */
static int check_quantized(const struct pm_config *c)
{
    const char *looks = looks_key(c);

    if (c->model.quantize_delay < 0)
        return PM_OK;
    if (c->devices_count > 1)
        return pm_fail(PM_ECONFIG, "%s devices: %d are given, but a net that is quantised in training "
                       "(model.quantize_delay %d) has its ranges on one: give one, or set "
                       "model.quantize_delay to -1", pm_config_place(c, "devices"), c->devices_count,
                       c->model.quantize_delay);
    if (c->run.micro_batches > 1)
        return pm_fail(PM_ECONFIG, "%s run.micro_batches: %d, but a net that is quantised in training "
                       "(model.quantize_delay %d) takes its ranges of the whole batch: set it to 1, or "
                       "model.quantize_delay to -1", pm_config_place(c, "run.micro_batches"),
                       c->run.micro_batches, c->model.quantize_delay);
    if (looks)
        return pm_fail(PM_ECONFIG, "%s %s: a quantised net (model.quantize_delay %d) sees a picture once, as "
                       "it is: leave this out", pm_config_place(c, looks), looks, c->model.quantize_delay);
    return PM_OK;
}

static int check_best(const struct pm_config *c)
{
    static const char *const metrics[] = {
        [PM_TASK_CLASSIFICATION] = "accuracy, recall_at_5, loss",
        [PM_TASK_SEGMENTATION] = "miou, pixel_accuracy, mean_accuracy, fw_iou, loss, pq, sq, rq, pc, ap, "
                                 "ap50, ap75, ap_small, ap_medium, ap_large, ar1, ar10, ar100, "
                                 "ar_small, ar_medium, ar_large, edge_miou",
        [PM_TASK_DETECTION] = "loss",
    };

    if (c->run.keep_best && !pm_reference_lists(metrics[c->task], c->run.keep_best))
        return pm_fail(PM_ECONFIG, "%s run.keep_best: '%s' is no metric of %s (%s)",
                       pm_config_place(c, "run.keep_best"), c->run.keep_best, pm_config_task(c),
                       metrics[c->task]);
    if (c->run.keep_best && c->eval.every_steps == 0)
        return pm_fail(PM_ECONFIG,
                       "%s run.keep_best: needs evaluations while training: set "
                       "eval.every_steps",
                       pm_config_place(c, "run.keep_best"));
    return PM_OK;
}

/* read_devices has seen to it that all have a share or none. */
static int check_balance(const struct pm_config *c)
{
    if (c->run.balance != PM_BALANCE_AUTO || c->devices[0].share == 0)
        return PM_OK;
    return pm_fail(PM_ECONFIG,
                   "%s run.balance: \"auto\" measures the shares, but devices name theirs; give "
                   "one or the other",
                   pm_config_place(c, "run.balance"));
}

/* "classification and segmentation" */
static void name_tasks(const char *letters, char *buf, size_t size)
{
    size_t n = 0;

    buf[0] = 0;
    for (int i = 0; pm_config_tasks[i] && n < size; i++)
        if (strchr(letters, pm_config_tasks[i][0]))
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " and " : "", pm_config_tasks[i]);
}

/* Keys of other tasks keep their defaults: anything else would be passed over without a word. */
static int check_task_keys(const struct pm_config *c, const struct pm_config_section *s)
{
    cJSON *changed = cJSON_CreateObject();
    const cJSON *v;
    char key[128], tasks[64];
    int err = PM_OK;

    pm_opts_dump(s->opts, (const char *)c + s->offset, changed, true);
    cJSON_ArrayForEach(v, changed)
    {
        snprintf(key, sizeof key, "%s.%s", s->name, v->string);
        const struct pm_reference *r = pm_reference_find(key);

        if (!r || strchr(r->tasks, pm_config_task(c)[0]))
            continue;
        name_tasks(r->tasks, tasks, sizeof tasks);
        PM_TRY(pm_fail(PM_ECONFIG, "%s %s: is of %s, but task is %s: leave it out",
                       pm_config_place(c, key), key, tasks, pm_config_task(c)));
    }
out:
    cJSON_Delete(changed);
    return err;
}

int pm_config_check(const struct pm_config *c)
{
    int err = PM_OK;

    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        PM_TRY(check_task_keys(c, s));
    PM_TRY(check_model(c));
    PM_TRY(check_quantized(c));
    PM_TRY(check_balance(c));
    PM_TRY(check_size(c, "input.size", c->input.size));
    PM_TRY(check_size(c, "input.eval_size", c->input.eval_size));
    PM_TRY(check_best(c));
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
