/* warm_start: init.checkpoint's values into a model that is about to train. All variables are
 * looked at before the first is read, so that one run names everything that does not fit. */
#include "train/state.h"

#include <string.h>

enum fate { TAKEN, EXCLUDED, MISSING, MISSHAPEN, FATES };

struct warm_start {
    struct pm_variables *v;
    const struct pm_config_init *init;
    const char *where; /* "FILE: init.checkpoint" */
    struct pm_checkpoint *from;
    int count[FATES];
    const struct pm_variable *first[FATES];
};

static bool begins(const char *name, const char *scope)
{
    return strncmp(name, scope, strlen(scope)) == 0;
}

static enum fate fate_of(const struct warm_start *w, const struct pm_variable *x)
{
    struct pm_shape there;

    for (int i = 0; i < w->init->exclude_scopes.count; i++)
        if (begins(x->name, w->init->exclude_scopes.v[i]))
            return EXCLUDED;
    if (!pm_checkpoint_has(w->from, x->name, &there))
        return MISSING;
    return pm_shape_equal(there, x->shape) ? TAKEN : MISSHAPEN;
}

static void tell(const struct warm_start *w, const struct pm_variable *x, enum fate fate)
{
    struct pm_shape there;
    char is[64], wanted[64];

    if (fate == EXCLUDED)
        PM_INFO("init", "%s: excluded, keeps its initial value", x->name);
    if (fate == MISSING)
        PM_WARN("init", "%s: not in %s%s", x->name, w->from->path,
                w->init->ignore_missing ? ", keeps its initial value" : "");
    if (fate == MISSHAPEN && pm_checkpoint_has(w->from, x->name, &there))
        PM_WARN("init", "%s: shape %s in %s, but %s in the net", x->name, pm_shape_text(there, is),
                w->from->path, pm_shape_text(x->shape, wanted));
}

static void look(struct warm_start *w)
{
    for (int i = 0; i < w->v->count; i++) {
        const struct pm_variable *x = &w->v->list[i];
        enum fate fate = fate_of(w, x);

        if (w->count[fate]++ == 0)
            w->first[fate] = x;
    }
    for (int i = 0; w->count[TAKEN] && i < w->v->count; i++)
        tell(w, &w->v->list[i], fate_of(w, &w->v->list[i]));
}

/* A scope that begins no name is a slip of the pen, or meant for another net. */
static void warn_of_idle_scopes(const struct warm_start *w)
{
    const char **names = pm_malloc(((size_t)w->v->count + 1) * sizeof *names);

    for (int i = 0; i < w->v->count; i++)
        names[i] = w->v->list[i].name;
    for (int k = 0; k < w->init->exclude_scopes.count; k++) {
        const char *scope = w->init->exclude_scopes.v[k], *near;
        int hits = 0;

        for (int i = 0; i < w->v->count; i++)
            hits += begins(names[i], scope);
        near = hits ? NULL : pm_nearest(scope, names, (size_t)w->v->count);
        if (hits == 0)
            PM_WARN("init", "init.exclude_scopes: no variable's name begins with \"%s\"%s%s", scope,
                    near ? "; the nearest is " : "", near ? near : "");
    }
    pm_free(names);
}

static int check(const struct warm_start *w)
{
    const int all = w->v->count;
    struct pm_shape there;
    char is[64], wanted[64];

    if (w->count[TAKEN] == 0)
        return pm_fail(PM_EDATA, "%s: %s has nothing for this net: of its %d variables %d are not "
                       "there, %d have other shapes, %d are excluded; name a checkpoint of the same "
                       "net", w->where, w->from->path, all, w->count[MISSING], w->count[MISSHAPEN],
                       w->count[EXCLUDED]);
    if (w->count[MISSHAPEN] && pm_checkpoint_has(w->from, w->first[MISSHAPEN]->name, &there))
        return pm_fail(PM_EDATA, "%s: %d of %d variables have other shapes in %s, the first is '%s', "
                       "%s there and %s in the net: name the beginnings of such names in "
                       "init.exclude_scopes", w->where, w->count[MISSHAPEN], all, w->from->path,
                       w->first[MISSHAPEN]->name, pm_shape_text(there, is),
                       pm_shape_text(w->first[MISSHAPEN]->shape, wanted));
    if (w->count[MISSING] && !w->init->ignore_missing)
        return pm_fail(PM_EDATA, "%s: %d of %d variables are not in %s, the first is '%s': name the "
                       "beginnings of such names in init.exclude_scopes, or set init.ignore_missing",
                       w->where, w->count[MISSING], all, w->from->path, w->first[MISSING]->name);
    return PM_OK;
}

static int take(const struct warm_start *w)
{
    float *data = NULL;
    int err = PM_OK;

    for (int i = 0; i < w->v->count; i++) {
        const struct pm_variable *x = &w->v->list[i];

        if (fate_of(w, x) != TAKEN)
            continue;
        data = pm_realloc(data, pm_shape_count(x->shape) * sizeof *data);
        PM_TRY(pm_checkpoint_read(w->from, x->name, x->shape, data));
        PM_TRY(pm_variables_write(w->v, i, -1, data));
    }
out:
    pm_free(data);
    return err;
}

int pm_values_warm_start(struct pm_variables *v, const struct pm_config_init *init,
                         const char *where)
{
    int err = PM_OK;
    struct warm_start w = { .v = v, .init = init, .where = where };

    PM_TRY(pm_checkpoint_open(NULL, init->checkpoint, where, &w.from));
    look(&w);
    warn_of_idle_scopes(&w);
    PM_TRY(check(&w));
    PM_TRY(take(&w));
    PM_INFO("init", "%d of %d variables from %s, %d excluded, %d missing", w.count[TAKEN], v->count,
            w.from->path, w.count[EXCLUDED], w.count[MISSING]);
out:
    pm_checkpoint_close(&w.from);
    return err;
}
