/* import_walk: walks over a model's nodes. Nodes that the logits need are converted in the model's
 * order. Nodes with only constant inputs are computed (import_fold.c); others become layers (the
 * builders of ops.def). Unsupported nodes are collected, so that one message names all of them. */
#include "onnx/import_private.h"

#include <pumice/export.h>

#include <ctype.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------------ */

struct value *import_value(struct import *m, const char *name)
{
    struct value **v = &m->values[pm_hash(name) % VALUE_BUCKETS];

    while (*v && strcmp((*v)->name, name) != 0)
        v = &(*v)->next;
    if (!*v) {
        *v = pm_arena_alloc(m->arena, sizeof **v);
        (*v)->name = name;
    }
    return *v;
}

struct value *import_in(struct import *m, int i)
{
    static struct value absent;

    return i < m->n->in_count && m->n->in[i][0] ? import_value(m, m->n->in[i]) : &absent;
}

/* Sets the value, but keeps v's name, links and readers. */
static void set_value(struct value *v, struct value what)
{
    what.name = v->name, what.next = v->next;
    what.maker = v->maker, what.reader = v->reader, what.readers = v->readers;
    what.is_cut = v->is_cut;
    *v = what;
}

struct value *import_out(struct import *m, int i)
{
    struct value *v;

    if (i >= m->n->out_count || !m->n->out[i][0]) /* unused output */
        return pm_arena_alloc(m->arena, sizeof *v);
    v = import_value(m, m->n->out[i]);
    set_value(v, (struct value){ 0 });
    return v;
}

void import_out_node(struct import *m, int i, struct pm_node *node, const struct view *view)
{
    struct value *v = import_out(m, i);

    v->kind = VALUE_NODE;
    v->node = node;
    v->view = *view;
}

void import_out_view(struct import *m, int i, const struct value *x, const struct view *view)
{
    struct value from = *x;

    from.laid = NULL; /* in the other view, the atoms may be split differently */
    from.view = *view;
    set_value(import_out(m, i), from);
}

void import_out_images(struct import *m, int i, struct pm_node *node)
{
    const struct pm_shape s = node->out_shape;
    int64_t dim[PM_MAX_RANK] = { s.dim[0], s.dim[s.rank - 1] };

    for (int k = 1; k < s.rank - 1; k++)
        dim[k + 1] = s.dim[k];
    const struct view v = view_ordered(s.rank, dim, import_channels_last(s.rank));
    import_out_node(m, i, node, &v);
}

void import_out_numbers(struct import *m, int i, int rank, const int64_t *dim,
                        const double *numbers, bool integer)
{
    struct value *v = import_out(m, i);

    v->kind = VALUE_NUMBERS;
    v->view = view_plain(rank, dim);
    v->numbers = numbers;
    v->integer = integer;
}

/* ---- names and refusals ------------------------------------------------------------------ */

static const char *legal(struct pm_arena *a, const char *text, const char *more)
{
    char *name = pm_arena_strdup(a, text);

    while (*name == '/' || *name == '.')
        name++;
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("_./-", *p) && !strchr(more, *p))
            *p = '_';
    return name;
}

const char *import_legal_name(struct pm_arena *a, const char *text, const char *more)
{
    const char *name = legal(a, text, more);

    return isalnum((unsigned char)name[0]) ? name : pm_arena_printf(a, "value%s", name);
}

/* Whether a name is in use. Inputs of the task are included: they are added after the import. */
static bool taken(const struct import *m, const char *name)
{
    const struct pm_node *n = pm_net_find(m->net, name);

    /* In a pass, a node of the net with exactly this name lends its variables and is no
     * conflict. */
    return (n && (!m->net->pass || strcmp(n->name, name) != 0)) ||
           strcmp(name, "images") == 0 || strcmp(name, "labels") == 0 ||
           strcmp(name, "loss") == 0;
}

const char *import_name(struct import *m, const char *more)
{
    const char *base = m->n->name[0] ? import_legal_name(m->arena, m->n->name, "")
                                     : pm_arena_printf(m->arena, "%s_%zu", m->n->op, m->index);
    const char *name = more ? pm_arena_printf(m->arena, "%s/%s", base, more) : base;

    for (int k = 2; taken(m, name); k++)
        name = pm_arena_printf(m->arena, "%s%s%s_%d", base, more ? "/" : "", more ? more : "", k);
    return name;
}

static void describe(const struct pm_onnx_node *n, size_t index, char *buf, size_t size)
{
    if (n->name[0])
        snprintf(buf, size, "node %zu \"%s\" (%s)", index, n->name, n->op);
    else
        snprintf(buf, size, "node %zu (%s)", index, n->op);
}

int import_refuse(struct import *m, const char *fmt, ...)
{
    const int most = PM_COUNT(m->refused), listed = m->refusals < most ? m->refusals : most;
    char who[160], what[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    m->refused_now = true;
    for (int i = 0; i < listed; i++)
        if (strcmp(m->refused[i].op, m->n->op) == 0 && strcmp(m->refused[i].what, what) == 0) {
            m->refused[i].more++;
            return PM_OK;
        }
    describe(m->n, m->index, who, sizeof who);
    if (listed < most)
        m->refused[listed] = (struct refusal){ m->n->op, pm_arena_strdup(m->arena, who),
                                               pm_arena_strdup(m->arena, what), 0 };
    m->refusals++;
    return PM_OK;
}

bool import_read_by_any(struct import *m, const char *name)
{
    return import_value(m, name)->readers > 0 || strcmp(m->logits, name) == 0;
}

const struct pm_onnx_node *import_only_reader(struct import *m, const char *name)
{
    const struct value *v = import_value(m, name);

    return v->readers == 1 && strcmp(m->logits, name) != 0 ? v->reader : NULL;
}

/* ---- the walk ---------------------------------------------------------------------------- */

/* Marks needed values by their kind until they are made. */
static void need_inputs(struct import *m, const struct pm_onnx_node *n)
{
    for (int k = 0; k < n->out_count; k++)
        if (n->out[k][0])
            import_value(m, n->out[k])->maker = n;
    for (int k = 0; k < n->in_count; k++) {
        struct value *v = n->in[k][0] ? import_value(m, n->in[k]) : NULL;

        if (!v)
            continue;
        v->kind = v->is_cut ? VALUE_ABSENT : VALUE_BROKEN;
        v->reader = n;
        v->readers++;
    }
}

void import_need(struct import *m, const char *name)
{
    bool *needed = pm_arena_alloc(m->arena, m->model->node_count + 1);
    struct value *wanted = import_value(m, name);

    for (int i = 0; i < m->options->cut_count; i++)
        import_value(m, m->options->cuts[i].name)->is_cut = true;
    wanted->kind = wanted->is_cut ? VALUE_ABSENT : VALUE_BROKEN;
    for (size_t i = m->model->node_count; i-- > 0;) {
        const struct pm_onnx_node *n = &m->model->nodes[i];

        for (int k = 0; k < n->out_count; k++)
            needed[i] |= n->out[k][0] && import_value(m, n->out[k])->kind == VALUE_BROKEN;
        if (needed[i])
            need_inputs(m, n);
    }
    m->logits = name;
    m->needed = needed;
    m->absorbed = pm_arena_alloc(m->arena, sizeof *m->absorbed * (m->model->node_count + 1));
}

/* Whether an initializer is a weight. Constants of our own export (export.h) are not. */
static bool learns(const struct import *m, const struct pm_onnx_tensor *t)
{
    return t->type < PM_DTYPE_I64 &&
           !(strcmp(m->model->producer, "pumice") == 0 && pm_export_is_constant(t->name));
}

int import_tensors(struct import *m)
{
    m->nodes_learn = true;
    for (size_t i = 0; i < m->model->tensor_count; i++) {
        const struct pm_onnx_tensor *t = &m->model->tensors[i];
        struct value *v = import_value(m, t->name);

        if (!import_sane(t->rank, t->dim))
            return pm_fail(
                PM_EDATA,
                "%s: the initializer %s has a shape that is too large or has a negative axis",
                m->model->path, t->name);
        v->kind = VALUE_TENSOR;
        v->tensor = t;
        v->view = view_plain(t->rank, t->dim);
        v->integer = t->type >= PM_DTYPE_I64;
        v->learned = learns(m, t);
        m->nodes_learn &= !v->learned || t->count < 2;
    }
    return PM_OK;
}

static bool broken_input(struct import *m)
{
    for (int i = 0; i < m->n->in_count; i++)
        if (import_in(m, i)->kind == VALUE_BROKEN)
            return true;
    return false;
}

static void break_outputs(struct import *m)
{
    for (int i = 0; i < m->n->out_count; i++)
        import_out(m, i)->kind = VALUE_BROKEN;
}

static int build_node(struct import *m)
{
    int err = PM_OK;
    bool folded = false;
    const struct operator *op = import_operator(m->n);
    char who[160];

    m->refused_now = false;
    if (m->absorbed[m->index]) {
        struct value *v = import_value(m, m->absorbed[m->index]);

        import_out_view(m, 0, v, &v->view);
        return PM_OK;
    }
    if (!op)
        import_refuse(m, "Pumice does not have this operator%s%s",
                      m->n->domain[0] ? ", domain " : "", m->n->domain);
    else if (import_in(m, 0)->kind == VALUE_ABSENT && strcmp(m->n->op, "Constant") != 0)
        import_refuse(m, "it has no input");
    else if (!broken_input(m)) {
        PM_TRY(import_fold(m, &folded));
        if (!folded && !m->refused_now)
            PM_TRY(op->build(m));
    }
    if (m->net->error) {
        describe(m->n, m->index, who, sizeof who);
        PM_TRY(pm_fail(m->net->error, "%s: %s: %s", m->model->path, who, pm_error_text()));
    }
    for (int i = 0; op && !m->refused_now && !broken_input(m) && i < m->n->out_count; i++) {
        const struct view *v = &import_value(m, m->n->out[i])->view;

        if (!import_sane(v->rank, v->dim))
            import_refuse(m, "its output has a shape that is too large or has a negative axis");
    }
    if (!op || m->refused_now || broken_input(m))
        break_outputs(m);
out:
    return err;
}

int import_check_refusals(const struct import *m)
{
    const int most = PM_COUNT(m->refused), listed = m->refusals < most ? m->refusals : most;
    struct pm_str s = { 0 };

    if (!m->refusals)
        return PM_OK;
    for (int i = 0; i < listed; i++) {
        pm_str_add(&s, "%s%s: %s", i ? "; " : "", m->refused[i].who, m->refused[i].what);
        if (m->refused[i].more)
            pm_str_add(&s, " (and %d more)", m->refused[i].more);
    }
    const bool one = m->refusals == 1 && !m->refused[0].more;
    const int err = pm_fail(PM_ECONFIG, "%s: %s%s not supported; docs/onnx.md lists the "
                            "operators",
                            m->model->path, s.text, m->refusals > most ? "; and more: these are"
                                                    : one              ? ": this is"
                                                                       : ": these are");
    pm_str_free(&s);
    return err;
}

int import_walk(struct import *m)
{
    int err = PM_OK;

    for (m->index = 0; m->index < m->model->node_count; m->index++) {
        m->n = &m->model->nodes[m->index];
        if (m->needed[m->index])
            PM_TRY(build_node(m));
    }
    PM_TRY(import_check_refusals(m));
out:
    return err;
}
