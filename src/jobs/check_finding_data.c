/* check_finding_data: the data folder, its splits, and the batch. */
#include "jobs/check_findings.h"

#include "data/download/download.h"

#include <cjson/cJSON.h>
#include <string.h>

/* ---- eval_split ------------------------------------------------------------------------- */

/* The split that training would evaluate must exist; without evaluations in training, only a split
 * that the config names. */
static int check_eval_split(struct pm_check *k)
{
    const struct pm_config *c = k->config;
    struct pm_arena *a = pm_arena_create();
    struct pm_dataset *d = NULL;
    const char *split;
    int err = PM_OK;

    if (c->eval.every_steps == 0 && !c->data.eval_split)
        goto out;
    PM_TRY(pm_experiment_eval_split(c, a, &split));
    PM_TRY(pm_dataset_open(c->data.folder, split, &d));
out:
    pm_dataset_close(&d);
    pm_arena_destroy(&a);
    return err;
}
const struct pm_check_finding pm_check_finding_eval_split = { true, check_eval_split };

/* ---- folder ----------------------------------------------------------------------------- */

/* Returns the data set that `pumice dataset download` knows under the folder's name, or NULL. */
static const struct pm_download *known_set(const char *folder)
{
    const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    size_t count;
    const struct pm_download *list = pm_downloads(&count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* A missing folder is a warning, not an error: a config may be checked before the data is
 * downloaded, or on another machine. Training fails without the folder. */
static int check_folder(struct pm_check *k)
{
    const char *folder = k->config->data.folder;
    const struct pm_download *known;

    if (k->e || !folder || k->config->data.make != PM_MAKE_NONE)
        return PM_OK;
    if (pm_experiment_unconverted(k->config)) {
        pm_check_add(k, PM_CHECK_NOTE, "data.folder", "the pictures of %s are not converted yet, "
                     "so they were not checked. pumice train converts them.", folder);
        return PM_OK;
    }
    known = known_set(folder);
    if (known)
        pm_check_add(k, PM_CHECK_WARNING, "data.folder",
                       "data.folder: %s does not exist, so the data was not checked. Make it with "
                       "pumice dataset download %s %s",
                       folder, known->name, folder);
    else
        pm_check_add(k, PM_CHECK_WARNING, "data.folder",
                       "data.folder: %s does not exist, so the data was not checked. Make it with "
                       "pumice dataset convert (pumice dataset --help lists the formats), or "
                       "correct the path",
                       folder);
    return PM_OK;
}
const struct pm_check_finding pm_check_finding_folder = { false, check_folder };

/* ---- batch_size ------------------------------------------------------------------------- */

static int check_batch(struct pm_check *k)
{
    const size_t pictures = pm_dataset_get_info(k->e->train)->count;
    const int batch = k->config->run.batch_size;

    if ((size_t)batch > pictures)
        pm_check_add(k, PM_CHECK_WARNING, "run.batch_size",
                       "run.batch_size: %d is more than the %zu %s of the training split, so "
                       "every batch has some pictures more than once. Set it to %zu or less",
                       batch, pictures, pm_plural((double)pictures, "picture", "pictures"),
                       pictures);
    return PM_OK;
}
const struct pm_check_finding pm_check_finding_batch_size = { true, check_batch };

/* ---- batch_norm ------------------------------------------------------------------------- */

/* Batch norm that is not trained keeps the statistics of a checkpoint. */
static int check_batch_norm(struct pm_check *k)
{
    const struct pm_experiment *e = k->e;
    const struct pm_opt *opts = e->net_row ? e->net_row->opts : NULL;
    cJSON *all = cJSON_CreateObject();

    if (opts)
        pm_opts_dump(opts, e->net_cfg, all, false);
    if (cJSON_IsFalse(cJSON_GetObjectItem(all, "batch_norm_train")) && !e->config->init.checkpoint)
        pm_check_add(k, PM_CHECK_NOTE, "model.batch_norm_train",
                       "model.batch_norm_train is false and init.checkpoint is not set, so batch "
                       "norm keeps its initial statistics.\nSet model.batch_norm_train=true, or "
                       "init.checkpoint.");
    cJSON_Delete(all);
    return PM_OK;
}
const struct pm_check_finding pm_check_finding_batch_norm = { true, check_batch_norm };
