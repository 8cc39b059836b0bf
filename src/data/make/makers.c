/* dataset make: drawn data, by the row of its kind, into a data folder. */
#include <string.h>

#include <pumice/data.h>

#define PM_MAKER(name) extern const struct pm_maker pm_maker_##name;
#include "data/make/makers.def"
#undef PM_MAKER

static const struct pm_maker *const rows[] = {
#define PM_MAKER(name) &pm_maker_##name,
#include "data/make/makers.def"
#undef PM_MAKER
};

const struct pm_maker *const *pm_makers(size_t *count)
{
    *count = PM_COUNT(rows);
    return rows;
}

int pm_maker_find(const char *name, const struct pm_maker **out)
{
    struct pm_str all = { 0 };

    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        if (strcmp(rows[i]->name, name) == 0) {
            *out = rows[i];
            pm_str_free(&all);
            return PM_OK;
        }
        pm_str_add(&all, "%s%s", i ? ", " : "", rows[i]->name);
    }
    const int err = pm_fail(PM_ECONFIG, "dataset make: unknown kind %s; known kinds: %s", name,
                            all.text);
    pm_str_free(&all);
    return err;
}

int pm_dataset_make(const char *kind, const char *dst, const char *options)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_maker *row;
    void *cfg;
    int err = PM_OK;

    PM_TRY(pm_maker_find(kind, &row));
    cfg = pm_arena_alloc(a, row->cfg_size);
    PM_TRY(pm_opts_parse_text(row->opts, options, cfg, a,
                              pm_arena_printf(a, "dataset make %s", kind)));
    PM_TRY(row->make(cfg, dst));
out:
    pm_arena_destroy(&a);
    return err;
}
