/* The transformer that straightens pictures before the net reads them, if the config asks for
 * one. */
#include <cjson/cJSON.h>

#include "tasks/recognition/recognition.h"

const struct pm_opt pm_recognition_model_opts[] = {
    PM_ENUM(pm_recognition_model, transformer, PM_TRANSFORMER_NONE, "none|tps",
            "recognition: straighten pictures before the net reads them: tps = a small net places "
            "points along the text, and a thin-plate spline moves them to the borders"),
    PM_JSON(pm_recognition_model, spatial_transformer,
            "recognition: the transformer of model.transformer, an object with the keys below; "
            "null = their defaults"),
    { 0 },
};

int pm_recognition_read_model(const struct pm_config *c, struct pm_task *t)
{
    const char *key = "model.spatial_transformer";
    struct pm_recognition_model m;
    const char *where;
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "model", pm_recognition_model_opts, &m));
    where = pm_arena_printf(t->arena, "%s: %s", pm_config_origin(c, key), key);
    if (m.spatial_transformer && !cJSON_IsObject(m.spatial_transformer))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: an object { \"key\": value, ... } is needed", where));
    PM_TRY(pm_opts_parse(pm_spatial_transformer_opts, m.spatial_transformer, NULL,
                         &t->transformer, t->arena, where));
    PM_TRY(pm_spatial_transformer_check(&t->transformer, where));
    t->straightens = m.transformer != PM_TRANSFORMER_NONE;
out:
    return err;
}

struct pm_node *pm_recognition_before_net(const struct pm_task *t, struct pm_net *net,
                                          struct pm_node *images)
{
    return t->straightens ? pm_spatial_transformer_build(net, images, &t->transformer) : images;
}
