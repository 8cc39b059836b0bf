/* check_data: lets the task compare its settings with the data, before anything is trained. */
#include "experiment/experiment.h"

#include <pumice/train.h>

/* Enough for shares and quantiles to within a few percent; some seconds of decoding. */
enum { MOST_PICTURES = 1000 };

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
