/* import_value: converts values to the layout that layers request. A node's output is transposed to
 * the requested order of axes; this costs nothing if it already has that order. Constants become
 * variables. Their elements are read from the file, in the variable's order, when a device needs
 * them. */
#include "onnx/import_private.h"

#include <pumice/export.h>

#include <math.h>
#include <string.h>

/* ---- nodes ------------------------------------------------------------------------------- */

const char *import_channels_last(int rank)
{
    static const char *const orders[] = { "", "0", "0 1", "0 2 1", "0 2 3 1", "0 2 34 1",
                                          "0 2 345 1" };

    return orders[rank < 7 ? rank : 0];
}

/* Returns v's node with this shape: a view. */
static struct pm_node *shaped(struct import *m, struct pm_node *x, int rank, const int64_t *dim)
{
    struct pm_str spec = { 0 };
    bool same = x->out_shape.rank == rank;
    struct pm_node *y = x;

    for (int i = 0; i < rank; i++)
        same = same && x->out_shape.dim[i] == dim[i];
    if (!same && !m->net->error) {
        pm_str_add(&spec, "reshape shape=[");
        for (int i = 0; i < rank; i++)
            pm_str_add(&spec, "%s%lld", i ? "," : "", (long long)dim[i]);
        pm_str_add(&spec, "]");
        y = pm_net_add(m->net, import_name(m, "reshape"), x, "%s", spec.text);
    }
    pm_str_free(&spec);
    return y;
}

static struct pm_node *transposed(struct import *m, struct pm_node *x, int rank, const int64_t *dim,
                                  const int *perm)
{
    struct pm_str spec = { 0 };
    struct pm_node *y;

    if (rank > PM_MAX_RANK) {
        import_refuse(m, "a transposition over %d axes", rank);
        return x;
    }
    x = shaped(m, x, rank, dim);
    pm_str_add(&spec, "transpose perm=[");
    for (int i = 0; i < rank; i++)
        pm_str_add(&spec, "%s%d", i ? "," : "", perm[i]);
    pm_str_add(&spec, "]");
    y = pm_net_add(m->net, import_name(m, "transpose"), x, "%s", spec.text);
    pm_str_free(&spec);
    return y;
}

/* Returns v's node with its atoms in this order, in any shape. */
static struct pm_node *ordered(struct import *m, struct value *v, const int to[VIEW_ATOMS])
{
    int64_t dim[VIEW_ATOMS];
    int perm[VIEW_ATOMS];
    const size_t size = sizeof *to * (size_t)v->view.atoms;
    const int rank = view_moves(&v->view, to, dim, perm);
    struct laid *l;

    if (rank == 0)
        return v->node;
    for (l = v->laid; l; l = l->next)
        if (memcmp(l->at, to, size) == 0)
            return l->node;
    l = pm_arena_alloc(m->arena, sizeof *l);
    memcpy(l->at, to, size);
    l->node = transposed(m, v->node, rank, dim, perm);
    l->next = v->laid;
    v->laid = l;
    return l->node;
}

/* Computes the sizes of the groups; returns their number. */
static int group_sizes(const struct view *v, const char *groups, int64_t dim[PM_FILE_MAX_RANK])
{
    int n = 0;

    dim[0] = 1;
    for (const char *p = groups; *p; p++)
        if (*p == ' ')
            dim[++n] = 1;
        else
            dim[n] *= v->dim[*p - '0'];
    return n + 1;
}

/* Makes a node from a constant. Its input is only formal: a node must have one. */
static struct pm_node *parameter(struct import *m, struct value *v, const char *groups)
{
    int64_t dim[PM_FILE_MAX_RANK];
    const int rank = group_sizes(&v->view, groups, dim);
    struct pm_given given = import_given(m, v, groups, !v->integer);
    struct pm_str spec = { 0 };
    struct pm_node *y;

    pm_str_add(&spec, "parameter shape=[");
    for (int i = 0; i < rank; i++)
        pm_str_add(&spec, "%s%lld", i ? "," : "", (long long)dim[i]);
    pm_str_add(&spec, "]");
    m->net->given = &given, m->net->given_count = 1;
    y = pm_net_add(m->net, import_name(m, "parameter"), m->net->nodes[0], "%s", spec.text);
    m->net->given_count = 0;
    pm_str_free(&spec);
    return y;
}

struct pm_node *import_lay(struct import *m, struct value *v, const char *groups)
{
    int64_t dim[PM_FILE_MAX_RANK];
    int to[VIEW_ATOMS];
    int rank;

    if (value_constant(v))
        return parameter(m, v, groups);
    if (v->kind != VALUE_NODE) {
        import_refuse(m, "an input is missing");
        return m->net->nodes[0];
    }
    rank = group_sizes(&v->view, groups, dim);
    view_atoms(&v->view, groups, to);
    if (rank > PM_MAX_RANK) {
        import_refuse(m, "a value of %d axes", rank);
        return v->node;
    }
    return shaped(m, ordered(m, v, to), rank, dim);
}

struct pm_node *import_lay_plain(struct import *m, struct value *v)
{
    char groups[2 * PM_FILE_MAX_RANK + 1];
    const int together = v->view.rank > PM_MAX_RANK ? v->view.rank - PM_MAX_RANK : 0;
    int n = 0;

    for (int i = 0; i < v->view.rank; i++) {
        if (i > together)
            groups[n++] = ' ';
        groups[n++] = (char)('0' + i);
    }
    groups[n] = 0;
    return import_lay(m, v, groups);
}

/* ---- constants ---------------------------------------------------------------------------- */

static int64_t strides_of(const struct view *v, int64_t stride[VIEW_ATOMS])
{
    int64_t n = 1;

    for (int k = v->atoms; k-- > 0;) {
        stride[v->at[k]] = n;
        n *= v->size[v->at[k]];
    }
    return n;
}

/* A constant's elements, read in the order of these atoms. */
struct source {
    struct source *next;
    const char *variable;
    bool trained;
    size_t node;            /* the node that uses it */
    struct value value;     /* kind, tensor, numbers, fill */
    int rank;
    int64_t dim[VIEW_ATOMS], stride[VIEW_ATOMS];
    double factor;
};

/* Visits elements first..first+count-1 of the source in its order; `at` is their place in
 * memory. */
static void walk_source(const struct source *s, size_t first, size_t count,
                        void (*visit)(void *ctx, size_t i, int64_t at), void *ctx)
{
    int64_t index[VIEW_ATOMS] = { 0 }, at = 0, rest = (int64_t)first;

    for (int k = s->rank; k-- > 0; rest /= s->dim[k]) {
        index[k] = rest % s->dim[k];
        at += index[k] * s->stride[k];
    }
    for (size_t n = 0; n < count;) {
        visit(ctx, n++, at);
        int k = s->rank - 1;
        for (; k >= 0; k--) {
            at += s->stride[k];
            if (++index[k] < s->dim[k])
                break;
            at -= s->dim[k] * s->stride[k];
            index[k] = 0;
        }
    }
}

/* Copies elements in another order. */
struct gather {
    const struct source *s;
    const float *floats;   /* a tensor's; NULL: the value's numbers or its fill */
    const int64_t *ints;
    float *out;
    double *numbers;
};

static void gather_float(void *ctx, size_t i, int64_t at)
{
    const struct gather *g = ctx;
    const struct value *v = &g->s->value;
    const double x = v->kind == VALUE_FILL ? v->fill : v->numbers[at];

    g->out[i] = (float)(g->s->factor * x);
}

static void gather_double(void *ctx, size_t i, int64_t at)
{
    const struct gather *g = ctx;
    const struct value *v = &g->s->value;

    g->numbers[i] = g->ints ? (double)g->ints[at]
                    : g->floats ? (double)g->floats[at]
                    : v->kind == VALUE_FILL ? v->fill
                                            : v->numbers[at];
}

/* A source's atoms in the tensor's order: their sizes, and the distance of neighbours in the
 * variable. */
struct scatter {
    int rank;
    int64_t dim[VIEW_ATOMS], step[VIEW_ATOMS];
    bool same; /* the tensor and the variable have the same order */
};

static struct scatter scatter_of(const struct source *s)
{
    struct scatter to = { .rank = s->rank, .same = true };
    int64_t step[VIEW_ATOMS] = { 0 }, n = 1;

    for (int k = s->rank; k-- > 0; n *= s->dim[k])
        step[k] = n;
    for (int k = 0; k < s->rank; k++) {
        int place = 0;
        for (int j = 0; j < s->rank; j++)
            place += s->stride[j] > s->stride[k];
        to.dim[place] = s->dim[k];
        to.step[place] = step[k];
        to.same = to.same && place == k;
    }
    return to;
}

/* Position of a walk over the tensor: the atoms' indices, and the element's place in the
 * variable. */
struct walk {
    int64_t index[VIEW_ATOMS];
    size_t at;
};

/* Number of elements up to the end of the last atom. */
static size_t run_left(const struct scatter *to, const struct walk *w)
{
    return to->rank ? (size_t)(to->dim[to->rank - 1] - w->index[to->rank - 1]) : 1;
}

static void step_on(const struct scatter *to, struct walk *w, size_t run)
{
    int k = to->rank - 1;

    if (k < 0)
        return;
    w->index[k] += (int64_t)run;
    w->at += run * (size_t)to->step[k];
    for (; k > 0 && w->index[k] == to->dim[k]; k--) {
        w->index[k] = 0;
        w->index[k - 1]++;
        w->at += (size_t)to->step[k - 1] - (size_t)(to->dim[k] * to->step[k]);
    }
}

/* Reads the tensor from start to end in pieces and stores each element at its place. Elements
 * outside first..first+count-1 of the variable are skipped. So memory never holds a second copy of
 * a large variable. */
static int scatter_tensor(const struct source *s, size_t first, size_t count, float *out)
{
    enum { READ = 1 << 16 };
    int err = PM_OK;
    const struct scatter to = scatter_of(s);
    const size_t all = (size_t)view_count(&s->value.view);
    const size_t step = to.rank ? (size_t)to.step[to.rank - 1] : 1, end = first + count;
    struct walk w = { .at = 0 };
    float *piece = pm_malloc(READ * sizeof *piece);

    for (size_t at = 0, n; at < all; at += n) {
        n = all - at < READ ? all - at : READ;
        PM_TRY(pm_onnx_floats(s->value.tensor, at, n, piece));
        for (size_t i = 0, run; i < n; i += run) {
            const size_t left = run_left(&to, &w);

            run = left < n - i ? left : n - i;
            const size_t begin = w.at < first ? (first - w.at + step - 1) / step : 0;
            const size_t most = w.at < end ? (end - w.at + step - 1) / step : 0;
            for (size_t j = begin; j < most && j < run; j++)
                out[w.at + j * step - first] = (float)(s->factor * (double)piece[i + j]);
            step_on(&to, &w, run);
        }
    }
out:
    pm_free(piece);
    return err;
}

static int read_source(const void *from, size_t first, size_t count, float *out)
{
    int err = PM_OK;
    const struct source *s = from;

    if (s->value.kind != VALUE_TENSOR) {
        walk_source(s, first, count, gather_float, &(struct gather){ .s = s, .out = out });
    } else if (!scatter_of(s).same) {
        PM_TRY(scatter_tensor(s, first, count, out));
    } else {
        PM_TRY(pm_onnx_floats(s->value.tensor, first, count, out));
        for (size_t i = 0; i < count && s->factor != 1; i++)
            out[i] = (float)(s->factor * (double)out[i]);
    }
out:
    return err;
}

static void make_source(const struct value *v, const struct view *as, const char *order,
                        double factor, struct source *out)
{
    int64_t stride[VIEW_ATOMS];
    int to[VIEW_ATOMS];

    *out = (struct source){ .value = *v, .factor = factor };
    out->rank = view_atoms(as, order, to);
    strides_of(as, stride);
    for (int k = 0; k < out->rank; k++) {
        out->dim[k] = as->size[to[k]];
        out->stride[k] = stride[to[k]];
    }
}

static int read_numbers(const struct source *s, size_t count, double *out)
{
    int err = PM_OK;
    struct gather g = { .s = s, .numbers = out };
    void *elements = pm_malloc(count * sizeof(int64_t));

    if (s->value.kind == VALUE_TENSOR && s->value.integer) {
        PM_TRY(pm_onnx_ints(s->value.tensor, 0, count, elements));
        g.ints = elements;
    } else if (s->value.kind == VALUE_TENSOR) {
        PM_TRY(pm_onnx_floats(s->value.tensor, 0, count, elements));
        g.floats = elements;
    }
    walk_source(s, 0, count, gather_double, &g);
out:
    pm_free(elements);
    return err;
}

const double *import_numbers(struct import *m, struct value *v, size_t limit)
{
    const size_t count = (size_t)view_count(&v->view);
    char order[PM_FILE_MAX_RANK + 1] = "";
    struct source s;
    double *out;
    int err;

    if (!value_constant(v) || count > limit)
        return NULL;
    out = pm_arena_alloc(m->lasting, sizeof *out * (count + 1));
    if (count == 0)
        return out;
    for (int i = 0; i < v->view.rank; i++)
        order[i] = (char)('0' + i), order[i + 1] = 0;
    make_source(v, &v->view, order, 1, &s);
    err = read_numbers(&s, count, out);
    if (err < 0 && !m->net->error)
        m->net->error = err;
    return err < 0 ? NULL : out;
}

/* ---- variables --------------------------------------------------------------------------- */

/* Whether two sources make the same variable: the same elements, order and role. */
static bool same_source(const struct source *a, const struct source *b)
{
    const bool same = a->value.tensor ? a->value.tensor == b->value.tensor
                                      : a->value.name == b->value.name;

    return same && a->trained == b->trained && a->rank == b->rank && a->factor == b->factor &&
           memcmp(a->dim, b->dim, sizeof a->dim) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

/* Whether a tensor is all zeros or all ones, the usual initial values of a layer. */
static bool is_fill(const struct pm_onnx_tensor *t)
{
    enum { READ = 4096 };
    float piece[READ];
    float first = NAN;

    for (size_t at = 0; at < t->count; at += READ) {
        const size_t n = t->count - at < READ ? t->count - at : READ;

        if (pm_onnx_floats(t, at, n, piece) < 0)
            return false;
        first = at == 0 ? piece[0] : first;
        for (size_t i = 0; i < n; i++)
            if (piece[i] != first)
                return false;
    }
    return first == 0 || first == 1;
}

/* Whether this is one of several equal tensors that an exporter wrote once. Our own export does not
 * do this: shared tensors were shared in the net. */
static bool is_split(const struct import *m, const struct source *a, const struct source *b)
{
    return a->node != b->node && a->trained && a->value.tensor && a->value.tensor->count > 1 &&
           strcmp(m->model->producer, "pumice") != 0 && is_fill(a->value.tensor);
}

/* Returns a name for the variable. A source that was used before in the same way has the same
 * name. */
static const char *variable_name(struct import *m, const struct source *s, bool constant)
{
    const char *text = s->value.tensor ? s->value.tensor->name : s->value.name;
    const char *base = import_legal_name(m->arena, text, ":");
    const char *more = constant && !pm_export_is_constant(base) ? ":" PM_EXPORT_CONSTANT : "";
    const char *name = pm_arena_printf(m->arena, "%s%s", base, more);
    bool split = false, unlike = false;

    for (int k = 2;; k++) {
        const struct source *other = m->sources;

        while (other && strcmp(other->variable, name) != 0)
            other = other->next;
        if (!other)
            break;
        const bool same = same_source(other, s);
        if (same && !is_split(m, other, s))
            return name;
        split |= same;
        unlike |= !same && other->trained && s->trained;
        name = pm_arena_printf(m->arena, "%s_%d%s", base, k, more);
    }
    if (split) {
        m->split = base;
        m->splits++;
    } else if (unlike)
        PM_WARN("onnx", "%s: %s is used in two layouts; each becomes a variable of its own",
                m->model->path, base);
    return name;
}

struct pm_given import_given_view(struct import *m, const struct value *v, const struct view *as,
                                  const char *order, double factor, bool trainable)
{
    struct source *s = pm_arena_alloc(m->lasting, sizeof *s);

    make_source(v, as, order, factor, s);
    s->trained = trainable && v->learned;
    s->node = m->index;
    s->variable = pm_arena_strdup(m->lasting, variable_name(m, s, trainable && !v->learned));
    s->next = m->sources;
    m->sources = s;
    struct pm_given given = { .name = s->variable, .trainable = s->trained,
                              .count = (size_t)view_count(as) };
    if (v->kind == VALUE_FILL)
        given.init = (struct pm_init){ PM_INIT_CONSTANT, (float)(v->fill * factor) };
    else
        given.init = (struct pm_init){ .kind = PM_INIT_GIVEN, .read = read_source, .from = s };
    return given;
}

struct pm_given import_given(struct import *m, struct value *v, const char *order, bool trainable)
{
    return import_given_view(m, v, &v->view, order, 1, trainable);
}
