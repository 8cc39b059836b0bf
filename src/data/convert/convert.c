/* dataset convert: a raw folder, by its format's row, into a data folder. */
#include <string.h>

#include <pumice/data.h>

#define PM_CONVERTER(name) extern const struct pm_converter pm_converter_##name;
#include "converters.def"
#undef PM_CONVERTER

static const struct pm_converter *const rows[] = {
#define PM_CONVERTER(name) &pm_converter_##name,
#include "converters.def"
#undef PM_CONVERTER
};

const struct pm_converter *const *pm_converters(size_t *count)
{
    *count = PM_COUNT(rows);
    return rows;
}

static const struct pm_converter *find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (!strcmp(rows[i]->name, name))
            return rows[i];
    return NULL;
}

static int unknown(const char *name)
{
    struct pm_str all = { 0 };
    const char *names[PM_COUNT(rows)];

    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        names[i] = rows[i]->name;
        pm_str_add(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = pm_nearest(name, names, PM_COUNT(rows));
    const int err =
        pm_fail(PM_ECONFIG, "dataset convert: unknown format %s%s%s%s; there are: %s", name,
                near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", all.text);
    pm_str_free(&all);
    return err;
}

int pm_dataset_convert(const char *format, const char *src, const char *dst, const char *options)
{
    int err = PM_OK;
    struct pm_making *m = NULL;
    struct pm_arena *a = pm_arena_create();
    const struct pm_converter *c = find(format);

    if (!c)
        PM_TRY(unknown(format));
    void *cfg = pm_arena_alloc(a, c->cfg_size + 1);
    if (c->opts)
        PM_TRY(pm_opts_parse_text(c->opts, options ? options : "", cfg, a,
                                  pm_arena_printf(a, "dataset convert %s", format)));
    else if (options && options[0])
        PM_TRY(pm_fail(PM_ECONFIG, "dataset convert %s has no options, so \"%s\" is none", format,
                       options));
    PM_TRY(pm_making_create(dst, strcmp(format, "folder") ? format : NULL, &m));
    PM_TRY(c->convert(cfg, src, m));
    PM_TRY(pm_making_finish(m));
out:
    pm_making_destroy(&m);
    pm_arena_destroy(&a);
    return err;
}
