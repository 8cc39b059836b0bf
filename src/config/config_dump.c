/* config_dump: the resolved config as JSON, every key with its value. */
#include "config/config_private.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

static void add_devices(const struct pm_config *c, cJSON *out)
{
    cJSON_AddItemToObject(out, "devices", pm_config_dump_devices(c->devices, c->devices_count));
    cJSON_AddItemToObject(out, "replicas", pm_config_dump_replicas(c));
}

static void dump_row(const struct pm_config *c, const char *section, const struct pm_opt *opts,
                     cJSON *object)
{
    void *values = pm_arena_alloc(c->arena, pm_config_size_of(opts));
    int err = pm_config_read(c, section, opts, values);

    assert(err == PM_OK && "the options were checked when the config was loaded");
    (void)err;
    pm_opts_dump(opts, values, object, false);
}

struct cJSON *pm_config_dump(const struct pm_config *resolved)
{
    struct pm_config copy = *resolved;
    const struct pm_config *c = &copy;
    cJSON *out = cJSON_CreateObject();

    if (c->replica) {
        copy.devices = c->top.devices;
        copy.devices_count = c->top.devices_count;
        copy.data.folder = c->top.data_folder;
    }
    cJSON_AddStringToObject(out, "task", c->task);
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++) {
        if (strcmp(s->name, "study") == 0)
            continue; /* the result is one run */
        cJSON *object = cJSON_AddObjectToObject(out, s->name);
        const struct pm_open_row *row =
            s->row_kind ? *(const struct pm_open_row *const *)((const char *)c + s->row) : NULL;
        const struct pm_opt *task = pm_config_task_opts(c->task_row, s->name);
        pm_opts_dump(s->opts, (const char *)c + s->offset, object, false);
        if (task)
            dump_row(c, s->name, task, object);
        if (row && row->opts)
            dump_row(c, s->name, row->opts, object);
        if (strcmp(s->name, "input") == 0 && c->augment_rows)
            cJSON_ReplaceItemInObjectCaseSensitive(object, "augment", pm_config_dump_augment(c));
        if (strcmp(s->name, "run") == 0 && c->early_stop)
            cJSON_ReplaceItemInObjectCaseSensitive(object, "early_stop",
                                                   pm_config_dump_early_stop(c));
        if (strcmp(s->name, "init") == 0)
            add_devices(c, out);
    }
    return out;
}
