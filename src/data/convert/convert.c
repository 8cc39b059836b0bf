/* dataset convert: a raw folder, by its format's row, into a data folder. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

#include <pumice/data.h>
#include <pumice/thread.h>

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
        pm_fail(PM_ECONFIG, "dataset convert: unknown format %s%s%s%s; known formats: %s", name,
                near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", all.text);
    pm_str_free(&all);
    return err;
}

int pm_converter_known(const char *name)
{
    return find(name) ? PM_OK : unknown(name);
}

struct common_cfg {
    bool force;
    int num_threads;
};

const struct pm_opt pm_convert_opts[] = {
    PM_BOOL(common_cfg, force, false, "replace an existing data folder DST"),
    PM_INT(common_cfg, num_threads, 0, 0, 4096,
           "number of threads; 0 = number of cores; the output does not depend on it"),
    { 0 },
};

/* Options of every format lie before the format's own. */
struct both {
    struct common_cfg common;
    _Alignas(16) char own[];
};

static int parse(const struct pm_converter *c, const char *options, struct pm_arena *a,
                 struct both **out)
{
    const struct pm_opt *tables[2] = { pm_convert_opts, c->opts };
    size_t n = 0;
    struct pm_opt all[64] = { { 0 } };

    for (int k = 0; k < 2; k++)
        for (const struct pm_opt *o = tables[k]; o && o->type; o++) {
            assert(n + 1 < PM_COUNT(all));
            all[n] = *o;
            all[n++].offset += k ? offsetof(struct both, own) : 0;
        }
    *out = pm_arena_alloc(a, sizeof **out + c->cfg_size + 16);
    return pm_opts_parse_text(all, options ? options : "", *out, a,
                              pm_arena_printf(a, "dataset convert %s", c->name));
}

/* Whether dst is a complete data folder with this name. */
static int is_made(struct pm_arena *a, const char *dst, const char *name, bool *made)
{
    int err = PM_OK;
    char *text = NULL;
    cJSON *o = NULL;
    const char *path = pm_arena_printf(a, "%s/dataset.json", dst);

    *made = false;
    if (!pm_file_exists(path))
        return PM_OK;
    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    PM_TRY(pm_json_parse(path, text, &o));
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, "name");
    *made = cJSON_IsString(v) && (!name || !strcmp(v->valuestring, name));
out:
    cJSON_Delete(o);
    pm_free(text);
    return err;
}

static int make(const struct pm_converter *c, const void *cfg, bool force, const char *src,
                const char *dst)
{
    int err = PM_OK;
    struct pm_making *m = NULL;

    PM_TRY(pm_making_create(dst, c->own_name ? NULL : c->name, force, &m));
    PM_TRY(c->convert(cfg, src, m));
    PM_TRY(pm_making_finish(m));
out:
    pm_making_destroy(&m);
    return err;
}

/* Returns 1 if the data folder exists and nothing needs to be done. */
static int prepare(struct pm_arena *a, const char *format, const char *dst, const char *options,
                   const struct pm_converter **c, struct both **cfg)
{
    int err = PM_OK;
    bool made = false;

    *c = find(format);
    if (!*c)
        PM_TRY(unknown(format));
    PM_TRY(parse(*c, options, a, cfg));
    if (!(*cfg)->common.force)
        PM_TRY(is_made(a, dst, (*c)->own_name ? NULL : (*c)->name, &made));
    if (made)
        PM_INFO("data", "%s: exists already; nothing to do (--force replaces it)", dst);
    return made;
out:
    return err;
}

int pm_dataset_convert_ready(const char *format, const char *dst, const char *options)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    const struct pm_converter *c = NULL;
    struct both *cfg = NULL;
    struct pm_making *m = NULL;
    int made = 0;

    PM_TRY(made = prepare(a, format, dst, options, &c, &cfg));
    if (!made)
        PM_TRY(pm_making_create(dst, c->own_name ? NULL : c->name, cfg->common.force, &m));
out:
    pm_making_destroy(&m);
    pm_arena_destroy(&a);
    return err < 0 ? err : made;
}

int pm_dataset_convert(const char *format, const char *src, const char *dst, const char *options)
{
    int err = PM_OK;
    const int threads = pm_threads();
    struct pm_arena *a = pm_arena_create();
    struct both *cfg = NULL;
    const struct pm_converter *c = NULL;

    PM_TRY(prepare(a, format, dst, options, &c, &cfg));
    if (err == 1) {
        err = PM_OK;
        goto out;
    }
    if (cfg->common.num_threads)
        pm_threads_set(cfg->common.num_threads);
    PM_TRY(make(c, cfg->own, cfg->common.force, src, dst));
out:
    pm_threads_set(threads);
    pm_arena_destroy(&a);
    return err;
}
