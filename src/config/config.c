/* Reads the merged tree into structs and checks every value; errors name the value's line. Checks
 * of value combinations are in config_check.c. */
#include "config/config_private.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* Top-level keys that are not sections. */
static const char *const top_keys[] = { "$schema", "description", "base", "task", "devices",
                                        "replicas" };

static const char default_task[] = "classification"; /* used if open has no tasks */

struct load {
    struct pm_config *c;
    const struct pm_open_sections *open;
};

static int rank_of(const struct pm_config *c, const char *path)
{
    const struct pm_config_origin *o = pm_config_origin_find(c->origins, path);

    return o ? o->rank : 0;
}

static const struct pm_open_row **row_of(struct pm_config *c, const struct pm_config_section *s)
{
    return (const struct pm_open_row **)((char *)c + s->row);
}

/* ---- unknown keys ---------------------------------------------------------------------- */

static bool has_key(const struct pm_opt *opts, const char *key)
{
    return opts && pm_opts_find(opts, key) >= 0;
}

/* Returns the key with the most similar name, from the section, its row and the task. */
static const char *nearest_key(const struct pm_config_section *s, const struct pm_open_row *row,
                               const struct pm_open_task *task, const char *key)
{
    const struct pm_opt *const tables[] = { s->opts, row ? row->opts : NULL,
                                            pm_config_task_opts(task, s->name) };
    const char *names[256];
    size_t count = 0;

    for (size_t i = 0; i < PM_COUNT(tables); i++)
        for (const struct pm_opt *o = tables[i]; o && o->type && count < PM_COUNT(names); o++)
            names[count++] = o->key;
    return pm_nearest(key, names, count);
}

/* Lists the row's own keys: "momentum, nesterov", or "none". */
static const char *own_keys(struct pm_arena *a, const struct pm_open_row *row)
{
    const char *all = NULL;

    for (const struct pm_opt *o = row->opts; o && o->type; o++)
        all = all ? pm_arena_printf(a, "%s, %s", all, o->key) : o->key;
    return all ? all : "none";
}

static int fail_refused(const struct load *l, const char *path, const struct pm_refused *r)
{
    return pm_fail(PM_ECONFIG, "%s %s: there is no such key. %s", pm_config_place(l->c, path), path,
                   r->instead);
}

/* Fails for a key that no table has. guess may be NULL, or equal to the path that was given. */
static int fail_guess(const struct load *l, const char *place, const char *path, const char *key,
                      const char *guess)
{
    const struct pm_flag *none = guess ? NULL : pm_suggest_none(key);

    if (guess && strcmp(guess, path) != 0)
        return pm_fail(PM_ECONFIG, "%s %s: unknown key, did you mean '%s'?",
                       pm_config_place(l->c, place), path, guess);
    if (none)
        return pm_fail(PM_ECONFIG, "%s %s: this flag has no counterpart: %s. Remove it",
                       pm_config_place(l->c, place), path,
                       none->note ? none->note : "nothing replaces it");
    return pm_fail(PM_ECONFIG, "%s %s: unknown key (docs/keys.md lists all)",
                   pm_config_place(l->c, place), path);
}

/* Fails for an option of a row, if the section has no row. */
static int fail_rowless(const struct load *l, const struct pm_config_section *s, const char *path)
{
    return pm_fail(PM_ECONFIG, "%s %s: this is an option of some %ss; set %s.%s to choose the %s",
                   pm_config_place(l->c, path), path, s->row_kind, s->name, s->row_key,
                   s->row_kind);
}

static bool another_row_has(const struct load *l, const struct pm_config_section *s,
                            const char *key);

static int fail_unknown(const struct load *l, const struct pm_config_section *s,
                        const struct pm_open_row *row, const char *key)
{
    const char *path = pm_arena_printf(l->c->arena, "%s.%s", s->name, key);
    const struct pm_refused *refused = pm_refused_find(path);
    const char *guess;

    if (refused)
        return fail_refused(l, path, refused);
    if (row && pm_reference_find(path)) /* the key belongs to another row */
        return pm_fail(PM_ECONFIG, "%s %s: '%s' has no such option (its own: %s)",
                       pm_config_place(l->c, path), path, row->name, own_keys(l->c->arena, row));
    if (!row && s->row_kind && another_row_has(l, s, key))
        return fail_rowless(l, s, path);
    guess = pm_suggest_key(key, l->c->task_row, l->c->arena);
    if (!guess)
        guess = nearest_key(s, row, l->c->task_row, key);
    if (!guess)
        guess = pm_suggest_similar(key, l->c->task_row, l->c->arena);
    return fail_guess(l, path, path, key, guess);
}

static int fail_unknown_top(const struct load *l, const cJSON *v)
{
    const char *key = v->string, *path = key, *guess;
    const char *names[32];
    size_t count = 0;

    if (cJSON_IsObject(v) && v->child) /* if an override made the section, only the place of its
                                        * member is known */
        path = pm_arena_printf(l->c->arena, "%s.%s", key, v->child->string);
    for (size_t i = 0; i < PM_COUNT(top_keys); i++)
        names[count++] = top_keys[i];
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        names[count++] = s->name;
    guess = pm_suggest_key(key, l->c->task_row, l->c->arena);
    if (!guess)
        guess = pm_nearest(key, names, count);
    if (!guess)
        guess = pm_suggest_similar(key, l->c->task_row, l->c->arena);
    return fail_guess(l, path, key, key, guess);
}

/* ---- open sections --------------------------------------------------------------------- */

static const struct pm_open_row *variant_of(const struct pm_config *c,
                                            const struct pm_config_section *s,
                                            const struct pm_open_row *row)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(c->tree, s->name), *v;

    if (!row || !row->variant)
        return row;
    v = cJSON_GetObjectItemCaseSensitive(object, row->variant_key);
    return cJSON_IsString(v) && strcmp(v->valuestring, row->variant_value) == 0 ? row->variant
                                                                                : row;
}

/* Sets the section's row by name; NULL leaves it unset. */
static int choose_row(const struct load *l, const struct pm_config_section *s, const char *name)
{
    const struct pm_open_rows *rows = pm_config_rows(s, l->open);

    if (!name || rows->count == 0)
        return PM_OK;
    const char *path = pm_arena_printf(l->c->arena, "%s.%s", s->name, s->row_key);
    *row_of(l->c, s) = variant_of(l->c, s, pm_config_row_find(rows, name));
    return *row_of(l->c, s) ? PM_OK
                            : pm_config_fail_row(l->c, rows, path, s->row_kind, name);
}

static bool another_row_has(const struct load *l, const struct pm_config_section *s,
                            const char *key)
{
    const struct pm_open_rows *rows = pm_config_rows(s, l->open);

    for (size_t i = 0; rows && i < rows->count; i++)
        if (rows->rows[i].opts && pm_opts_find(rows->rows[i].opts, key) >= 0)
            return true;
    return false;
}

/* Whether an option of a base file belongs to a row that a later file or override has replaced.
 * Such an option is dropped. */
static bool is_left_behind(const struct load *l, const struct pm_config_section *s,
                           const char *path, const char *key)
{
    const char *chooser = pm_arena_printf(l->c->arena, "%s.%s", s->name, s->row_key);

    return s->row_kind && another_row_has(l, s, key) &&
           rank_of(l->c, path) < rank_of(l->c, chooser);
}

/* ---- the task's own keys --------------------------------------------------------------- */

static bool is_of_other_task(const struct load *l, const char *section, const char *key)
{
    const struct pm_open_task *other;

    return pm_config_other_task(l->open, l->c->task_row, section, key, &other) != NULL;
}

static const char *place_of(struct pm_config *c, const char *section, const char *key)
{
    return pm_arena_printf(c->arena, "%s %s",
                           pm_config_place(c, pm_arena_printf(c->arena, "%s.%s", section, key)),
                           section);
}

/* Checks that a key of another task has its default, because any other value would be ignored. */
static int check_foreign(const struct load *l, const struct pm_open_task *other,
                         const char *section, const struct pm_opt *opt, const cJSON *v)
{
    struct pm_config *c = l->c;
    const struct pm_opt one[] = { *opt, { 0 } };
    void *scratch = pm_arena_alloc(c->arena, pm_config_size_of(one));
    cJSON *changed = cJSON_CreateObject();
    int err = PM_OK;

    pm_opts_defaults(one, scratch, c->arena);
    PM_TRY(pm_opt_set(opt, v, scratch, c->arena, place_of(c, section, opt->key)));
    pm_opts_dump(one, scratch, changed, true);
    if (changed->child)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.%s: this key is for %s, but task is %s: remove it",
                       place_of(c, section, opt->key), opt->key, other->name, c->task));
out:
    cJSON_Delete(changed);
    return err;
}

/* Checks a section's keys of the task, and those of other tasks. */
static int check_task_keys(const struct load *l, const char *section)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(l->c->tree, section), *v;
    const struct pm_opt *own = pm_config_task_opts(l->c->task_row, section), *theirs;
    void *scratch = own ? pm_arena_alloc(l->c->arena, pm_config_size_of(own)) : NULL;
    const struct pm_config_section *s = pm_config_section_find(section, strlen(section));
    const struct pm_open_task *other;
    int err = PM_OK;

    cJSON_ArrayForEach(v, object)
    {
        if (has_key(own, v->string))
            PM_TRY(pm_opt_set(&own[pm_opts_find(own, v->string)], v, scratch, l->c->arena,
                              place_of(l->c, section, v->string)));
        else if (!has_key(s->opts, v->string) &&
                 (theirs =
                      pm_config_other_task(l->open, l->c->task_row, section, v->string, &other)))
            PM_TRY(check_foreign(l, other, section, &theirs[pm_opts_find(theirs, v->string)], v));
    }
out:
    return err;
}

/* Checks keys that are not the section's own: keys of the row are checked, all others are
 * refused. */
static int check_open_keys(const struct load *l, const struct pm_config_section *s, cJSON *object)
{
    int err = PM_OK;
    struct pm_config *c = l->c;
    const struct pm_open_row *row = s->row_kind ? *row_of(c, s) : NULL;
    const struct pm_open_rows *rows = pm_config_rows(s, l->open);
    const struct pm_opt *opts = row ? row->opts : NULL;
    void *scratch = opts ? pm_arena_alloc(c->arena, pm_config_size_of(opts)) : NULL;

    if (rows && rows->count == 0)
        return PM_OK;
    for (cJSON *v = object ? object->child : NULL, *next; v; v = next) {
        const char *path = pm_arena_printf(c->arena, "%s.%s", s->name, v->string);
        int i = opts ? pm_opts_find(opts, v->string) : -1;
        next = v->next;
        if (pm_opts_find(s->opts, v->string) >= 0 ||
            has_key(pm_config_task_opts(c->task_row, s->name), v->string))
            continue;
        if (is_of_other_task(l, s->name, v->string))
            continue;
        if (i >= 0) {
            PM_TRY(pm_opt_set(&opts[i], v, scratch, c->arena,
                              pm_arena_printf(c->arena, "%s %s", pm_config_place(c, path),
                                              s->name)));
        } else if (is_left_behind(l, s, path, v->string)) {
            PM_DEBUG("config", "%s %s: left out, %s.%s changed", pm_config_place(c, path), path,
                     s->name, s->row_key);
            cJSON_Delete(cJSON_DetachItemViaPointer(object, v));
        } else {
            PM_TRY(fail_unknown(l, s, row, v->string));
        }
    }
out:
    return err;
}

/* ---- sections -------------------------------------------------------------------------- */

static int read_section(const struct load *l, const struct pm_config_section *s)
{
    int err = PM_OK;
    struct pm_config *c = l->c;
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(c->tree, s->name);
    void *out = (char *)c + s->offset;

    pm_opts_defaults(s->opts, out, c->arena);
    if (!object || cJSON_IsNull(object))
        return PM_OK;
    if (!cJSON_IsObject(object))
        return pm_fail(PM_ECONFIG, "%s %s: an object { \"key\": value, ... } is needed",
                       pm_config_place(c, s->name), s->name);
    for (const cJSON *v = object->child; v; v = v->next) {
        int i = pm_opts_find(s->opts, v->string);
        const char *path = pm_arena_printf(c->arena, "%s.%s", s->name, v->string);
        if (i >= 0)
            PM_TRY(pm_opt_set(&s->opts[i], v, out, c->arena,
                              pm_arena_printf(c->arena, "%s %s", pm_config_place(c, path),
                                              s->name)));
    }
out:
    return err;
}

/* Sets the task's row. Accepts any task if open has no tasks. */
static int choose_task(const struct load *l)
{
    struct pm_config *c = l->c;
    const char *names = "";

    for (size_t i = 0; i < l->open->task_count; i++) {
        if (strcmp(l->open->tasks[i]->name, c->task) == 0) {
            c->task_row = l->open->tasks[i];
            return PM_OK;
        }
        names = pm_arena_printf(c->arena, "%s%s%s", names, i ? ", " : "", l->open->tasks[i]->name);
    }
    if (l->open->task_count == 0 && *c->task)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s task: one of %s is needed", pm_config_place(c, "task"), names);
}

static int read_top(const struct load *l)
{
    int err = PM_OK;
    struct pm_config *c = l->c;
    const cJSON *task = cJSON_GetObjectItemCaseSensitive(c->tree, "task");

    c->task = default_task;
    if (l->open->task_count > 0) {
        c->task_row = l->open->tasks[0];
        c->task = c->task_row->name;
    }
    for (const cJSON *v = c->tree->child; v; v = v->next) {
        bool known = pm_config_section_find(v->string, strlen(v->string)) != NULL;
        for (size_t i = 0; i < PM_COUNT(top_keys); i++)
            known |= strcmp(top_keys[i], v->string) == 0;
        if (!known)
            PM_TRY(fail_unknown_top(l, v));
    }
    if (!task || cJSON_IsNull(task))
        return PM_OK;
    c->task = cJSON_IsString(task) ? task->valuestring : "";
    PM_TRY(choose_task(l));
out:
    return err;
}

/* Without a folder of its own, data.folders' first one has the evaluation split and the classes. */
static void settle_folder(struct pm_config *c)
{
    const cJSON *first = cJSON_GetArrayItem(c->data.folders, 0);

    if (!c->data.folder)
        c->data.folder = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(first, "folder"));
}

static int read_multipliers(struct pm_config *c)
{
    int err = PM_OK, count = 0;
    const cJSON *map = c->optim.multipliers;
    struct pm_config_multiplier *list;

    if (!map) {
        c->optim.multiplier = c->task_row ? c->task_row->multipliers : NULL;
        c->optim.multiplier_count = c->task_row ? c->task_row->multiplier_count : 0;
        return PM_OK;
    }
    if (!cJSON_IsObject(map))
        return pm_fail(PM_ECONFIG,
                       "%s optim.multipliers: an object { \"expression\": factor } is "
                       "needed",
                       pm_config_place(c, "optim.multipliers"));
    list = pm_arena_alloc(c->arena, (size_t)cJSON_GetArraySize(map) * sizeof *list);
    for (const cJSON *v = map->child; v; v = v->next) {
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= 1e6))
            PM_TRY(pm_fail(PM_ECONFIG,
                           "%s optim.multipliers: the factor of '%s' must be a number "
                           "in 0..1000000",
                           pm_config_place(c, "optim.multipliers"), v->string));
        list[count++] = (struct pm_config_multiplier){ v->string, (float)v->valuedouble };
    }
    c->optim.multiplier = list;
    c->optim.multiplier_count = count;
out:
    return err;
}

/* ---- the whole ------------------------------------------------------------------------- */

static int read_all(const struct load *l)
{
    int err = PM_OK;
    struct pm_config *c = l->c;

    PM_TRY(read_top(l));
    pm_config_apply_defaults(c);
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        PM_TRY(read_section(l, s));
    PM_TRY(pm_config_read_devices(c));
    PM_TRY(read_multipliers(c));
    PM_TRY(pm_config_read_early_stop(c));
    settle_folder(c);
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        PM_TRY(check_task_keys(l, s->name));
    PM_TRY(choose_row(l, pm_config_section_find("model", 5), c->model.name));
    if (!c->input.preprocessing && c->model_row)
        c->input.preprocessing = c->model_row->preprocessing;
    PM_TRY(choose_row(l, pm_config_section_find("input", 5), c->input.preprocessing));
    PM_TRY(pm_config_read_augment(c, &l->open->augmentations));
    PM_TRY(choose_row(l, pm_config_section_find("optim", 5), c->optim.name));
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        PM_TRY(check_open_keys(l, s, cJSON_GetObjectItemCaseSensitive(c->tree, s->name)));
    PM_TRY(pm_config_check(c));
    PM_TRY(pm_config_read_buckets(c));
    if (c->task_row && c->task_row->check)
        PM_TRY(c->task_row->check(c));
out:
    return err;
}

int pm_config_parse(const char *name, const char *text, const char *const *overrides, size_t n,
                    const struct pm_open_sections *open, struct pm_config **out)
{
    int err = PM_OK;
    struct pm_config *c = pm_calloc(1, sizeof *c);
    const struct load l = { c, open };

    c->arena = pm_arena_create();
    c->path = pm_arena_strdup(c->arena, name);
    c->tree = cJSON_CreateObject();
    c->origins = pm_calloc(1, sizeof *c->origins);
    PM_TRY(pm_config_merge(c->path, text, overrides, n, c->tree, c->origins));
    PM_TRY(read_all(&l));
    *out = c, c = NULL;
out:
    pm_config_destroy(&c);
    return err;
}

int pm_config_load(const char *path, const char *const *overrides, size_t n,
                   const struct pm_open_sections *open, struct pm_config **out)
{
    return pm_config_parse(path, NULL, overrides, n, open, out);
}

void pm_config_destroy(struct pm_config **c)
{
    if (!c || !*c)
        return;
    pm_config_origins_destroy(&(*c)->origins);
    cJSON_Delete((*c)->tree);
    pm_arena_destroy(&(*c)->arena);
    pm_free(*c);
    *c = NULL;
}

/* ---- reading --------------------------------------------------------------------------- */

/* No PM_TRY: pm_config_dump calls this for values that were checked at load, and cannot fail. */
int pm_config_read(const struct pm_config *c, const char *section, const struct pm_opt *opts,
                   void *out)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(c->tree, section);
    int err = PM_OK;

    if (!opts)
        return PM_OK;
    pm_opts_defaults(opts, out, c->arena);
    for (const cJSON *v = object ? object->child : NULL; v && err == PM_OK; v = v->next) {
        int i = pm_opts_find(opts, v->string);
        const char *path = pm_arena_printf(c->arena, "%s.%s", section, v->string);
        if (i >= 0)
            err = pm_opt_set(&opts[i], v, out, c->arena,
                             pm_arena_printf(c->arena, "%s %s", pm_config_place(c, path), section));
    }
    return err;
}

int pm_config_need(const struct pm_config *c, const char *key, const char *value)
{
    if (value)
        return PM_OK;
    return pm_fail(PM_ECONFIG,
                   "%s: %s is not given and this command needs it; set it in the file "
                   "or add %s=VALUE",
                   c->path, key, key);
}

int pm_config_need_steps(const struct pm_config *c)
{
    if (c->run.steps != PM_UNSET || !isnan(c->run.epochs))
        return PM_OK;
    return pm_fail(PM_ECONFIG,
                   "%s: neither run.steps nor run.epochs is given; set the length of the training "
                   "with run.steps=STEPS or run.epochs=EPOCHS (run.steps=0 trains until stopped)",
                   c->path);
}

void pm_config_size(const struct pm_config *c, bool train, int *height, int *width)
{
    struct pm_ints size =
        train || c->input.eval_size.count == 0 ? c->input.size : c->input.eval_size;

    *height = size.count ? size.v[0] : 0;
    *width = size.count ? size.v[size.count - 1] : 0;
    if (train && c->buckets_count > 0) {
        *height = c->buckets[0][0];
        *width = c->buckets[0][1];
    }
}
