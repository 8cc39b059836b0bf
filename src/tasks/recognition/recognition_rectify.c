/* The transformer that straightens pictures before the net reads them, if the config asks for
 * one. */
#include <cjson/cJSON.h>

#include "tasks/recognition/recognition.h"

int pm_recognition_read_transformer(const struct pm_config *c, struct pm_task *t)
{
    const char *key = "model.spatial_transformer";
    const struct cJSON *given = t->model.spatial_transformer;
    const char *where;
    int err = PM_OK;

    where = pm_arena_printf(t->arena, "%s: %s", pm_config_origin(c, key), key);
    if (given && t->model.transformer == PM_TRANSFORMER_NONE)
        PM_TRY(pm_fail(PM_ECONFIG, "%s has no effect with model.transformer=none: remove it, or "
                       "set model.transformer=tps", where));
    if (given && !cJSON_IsObject(given))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: it is no object: write { \"key\": value, ... } with the "
                       "keys of docs/keys.md, or null for their defaults", where));
    PM_TRY(pm_opts_parse(pm_spatial_transformer_opts, given, NULL, &t->transformer,
                         t->arena, where));
    PM_TRY(pm_spatial_transformer_check(&t->transformer, where));
out:
    return err;
}

struct pm_node *pm_recognition_before_net(const struct pm_task *t, struct pm_net *net,
                                          struct pm_node *images)
{
    if (t->model.transformer == PM_TRANSFORMER_NONE)
        return images;
    return pm_spatial_transformer_build(net, images, &t->transformer);
}
