/* pumice dataset convert [FORMAT] --help: each format, the files it reads and its options. pumice
 * dataset make [KIND] --help: each kind and its options. */
#include "app/app.h"

#include <string.h>

#include <pumice/data.h>

static int add_makers(int argc, char **argv, struct pm_str *s)
{
    size_t count = 0;
    const struct pm_maker *const *rows = pm_makers(&count), *named = NULL;
    int err = PM_OK;

    if (argc > 1)
        PM_TRY(pm_maker_find(argv[1], &named));
    for (size_t i = 0; i < count; i++) {
        if (named && named != rows[i])
            continue;
        pm_str_add(s, "\n%s: %s\n", rows[i]->name, rows[i]->help);
        app_add_options(s, rows[i]->opts);
    }
out:
    return err;
}

int app_dataset_help(int argc, char **argv, struct pm_str *s)
{
    size_t count = 0;
    const struct pm_converter *const *rows = pm_converters(&count);
    int err = PM_OK;

    if (argc > 0 && !strcmp(argv[0], "convert")) {
        if (argc > 1)
            PM_TRY(pm_converter_known(argv[1]));
        for (size_t i = 0; i < count; i++) {
            if (argc > 1 && strcmp(argv[1], rows[i]->name))
                continue;
            pm_str_add(s, "\n%s: %s\n", rows[i]->name, rows[i]->help);
            app_add_indented(s, rows[i]->layout);
            app_add_options(s, rows[i]->opts);
        }
        pm_str_add(s, "\nevery format:\n");
        app_add_options(s, pm_convert_opts);
    }
    if (argc > 0 && !strcmp(argv[0], "make"))
        PM_TRY(add_makers(argc, argv, s));
out:
    return err;
}
