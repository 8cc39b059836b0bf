/* eval_split: the split that is evaluated if data.eval_split is not set. */
#include "experiment/experiment.h"

/* The names that converters and published data give to such a split, the best choice first. */
static const char *const choices[] = { "validation", "val", "test", "val_fine" };

static int none_found(const struct pm_config *c, const char *const *names, size_t count)
{
    struct pm_str there = { 0 };
    int err;

    for (size_t i = 0; i < count; i++)
        pm_str_add(&there, "%s%s", i ? ", " : "", names[i]);
    err = pm_fail(PM_EDATA,
                  "%s: data.eval_split is not set, and %s has none of the splits validation, val, "
                  "test and val_fine; it has: %s. Set data.eval_split to one of them",
                  pm_config_source(c, "data.eval_split"), c->data.folder,
                  count ? there.text : "no TFRecord files");
    pm_str_free(&there);
    return err;
}

int pm_experiment_eval_split(const struct pm_config *c, struct pm_arena *a, const char **out)
{
    const char **names = NULL;
    size_t count = 0;
    int err = PM_OK;

    if (c->data.eval_split) {
        *out = c->data.eval_split;
        return PM_OK;
    }
    PM_TRY(pm_dataset_list(a, c->data.folder, &names, &count));
    for (size_t i = 0; i < PM_COUNT(choices); i++)
        for (size_t k = 0; k < count; k++)
            if (pm_dataset_name_is(names[k], choices[i])) {
                PM_INFO("data", "data.eval_split is not set: the split %s of %s is evaluated",
                        choices[i], c->data.folder);
                *out = choices[i];
                return PM_OK;
            }
    PM_TRY(none_found(c, names, count));
out:
    return err;
}
