/* check_data: opens the data of a config, looks for settings that do not fit it
 * (check_findings.h), and lets the task compare its own settings with it. Nothing is trained. */
#include "jobs/check_findings.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <string.h>

/* Enough for shares and quantiles to within a few percent; some seconds of decoding. */
enum { MOST_PICTURES = 1000 };

/* Lets the task read training pictures as training would make them. */
static int check_task(struct pm_experiment *e, struct pm_str *text, struct cJSON *object)
{
    const struct pm_config *c = e->config;
    struct pm_loader *loader = NULL;
    struct pm_sampler sampler;
    /* Only whole batches have each folder's share, and the sizes of input.buckets. */
    const bool whole = c->data.folders || c->data.repeat_threshold > 0 ||
                       (c->buckets_count > 0 && c->run.batch_size != PM_WORD);
    const int batch = whole ? c->run.batch_size : 1;
    const int64_t pictures = (int64_t)pm_dataset_get_info(e->train)->count;
    int err = PM_OK;

    if (!e->task_row->check_data)
        return PM_OK;
    PM_TRY(pm_experiment_loader(e, batch, (struct pm_batch_slice){ 0, batch },
                                (struct pm_batch_numbers){ 0 }, &sampler, &loader));
    PM_TRY(e->task_row->check_data(e->task, loader,
                                   pictures < MOST_PICTURES ? pictures : MOST_PICTURES, text,
                                   object));
out:
    pm_loader_destroy(&loader);
    return err;
}

/* Appends "warning: TEXT" lines; returns the number of warnings. */
static int add_lines(const cJSON *list, struct pm_str *text)
{
    const cJSON *v;
    int warnings = 0;

    cJSON_ArrayForEach(v, list)
    {
        const char *level = cJSON_GetStringValue(cJSON_GetObjectItem(v, "level"));

        warnings += strcmp(level, "warning") == 0;
        pm_str_add(text, "%s: %s\n", level, cJSON_GetStringValue(cJSON_GetObjectItem(v, "text")));
    }
    return warnings;
}

int pm_check_data(const struct pm_config *c, int *warnings, struct pm_str *text,
                  struct cJSON *object)
{
    struct pm_check k = { .config = c, .list = cJSON_AddArrayToObject(object, "findings") };
    int err = PM_OK;

    *warnings = 0;
    if (pm_experiment_if_there(c, PM_OPEN_TRAIN))
        PM_TRY(pm_experiment_open(c, PM_OPEN_TRAIN, &k.e));
    if (k.e)
        k.config = k.e->config; /* data.folder of pictures: the place of the records */
    PM_TRY(pm_check_findings_run(&k));
    *warnings = add_lines(k.list, text);
    if (k.e)
        PM_TRY(check_task(k.e, text, object));
out:
    pm_free(k.class_records);
    pm_experiment_close(&k.e);
    return err;
}
