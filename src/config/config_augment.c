/* input.augment: a list of rows, each with the options of the augmentation that it names. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <assert.h>
#include <string.h>

static const char *const also[] = { "name", NULL };

static const struct pm_opt *options_of(const struct pm_open_row *row)
{
    static const struct pm_opt none[] = { { 0 } };

    return row->opts ? row->opts : none;
}

static int read_entry(struct pm_config *c, const struct pm_open_rows *rows, const cJSON *v, int i,
                      const struct pm_open_row **out)
{
    const char *path = pm_arena_printf(c->arena, "input.augment.%d", i);
    const char *where = pm_arena_printf(c->arena, "%s %s", pm_config_place(c, path), path);
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(v, "name");

    if (!cJSON_IsString(name))
        return pm_fail(PM_ECONFIG, "%s: an object { \"name\": ..., option: value } is needed",
                       where);
    *out = pm_config_row_find(rows, name->valuestring);
    if (!*out)
        return pm_config_fail_row(c, rows, pm_arena_printf(c->arena, "%s.name", path),
                                  "augmentation", name->valuestring);
    void *scratch = pm_arena_alloc(c->arena, pm_config_size_of(options_of(*out)));
    return pm_opts_parse(options_of(*out), v, also, scratch, c->arena, where);
}

int pm_config_read_augment(struct pm_config *c, const struct pm_open_rows *rows)
{
    const cJSON *list = c->input.augment, *v;
    const struct pm_open_row **chosen;
    int err = PM_OK, count = 0;

    if (!list)
        return PM_OK;
    if (!cJSON_IsArray(list))
        return pm_fail(PM_ECONFIG, "%s input.augment: a list [ { \"name\": ... }, ... ] is needed",
                       pm_config_place(c, "input.augment"));
    if (rows->count == 0)
        return PM_OK;
    chosen = pm_arena_alloc(c->arena, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *chosen);
    cJSON_ArrayForEach(v, list)
    {
        PM_TRY(read_entry(c, rows, v, count, &chosen[count]));
        count++;
    }
    c->augment_rows = chosen;
out:
    return err;
}

struct cJSON *pm_config_dump_augment(const struct pm_config *c)
{
    cJSON *list = cJSON_CreateArray();
    const cJSON *v;
    int i = 0;

    cJSON_ArrayForEach(v, c->input.augment)
    {
        const struct pm_opt *opts = options_of(c->augment_rows[i]);
        void *values = pm_arena_alloc(c->arena, pm_config_size_of(opts));
        cJSON *object = cJSON_CreateObject();
        const int err = pm_opts_parse(opts, v, also, values, c->arena, "input.augment");

        assert(err == PM_OK && "the options were checked when the config was loaded");
        (void)err;
        cJSON_AddStringToObject(object, "name", c->augment_rows[i++]->name);
        pm_opts_dump(opts, values, object, false);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}
