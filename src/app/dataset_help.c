/* pumice dataset convert [FORMAT] --help: each format, what it reads and its options. */
#include "app/app.h"

#include <cjson/cJSON.h>
#include <string.h>

#include <pumice/data.h>

static void add_options(struct pm_str *s, const struct pm_opt *opts, size_t cfg_size,
                        struct pm_arena *a)
{
    void *cfg = pm_arena_alloc(a, cfg_size + 1);
    cJSON *values = cJSON_CreateObject();

    pm_opts_defaults(opts, cfg, a);
    pm_opts_dump(opts, cfg, values, false);
    for (const struct pm_opt *o = opts; o->type; o++) {
        char *value = cJSON_PrintUnformatted(cJSON_GetObjectItem(values, o->key));
        pm_str_add(s, "    %s=%s\n        %s", o->key, value, o->help);
        if (o->choices)
            pm_str_add(s, " (%s)", o->choices);
        pm_str_add(s, "\n");
        cJSON_free(value);
    }
    cJSON_Delete(values);
}

static void add_indented(struct pm_str *s, const char *lines)
{
    for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
        pm_str_add(s, "    %.*s\n", (int)strcspn(lines, "\n"), lines);
}

int app_dataset_help(int argc, char **argv, struct pm_str *s)
{
    size_t count = 0;
    const struct pm_converter *const *rows = pm_converters(&count);
    struct pm_arena *a = pm_arena_create();
    int err = PM_OK;

    if (argc > 0 && !strcmp(argv[0], "convert")) {
        if (argc > 1)
            PM_TRY(pm_converter_known(argv[1]));
        for (size_t i = 0; i < count; i++) {
            if (argc > 1 && strcmp(argv[1], rows[i]->name))
                continue;
            pm_str_add(s, "\n%s: %s\n", rows[i]->name, rows[i]->help);
            add_indented(s, rows[i]->layout);
            if (rows[i]->opts)
                add_options(s, rows[i]->opts, rows[i]->cfg_size, a);
        }
        pm_str_add(s, "\nevery format:\n");
        add_options(s, pm_convert_opts, 64, a);
    }
out:
    pm_arena_destroy(&a);
    return err;
}
