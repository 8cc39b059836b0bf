/* check_data: lets the task compare its settings with the data, before anything is trained. */
#include "experiment/experiment.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <string.h>

/* Enough for shares and quantiles to within a few percent; some seconds of decoding. */
enum { MOST_PICTURES = 1000 };

/* The split that training would evaluate must exist; without evaluations in training, only a split
 * that the config names. */
static int check_eval_split(const struct pm_config *c)
{
    struct pm_dataset *d = NULL;
    int err = PM_OK;

    if (c->eval.every_steps > 0 ||
        strcmp(pm_config_origin(c, "data.eval_split"), "default") != 0)
        err = pm_dataset_open(c->data.folder, c->data.eval_split, &d);
    pm_dataset_close(&d);
    return err;
}

/* Batch norm that is not trained keeps the statistics of a checkpoint. */
static void note_batch_norm(const struct pm_experiment *e, struct pm_str *text)
{
    const struct pm_opt *opts = e->net_row ? e->net_row->opts : NULL;
    cJSON *all = cJSON_CreateObject();

    if (opts)
        pm_opts_dump(opts, e->net_cfg, all, false);
    if (cJSON_IsFalse(cJSON_GetObjectItem(all, "batch_norm_train")) && !e->config->init.checkpoint)
        pm_str_add(text, "note: model.batch_norm_train is false and init.checkpoint is not set, so "
                         "batch norm keeps its initial statistics.\nSet "
                         "model.batch_norm_train=true, or init.checkpoint.\n");
    cJSON_Delete(all);
}

int pm_check_data(const struct pm_config *c, struct pm_str *text, struct cJSON *object)
{
    struct pm_experiment *e = NULL;
    struct pm_loader *loader = NULL;
    struct pm_sampler sampler;
    /* Only whole batches have each folder's share. */
    const int batch = c->data.folders || c->data.repeat_threshold > 0 ? c->run.batch_size : 1;
    int64_t pictures;
    int err = PM_OK;

    if (!pm_experiment_if_there(c, PM_OPEN_TRAIN))
        return PM_OK;
    PM_TRY(pm_experiment_open(c, PM_OPEN_TRAIN, &e));
    PM_TRY(check_eval_split(c));
    note_batch_norm(e, text);
    if (!e->task_row->check_data)
        goto out;
    pictures = (int64_t)pm_dataset_get_info(e->train)->count;
    PM_TRY(pm_experiment_loader(e, true, batch, (struct pm_batch_slice){ 0, batch }, 0, NULL,
                                &sampler, &loader));
    PM_TRY(e->task_row->check_data(e->task, loader,
                                   pictures < MOST_PICTURES ? pictures : MOST_PICTURES, text,
                                   object));
out:
    pm_loader_destroy(&loader);
    pm_experiment_close(&e);
    return err;
}
