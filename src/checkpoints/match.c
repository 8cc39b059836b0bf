/* match: looks up a net's variables in a checkpoint and reports the result. */
#include "checkpoints/match.h"

#include "optim/averages.h"

#include <stdlib.h>
#include <string.h>

/* ---- variables ------------------------------------------------------------------------- */

bool pm_match_begins(const char *name, const struct pm_strings *scopes)
{
    for (int i = 0; i < scopes->count; i++)
        if (strncmp(name, scopes->v[i], strlen(scopes->v[i])) == 0)
            return true;
    return false;
}

static const struct pm_file_tensor *average_of(const struct pm_match *m, const char *variable)
{
    struct pm_str name = { 0 };
    const struct pm_file_tensor *t;

    pm_str_add(&name, "%s/" PM_AVERAGE_SUFFIX, variable);
    t = pm_tensor_file_find(m->from->tensors, name.text);
    pm_str_free(&name);
    return t;
}

/* The name of variable i in the file; NULL: it is not looked up. */
static const char *file_name(const struct pm_match *m, int i)
{
    return m->names ? m->names[i] : m->v->list[i].name;
}

static struct pm_found look_up(const struct pm_match *m, int i, bool averages)
{
    const struct pm_variable *x = &m->v->list[i];
    struct pm_found f = { .fate = PM_FATE_EXCLUDED };

    if (pm_match_begins(x->name, &m->exclude))
        return f;
    f.fate = PM_FATE_OUTSIDE;
    if (!file_name(m, i))
        return f;
    f.tensor = averages ? average_of(m, file_name(m, i)) : NULL;
    f.average = f.tensor != NULL;
    if (!f.tensor)
        f.tensor = pm_tensor_file_find(m->from->tensors, file_name(m, i));
    f.fate = !f.tensor                               ? (x->late ? PM_FATE_LATE : PM_FATE_MISSING)
             : pm_checkpoint_fits(f.tensor, x->shape) ? PM_FATE_TAKEN
                                                      : PM_FATE_MISSHAPEN;
    f.padded = f.tensor && f.tensor->rank != x->shape.rank;
    return f;
}

void pm_match_make(const struct pm_checkpoint *from, const struct pm_variables *v, bool averages,
                   const struct pm_strings *exclude, const char *const *names,
                   struct pm_match *out)
{
    *out = (struct pm_match){ .from = from, .v = v, .names = names,
                              .of = pm_calloc((size_t)v->count + 1, sizeof *out->of) };
    if (exclude)
        out->exclude = *exclude;
    for (int i = 0; i < v->count; i++) {
        out->of[i] = look_up(out, i, averages);
        if (out->count[out->of[i].fate]++ == 0)
            out->first[out->of[i].fate] = i;
        out->averages += out->of[i].fate == PM_FATE_TAKEN && out->of[i].average;
    }
}

void pm_match_free(struct pm_match *m)
{
    pm_free(m->of);
    *m = (struct pm_match){ 0 };
}

int pm_match_read(const struct pm_match *m, int i, float *data)
{
    const struct pm_file_tensor *t = m->of[i].tensor;

    return pm_tensor_file_floats(m->from->tensors, t, 0, (size_t)t->count, data);
}

struct taken {
    const struct pm_match *m;
    int i;
};

static int read_taken(const void *from, size_t first, size_t count, float *out)
{
    const struct taken *x = from;

    return pm_tensor_file_floats(x->m->from->tensors, x->m->of[x->i].tensor, first, count, out);
}

int pm_match_write(const struct pm_match *m, struct pm_variables *v)
{
    int err = PM_OK;

    for (int i = 0; i < v->count; i++)
        if (m->of[i].fate == PM_FATE_TAKEN)
            PM_TRY(pm_variables_fill(v, i, read_taken, &(struct taken){ m, i }));
out:
    return err;
}

/* ---- reporting ------------------------------------------------------------------------- */

static void tell_one(const struct pm_match *m, int i, const char *keeps)
{
    const struct pm_variable *x = &m->v->list[i];
    const struct pm_found *f = &m->of[i];
    char is[96], wanted[64];

    if (f->fate == PM_FATE_EXCLUDED)
        PM_INFO("checkpoint", "%s: excluded, keeps its initial value", x->name);
    else if (f->fate == PM_FATE_MISSING)
        PM_WARN("checkpoint", "%s: not in %s%s", x->name, m->from->path, keeps);
    else if (f->fate == PM_FATE_MISSHAPEN)
        PM_WARN("checkpoint", "%s: shape %s in %s, but %s in the net", x->name,
                pm_file_tensor_shape(f->tensor, is), m->from->path,
                pm_shape_text(x->shape, wanted));
    else if (f->padded)
        PM_INFO("checkpoint",
                "%s: the checkpoint's shape %s is read as %s, the same elements in the same order",
                x->name, pm_file_tensor_shape(f->tensor, is), pm_shape_text(x->shape, wanted));
}

/* Logs the number of the variables of a fate and the first names. */
static void tell_number(const struct pm_match *m, enum pm_fate fate)
{
    enum { SHOWN = 5 };
    struct pm_str names = { 0 };
    int shown = 0;

    for (int i = m->first[fate]; i < m->v->count && shown < SHOWN; i++)
        if (m->of[i].fate == fate)
            pm_str_add(&names, "%s%s", shown++ ? ", " : "", m->v->list[i].name);
    PM_WARN("checkpoint", "%d of the net's %d variables %s %s: %s%s", m->count[fate], m->v->count,
            fate == PM_FATE_MISSING ? "are not in" : "have other shapes in", m->from->path,
            names.text, m->count[fate] > SHOWN ? ", ..." : "");
    pm_str_free(&names);
}

void pm_match_tell(const struct pm_match *m, const char *keeps, int most)
{
    static const enum pm_fate often[] = { PM_FATE_MISSING, PM_FATE_MISSHAPEN };
    bool together[PM_FATES] = { false };

    for (size_t k = 0; k < PM_COUNT(often); k++) {
        together[often[k]] = m->count[often[k]] > most;
        if (together[often[k]])
            tell_number(m, often[k]);
    }
    for (int i = 0; i < m->v->count; i++)
        if (!together[m->of[i].fate])
            tell_one(m, i, keeps);
}

/* ---- the file's other tensors ----------------------------------------------------------- */

enum kind { NAMED, EXCLUDED, AVERAGE, SLOT, COUNTER, STRANGE, KINDS };

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum kind kind_of(const struct pm_match *m, const char **names,
                         const struct pm_file_tensor *t)
{
    static const enum kind by_role[] = { [PM_ROLE_AVERAGE] = AVERAGE, [PM_ROLE_SLOT] = SLOT,
                                         [PM_ROLE_COUNTER] = COUNTER };
    const enum pm_role role = pm_checkpoint_role(m->from, t);

    if (bsearch(&t->name, names, (size_t)m->v->count, sizeof *names, by_text))
        return NAMED;
    if (role != PM_ROLE_VARIABLE)
        return by_role[role];
    return pm_match_begins(t->name, &m->exclude) ? EXCLUDED : STRANGE;
}

/* Returns the sorted names of all variables in the file. */
static const char **names_of(const struct pm_match *m)
{
    const struct pm_variables *v = m->v;
    const char **names = pm_malloc(((size_t)v->count + 1) * sizeof *names);

    for (int i = 0; i < v->count; i++)
        names[i] = file_name(m, i) ? file_name(m, i) : v->list[i].name;
    qsort(names, (size_t)v->count, sizeof *names, by_text);
    return names;
}

void pm_match_tell_rest(const struct pm_match *m)
{
    enum { SHOWN = 5 };
    const char **names = names_of(m);
    struct pm_str first = { 0 };
    size_t count[KINDS] = { 0 };

    for (size_t i = 0; i < pm_tensor_file_count(m->from->tensors); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(m->from->tensors, i);
        enum kind kind = kind_of(m, names, t);

        if (kind == STRANGE && count[STRANGE] < SHOWN)
            pm_str_add(&first, "%s%s", count[STRANGE] ? ", " : "", t->name);
        count[kind]++;
    }
    if (count[AVERAGE] - (size_t)m->averages + count[SLOT] + count[COUNTER] > 0)
        PM_INFO(
            "checkpoint",
            "not read from %s: %zu moving %s, %zu optimizer %s, %zu %s", m->from->path,
            count[AVERAGE] - (size_t)m->averages,
            pm_plural((double)(count[AVERAGE] - (size_t)m->averages), "average", "averages"),
            count[SLOT], pm_plural((double)count[SLOT], "slot", "slots"), count[COUNTER],
            pm_plural((double)count[COUNTER], "counter or text", "counters and texts"));
    if (count[STRANGE])
        PM_INFO("checkpoint", "%zu %s %s %s no variable of this net: %s%s", count[STRANGE],
                pm_plural((double)count[STRANGE], "tensor in", "tensors in"), m->from->path,
                pm_plural((double)count[STRANGE], "matches", "match"),
                first.text, count[STRANGE] > SHOWN ? ", ..." : "");
    pm_str_free(&first);
    pm_free(names);
}

/* ---- remedies --------------------------------------------------------------------------- */

static bool is_wanted_out(const struct pm_match *m, int i, bool missing)
{
    return m->of[i].fate == PM_FATE_MISSHAPEN || (missing && m->of[i].fate == PM_FATE_MISSING);
}

/* Returns the scope that excludes variable i: its folder, with a slash if other folders' names
 * begin the same, or the variable's whole name if other variables of its folder are loaded. */
static char *scope_of(const struct pm_match *m, int i)
{
    const char *name = m->v->list[i].name, *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : strlen(name);
    bool alone = true, whole = true;
    char *scope = pm_strdup(name);

    for (int k = 0; slash && k < m->v->count; k++) {
        const char *other = m->v->list[k].name;

        if (m->of[k].fate != PM_FATE_TAKEN)
            continue;
        alone &= strncmp(other, name, n) != 0;
        whole &= strncmp(other, name, n + 1) != 0;
    }
    if (slash && whole)
        scope[alone ? n : n + 1] = 0;
    return scope;
}

char *pm_match_scopes(const struct pm_match *m, bool missing)
{
    enum { MOST = 8 };
    struct pm_str text = { 0 };
    char *scopes[MOST];
    const char *comma = "";
    int count = 0, i;

    for (i = 0; i < m->v->count; i++) {
        struct pm_strings known = { count, (const char *const *)scopes };

        if (!is_wanted_out(m, i, missing) || pm_match_begins(m->v->list[i].name, &known))
            continue;
        if (count == MOST)
            break;
        scopes[count++] = scope_of(m, i);
    }
    pm_str_add(&text, "init.exclude_scopes='[");
    for (int k = 0; k < m->exclude.count; k++, comma = ", ")
        pm_str_add(&text, "%s\"%s\"", comma, m->exclude.v[k]);
    for (int k = 0; k < count; k++, comma = ", ") {
        pm_str_add(&text, "%s\"%s\"", comma, scopes[k]);
        pm_free(scopes[k]);
    }
    pm_str_add(&text, "]'");
    if (i < m->v->count || count == 0)
        pm_str_free(&text);
    return text.text;
}

void pm_match_nearest(const struct pm_match *m, const char *name, struct pm_str *text)
{
    size_t count = pm_tensor_file_count(m->from->tensors);
    const char **names = pm_malloc((count + 1) * sizeof *names), *near;

    for (size_t i = 0; i < count; i++)
        names[i] = pm_tensor_file_get(m->from->tensors, i)->name;
    near = pm_nearest(name, names, count);
    if (near)
        pm_str_add(text, " (the nearest there is '%s')", near);
    pm_free(names);
}

void pm_match_classes(const struct pm_match *m, struct pm_str *text)
{
    int64_t there = -1, here = -1;

    for (int i = 0; i < m->v->count; i++) {
        const struct pm_file_tensor *t = m->of[i].tensor;
        struct pm_shape s = m->v->list[i].shape;

        if (m->of[i].fate != PM_FATE_MISSHAPEN)
            continue;
        if (t->rank == 0 || s.rank == 0 || (there >= 0 && (there != t->dim[t->rank - 1] ||
                                                            here != s.dim[s.rank - 1])))
            return;
        there = t->dim[t->rank - 1];
        here = s.dim[s.rank - 1];
        s.dim[s.rank - 1] = (int)there;
        if (there > INT32_MAX || !pm_checkpoint_fits(t, s))
            return;
    }
    if (there >= 0)
        pm_str_add(text, " (%lld classes there, %lld in the net?)", (long long)there,
                   (long long)here);
}
