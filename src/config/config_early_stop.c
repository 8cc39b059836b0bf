/* config_early_stop: run.early_stop, an object inside the section run. */
#include "config/config_private.h"

#include <cjson/cJSON.h>

int pm_config_read_early_stop(struct pm_config *c)
{
    const struct pm_opt *opts = pm_config_early_stop_opts;
    const cJSON *object = c->run.early_stop, *v;
    struct pm_config_early_stop *out;
    int err = PM_OK;

    if (!object || cJSON_IsNull(object))
        return PM_OK;
    if (!cJSON_IsObject(object))
        return pm_fail(PM_ECONFIG,
                       "%s run.early_stop: an object such as { \"metric\": \"auto\", "
                       "\"patience\": 5 } is needed, or null",
                       pm_config_place(c, "run.early_stop"));
    out = pm_arena_alloc(c->arena, sizeof *out);
    pm_opts_defaults(opts, out, c->arena);
    cJSON_ArrayForEach(v, object)
    {
        const int i = pm_opts_find(opts, v->string);
        const char *place =
            pm_config_place(c, pm_arena_printf(c->arena, "run.early_stop.%s", v->string));

        if (i < 0)
            PM_TRY(pm_fail(PM_ECONFIG,
                           "%s run.early_stop.%s: unknown key (known: metric, patience, min_delta)",
                           place, v->string));
        PM_TRY(pm_opt_set(&opts[i], v, out, c->arena,
                          pm_arena_printf(c->arena, "%s run.early_stop", place)));
    }
    c->early_stop = out;
out:
    return err;
}

struct cJSON *pm_config_dump_early_stop(const struct pm_config *c)
{
    cJSON *out = cJSON_CreateObject();

    pm_opts_dump(pm_config_early_stop_opts, c->early_stop, out, false);
    return out;
}

void pm_config_schema_early_stop(struct cJSON *schema)
{
    cJSON *types = cJSON_AddArrayToObject(schema, "type");

    cJSON_AddItemToArray(types, cJSON_CreateString("object"));
    cJSON_AddItemToArray(types, cJSON_CreateString("null"));
    pm_opts_schema(pm_config_early_stop_opts, cJSON_AddObjectToObject(schema, "properties"));
    cJSON_AddBoolToObject(schema, "additionalProperties", false);
}
