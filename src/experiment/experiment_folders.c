/* experiment_folders: data.folders, several sources of training records, and
 * data.repeat_threshold. */
#include <cjson/cJSON.h>
#include <string.h>

#include "data/order.h"
#include "data/repeats.h"
#include "experiment/experiment_parts.h"

struct folder_cfg {
    const char *folder, *split;
    int batch;
    double weight;
    const struct cJSON *augment;
    int index;               /* in data.folders */
};
struct pm_experiment_folders {
    struct folder_cfg *list; /* [count] */
    size_t count;
};

static const struct pm_opt opts[] = {
    PM_STRING(folder_cfg, folder, NULL, "folder with TFRecord shards; null = data.folder"),
    PM_STRING(folder_cfg, split, NULL, "split or file pattern; null = data.train_split"),
    PM_INT(folder_cfg, batch, 0, 0, 1048576, "examples of each batch; they add up to "
                                             "run.batch_size"),
    PM_DOUBLE(folder_cfg, weight, 0, 0, 1e9, "share of the examples on average; 0 = not used"),
    PM_JSON(folder_cfg, augment, "augmentations, as in input.augment; null = input.augment"),
    { 0 },
};

/* ---- reading the config --------------------------------------------------------------------- */

/* The batches must add up, or all entries have weights, or none has either. */
static int check_shares(const struct pm_config *c, const struct folder_cfg *list, size_t count)
{
    size_t batches = 0, weights = 0, given = 0;
    int64_t sum = 0;
    const cJSON *v;

    for (size_t i = 0; i < count; i++) {
        batches += list[i].batch > 0;
        weights += list[i].weight > 0;
        sum += list[i].batch;
    }
    cJSON_ArrayForEach(v, c->data.folders)
        given += cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(v, "weight"));
    if (given && !weights && !batches)
        return pm_fail(PM_ECONFIG,
                       "%s: data.folders: every weight is 0, so no entry would be "
                       "read: give at least one entry a weight above 0, or remove the weights",
                       pm_config_source(c, "data.folders"));
    if (batches && weights)
        return pm_fail(PM_ECONFIG,
                       "%s: data.folders: some entries have batch and some weight: "
                       "set one of them in all entries",
                       pm_config_source(c, "data.folders"));
    if (batches && batches < count)
        return pm_fail(PM_ECONFIG,
                       "%s: data.folders: %zu of %zu entries have batch: set it in all "
                       "of them",
                       pm_config_source(c, "data.folders"), batches, count);
    if (batches && sum != c->run.batch_size)
        return pm_fail(PM_ECONFIG,
                       "%s: data.folders: the batches add up to %lld, but "
                       "run.batch_size is %d: make them equal",
                       pm_config_source(c, "data.folders"), (long long)sum, c->run.batch_size);
    return PM_OK;
}

int pm_experiment_read_folders(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    const cJSON *json = c->data.folders, *v;
    struct pm_experiment_folders *f = pm_arena_alloc(e->arena, sizeof *f);
    bool weighted = false;
    int err = PM_OK, i = 0;

    if (!json)
        return PM_OK;
    if (!cJSON_IsArray(json) || cJSON_GetArraySize(json) == 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: data.folders: a list [ { \"folder\": ..., \"batch\": ... "
                       "}, ... ] is needed",
                       pm_config_source(c, "data.folders")));
    f->list = pm_arena_alloc(e->arena, (size_t)cJSON_GetArraySize(json) * sizeof *f->list);
    cJSON_ArrayForEach(v, json)
    {
        struct folder_cfg *one = &f->list[f->count];
        const char *where = pm_arena_printf(e->arena, "%s: data.folders.%d",
                                            pm_config_source(c, "data.folders"), i);

        PM_TRY(pm_opts_parse(opts, v, NULL, one, e->arena, where));
        one->index = i++;
        one->folder = one->folder ? one->folder : c->data.folder;
        one->split = one->split ? one->split : c->data.train_split;
        weighted |= one->weight > 0;
        f->count++;
    }
    PM_TRY(check_shares(c, f->list, f->count));
    /* As in TensorFlow, an entry of weight 0 among others is not read. */
    for (size_t k = 0, kept = 0, all = f->count; weighted && k < all; k++)
        if (f->list[k].weight > 0) {
            f->list[kept++] = f->list[k];
            f->count = kept;
        }
    e->folders = f;
out:
    return err;
}

const char **pm_experiment_folder(struct pm_experiment *e, size_t i)
{
    return e->folders && i < e->folders->count ? &e->folders->list[i].folder : NULL;
}

int pm_experiment_open_augments(struct pm_experiment *e)
{
    const struct pm_experiment_folders *f = e->folders;
    const struct pm_augment **list;
    int err = PM_OK;

    if (!f)
        return PM_OK;
    list = pm_arena_alloc(e->arena, f->count * sizeof *list);
    for (size_t i = 0; i < f->count; i++) {
        list[i] = e->facts.augment;
        if (f->list[i].augment)
            PM_TRY(pm_augment_open(f->list[i].augment,
                                   pm_arena_printf(e->arena, "%s: data.folders.%d.augment",
                                                   pm_config_source(e->config, "data.folders"),
                                                   f->list[i].index),
                                   e->arena, &list[i]));
    }
    e->facts.augments = list;
    e->facts.augments_count = (int)f->count;
out:
    return err;
}

/* ---- opening the data ----------------------------------------------------------------------- */

int pm_experiment_open_train(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    const struct pm_experiment_folders *f = e->folders;
    struct pm_dataset **parts = pm_calloc(f ? f->count : 1, sizeof *parts);
    int err = PM_OK;

    if (!f) {
        PM_TRY(pm_dataset_open(c->data.folder, c->data.train_split, &e->train));
        pm_dataset_sample(e->train, (size_t)c->data.sample_1_of_n);
        goto out;
    }
    for (size_t i = 0; i < f->count; i++) {
        PM_TRY(pm_dataset_open(f->list[i].folder, f->list[i].split, &parts[i]));
        pm_dataset_sample(parts[i], (size_t)c->data.sample_1_of_n);
    }
    e->part_records = pm_arena_alloc(e->arena, f->count * sizeof *e->part_records);
    for (size_t i = 0; i < f->count; i++)
        e->part_records[i] = pm_dataset_get_info(parts[i])->count;
    PM_TRY(pm_dataset_join(parts, f->count, &e->train));
out:
    for (size_t i = 0; f && i < f->count; i++)
        pm_dataset_close(&parts[i]);
    pm_free(parts);
    return err;
}

/* Reads the classes of each part and repeats its records. */
static int repeat(struct pm_experiment *e, const struct pm_order_part *parts, size_t count)
{
    const double threshold = e->config->data.repeat_threshold;
    uint64_t first = 0;
    float *factor = NULL;
    int err = PM_OK;

    for (size_t k = 0; k < count; k++) {
        struct pm_repeat_report report;

        pm_free(factor);
        factor = pm_malloc(parts[k].records * sizeof *factor);
        PM_TRY(pm_repeat_factors(e->train, first, parts[k].records, e->data.box_labels, threshold,
                                 factor, &report));
        pm_order_repeat(e->order, k, factor);
        first += parts[k].records;
        PM_INFO("data", "data.repeat_threshold %g: %zu of %zu classes are rare; %zu of %llu "
                "records are repeated, at most %.1f times on average", threshold, report.rare,
                report.classes, report.records, (unsigned long long)parts[k].records, report.most);
    }
out:
    pm_free(factor);
    return err;
}

int pm_experiment_order(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    const struct pm_experiment_folders *f = e->folders;
    const bool shared = f && (f->list[0].batch > 0 || f->list[0].weight > 0);
    const size_t count = shared ? f->count : 1;
    struct pm_order_part *parts;
    int err = PM_OK;

    if (e->order || (!shared && c->data.repeat_threshold == 0))
        return PM_OK;
    parts = pm_calloc(count, sizeof *parts);
    for (size_t k = 0; k < count; k++)
        parts[k] = shared ? (struct pm_order_part){ e->part_records[k], f->list[k].batch,
                                                    f->list[k].weight }
                          : (struct pm_order_part){ pm_dataset_get_info(e->train)->count,
                                                    c->run.batch_size, 0 };
    e->order = pm_order_create(parts, count, c->run.batch_size, (uint64_t)c->run.seed,
                               !c->data.shuffle);
    if (c->data.repeat_threshold > 0)
        PM_TRY(repeat(e, parts, count));
out:
    pm_free(parts);
    return err;
}
