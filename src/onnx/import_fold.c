/* import_fold: nodes whose inputs are constants are computed while importing: what exporters write
 * to work out shapes, and weights that are cut, joined or turned before they are used. Shape is a
 * constant of every value, as sizes are known. Large constants are not touched: those operators that
 * only change a view leave them in the file. What is only cut or joined stays a weight (import.h: learned),
 * what is computed does not. */
#include "onnx/import_ops.h"

#include <math.h>
#include <string.h>

enum { LARGEST = 1 << 24 }; /* elements of a computed constant */

static int64_t within(double v)
{
    return v >= 0x1p40 ? INT64_C(1) << 40 : v <= -0x1p40 ? -(INT64_C(1) << 40)
           : v == v    ? (int64_t)v
                       : 0;
}

int64_t import_attr_int(const struct import *m, const char *name, int64_t otherwise)
{
    return within((double)pm_onnx_attr_int(m->n, name, otherwise));
}

bool import_sane(int rank, const int64_t *dim)
{
    double n = rank < 0 ? INFINITY : 1;

    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return false;
        n *= dim[i] ? (double)dim[i] : 1;
    }
    return rank <= PM_FILE_MAX_RANK && n <= 0x1p40;
}

int import_ints(struct import *m, int input, const char *attr, int64_t out[16])
{
    const struct pm_onnx_attr *a = attr ? pm_onnx_attr(m->n, attr) : NULL;
    struct value *v = input >= 0 ? import_in(m, input) : NULL;
    const double *numbers;
    int n;

    if (a && a->type == PM_ONNX_INTS) {
        for (int i = 0; i < a->count && i < 16; i++)
            out[i] = within((double)a->ints[i]);
        return a->count <= 16 ? a->count : -1;
    }
    if (!v || v->kind == VALUE_ABSENT)
        return 0;
    numbers = import_numbers(m, v, 16);
    if (!numbers)
        return -1;
    n = (int)view_count(&v->view);
    for (int i = 0; i < n; i++)
        out[i] = within(numbers[i]);
    return n;
}

static double *allocate(struct import *m, int rank, const int64_t *dim, size_t *count)
{
    double n = 1;

    for (int i = 0; i < rank; i++)
        n *= (double)dim[i];
    if (!import_sane(rank, dim) || n > LARGEST) {
        import_refuse(m, "a computed constant of %.0f elements is too large", n);
        return NULL;
    }
    *count = (size_t)n;
    return pm_arena_alloc(m->lasting, sizeof(double) * (*count + 1));
}

/* ---- operators ---------------------------------------------------------------------------- */

static int fold_constant(struct import *m)
{
    const struct pm_onnx_attr *a = m->n->attr_count ? &m->n->attrs[0] : NULL;
    struct value *v = import_out(m, 0);
    const char *kind = a ? a->name : "";
    double *x;

    if (strcmp(kind, "value") == 0 && a->t) {
        if (!import_sane(a->t->rank, a->t->dim))
            return import_refuse(m, "a shape that no net has");
        struct pm_onnx_tensor *t = pm_arena_alloc(m->lasting, sizeof *t);

        *t = *a->t;
        t->name = m->n->out[0]; /* its own may be any */
        v->kind = VALUE_TENSOR;
        v->tensor = t;
        v->view = view_plain(a->t->rank, a->t->dim);
        v->integer = a->t->type >= PM_DTYPE_I64;
        v->learned = m->nodes_learn && !v->integer;
        return PM_OK;
    }
    const bool floats = a && (a->type == PM_ONNX_FLOAT || a->type == PM_ONNX_FLOATS);
    const bool list = a && (a->type == PM_ONNX_FLOATS || a->type == PM_ONNX_INTS);
    const char *wanted = floats ? list ? "value_floats" : "value_float"
                                : list ? "value_ints" : "value_int";
    if (strcmp(kind, wanted) != 0 || (!floats && !list && a->type != PM_ONNX_INT))
        return import_refuse(m, "attribute %s", a ? a->name : "value is missing");
    const int64_t dim[1] = { list ? a->count : 1 };
    x = pm_arena_alloc(m->lasting, sizeof *x * (size_t)(dim[0] + 1));
    for (int i = 0; i < (int)dim[0]; i++)
        x[i] = list ? (floats ? (double)a->floats[i] : (double)a->ints[i])
                    : floats ? (double)a->f : (double)a->i;
    import_out_numbers(m, 0, list, dim, x, !floats);
    return PM_OK;
}

static int fold_shape(struct import *m)
{
    const struct view *v = &import_in(m, 0)->view;
    int64_t begin = pm_onnx_attr_int(m->n, "start", 0);
    int64_t end = pm_onnx_attr_int(m->n, "end", v->rank);
    double *x = pm_arena_alloc(m->lasting, sizeof *x * (PM_FILE_MAX_RANK + 1));
    int64_t count = 0;

    begin += begin < 0 ? v->rank : 0;
    end += end < 0 ? v->rank : 0;
    for (int64_t i = begin < 0 ? 0 : begin; i < end && i < v->rank; i++)
        x[count++] = (double)v->dim[i];
    import_out_numbers(m, 0, 1, &count, x, true);
    return PM_OK;
}

static int fold_constant_of_shape(struct import *m)
{
    const struct pm_onnx_attr *a = pm_onnx_attr(m->n, "value");
    int64_t dim[16];
    const int rank = import_ints(m, 0, NULL, dim);
    struct value *v;
    float f = 0;

    if (rank < 0 || rank > PM_FILE_MAX_RANK)
        return import_refuse(m, "a shape that is no constant of at most %d numbers", PM_FILE_MAX_RANK);
    if (a && a->t && a->t->count == 1)
        if (pm_onnx_floats(a->t, 0, 1, &f) < 0)
            return import_refuse(m, "a value of no numbers");
    if (!import_sane(rank, dim))
        return import_refuse(m, "a shape that no net has");
    v = import_out(m, 0);
    v->kind = VALUE_FILL;
    v->view = view_plain(rank, dim);
    v->fill = f;
    v->integer = a && a->t && a->t->type >= PM_DTYPE_I64;
    return PM_OK;
}

static int fold_range(struct import *m)
{
    const double *a = import_numbers(m, import_in(m, 0), 1);
    const double *b = import_numbers(m, import_in(m, 1), 1);
    const double *step = import_numbers(m, import_in(m, 2), 1);
    size_t count;

    if (!a || !b || !step || *step == 0)
        return import_refuse(m, "limits that are no constants");
    const double steps = ceil((*b - *a) / *step);
    if (!(steps <= LARGEST))
        return import_refuse(m, "a range of %g numbers", steps);
    const int64_t n = steps > 0 ? (int64_t)steps : 0;
    double *x = allocate(m, 1, &n, &count);
    for (size_t i = 0; x && i < count; i++)
        x[i] = *a + (double)i * *step;
    if (x)
        import_out_numbers(m, 0, 1, &n, x, import_in(m, 0)->integer);
    return PM_OK;
}

static double unary(const char *op, double x)
{
    static const struct { const char *op; double (*f)(double); } table[] = {
        { "Sqrt", sqrt }, { "Exp", exp }, { "Log", log }, { "Abs", fabs }, { "Floor", floor },
        { "Ceil", ceil }, { "Erf", erf }, { "Tanh", tanh }, { "Round", rint },
    };

    for (size_t i = 0; i < PM_COUNT(table); i++)
        if (strcmp(op, table[i].op) == 0)
            return table[i].f(x);
    return strcmp(op, "Neg") == 0          ? -x
           : strcmp(op, "Reciprocal") == 0 ? 1 / x
           : strcmp(op, "Not") == 0        ? x == 0
           : strcmp(op, "Relu") == 0       ? fmax(x, 0)
                                           : 1 / (1 + exp(-x));
}

static int fold_unary(struct import *m)
{
    struct value *v = import_in(m, 0);
    const double *x = import_numbers(m, v, LARGEST);
    const size_t count = (size_t)view_count(&v->view);

    if (!x)
        return import_refuse(m, "its constant has more than %d elements", LARGEST);
    double *y = pm_arena_alloc(m->lasting, sizeof *y * (count + 1));
    for (size_t i = 0; i < count; i++)
        y[i] = unary(m->n->op, x[i]);
    import_out_numbers(m, 0, v->view.rank, v->view.dim, y, v->integer);
    return PM_OK;
}

static int fold_cast(struct import *m)
{
    struct value *v = import_in(m, 0);
    const int64_t to = pm_onnx_attr_int(m->n, "to", 1);
    const bool integer = to != 1 && to != 10 && to != 11 && to != 16;
    const double *x;
    const size_t count = (size_t)view_count(&v->view);

    if (integer == v->integer && to != 9) { /* stays where it is */
        import_out_view(m, 0, v, &v->view);
        return PM_OK;
    }
    x = import_numbers(m, v, LARGEST);
    if (!x)
        return import_refuse(m, "its constant has more than %d elements", LARGEST);
    double *y = pm_arena_alloc(m->lasting, sizeof *y * (count + 1));
    for (size_t i = 0; i < count; i++)
        y[i] = to == 9 ? x[i] != 0 : integer && fabs(x[i]) < 9e15 ? trunc(x[i]) : x[i];
    import_out_numbers(m, 0, v->view.rank, v->view.dim, y, integer);
    return PM_OK;
}

/* Of constants and computed values: all of these are of one type here. */
static int fold_cast_like(struct import *m)
{
    struct value *v = import_in(m, 0);

    if (v->integer && !import_in(m, 1)->integer) {
        const double *x = import_numbers(m, v, LARGEST);

        if (!x)
            return import_refuse(m, "its constant has more than %d elements", LARGEST);
        import_out_numbers(m, 0, v->view.rank, v->view.dim, x, false);
    } else
        import_out_view(m, 0, v, &v->view);
    return PM_OK;
}

/* ---- two and more inputs with broadcasting ------------------------------------------------- */

/* The common shape of the node's first `count` inputs; false when there is none. */
bool import_broadcast(struct import *m, int count, int *rank, int64_t dim[PM_FILE_MAX_RANK])
{
    *rank = 0;
    for (int i = 0; i < count; i++)
        if (import_in(m, i)->view.rank > *rank)
            *rank = import_in(m, i)->view.rank;
    for (int k = 0; k < *rank; k++)
        dim[k] = 1;
    for (int i = 0; i < count; i++) {
        const struct view *v = &import_in(m, i)->view;

        for (int k = 0; k < v->rank; k++) {
            int64_t *d = &dim[*rank - v->rank + k];

            if (v->dim[k] != *d && v->dim[k] != 1 && *d != 1)
                return false;
            if (*d == 1)
                *d = v->dim[k];
        }
    }
    return true;
}

/* Index of element i of the common shape in an input that is spread over it. */
static size_t spread(size_t i, int rank, const int64_t *dim, const struct view *v)
{
    size_t at = 0, stride = 1;

    for (int k = rank - 1; k >= 0; k--) {
        const int own = k - (rank - v->rank);
        const size_t index = i % (size_t)dim[k];

        i /= (size_t)dim[k];
        if (own >= 0 && v->dim[own] != 1)
            at += index * stride;
        if (own >= 0)
            stride *= (size_t)v->dim[own];
    }
    return at;
}

static double binary(const char *op, double a, double b, bool integer)
{
    switch (op[0]) {
    case 'A': return strcmp(op, "Add") == 0 ? a + b : a && b;
    case 'S': return strcmp(op, "Sub") == 0 ? a - b : a + b;
    case 'D': return integer && b != 0 ? trunc(a / b) : a / b;
    case 'P': return pow(a, b);
    case 'E': return a == b;
    case 'G': return strcmp(op, "Greater") == 0 ? a > b : a >= b;
    case 'L': return strcmp(op, "Less") == 0 ? a < b : a <= b;
    case 'O': return a || b;
    case 'M':
        return strcmp(op, "Mul") == 0   ? a * b
               : strcmp(op, "Min") == 0 ? fmin(a, b)
               : strcmp(op, "Max") == 0 ? fmax(a, b)
               : b == 0                 ? 0
                                        : a - b * floor(a / b);
    default: return 0;
    }
}

static int fold_binary(struct import *m)
{
    const int count = m->n->in_count;
    const bool where = strcmp(m->n->op, "Where") == 0;
    const double *in[8] = { NULL };
    int64_t dim[PM_FILE_MAX_RANK];
    size_t n;
    int rank;

    if (count > 8 || (where && count != 3) || !import_broadcast(m, count, &rank, dim))
        return import_refuse(m, "constants whose shapes do not fit");
    for (int i = 0; i < count; i++)
        if (!(in[i] = import_numbers(m, import_in(m, i), LARGEST)))
            return import_refuse(m, "its constant has more than %d elements", LARGEST);
    double *y = allocate(m, rank, dim, &n);
    for (size_t i = 0; y && i < n; i++) {
        double x[8];

        for (int k = 0; k < count; k++)
            x[k] = in[k][spread(i, rank, dim, &import_in(m, k)->view)];
        y[i] = where ? x[x[0] != 0 ? 1 : 2] : x[0];
        for (int k = 1; k < count && !where; k++)
            y[i] = binary(m->n->op, y[i], x[k], import_in(m, 0)->integer);
    }
    if (y)
        import_out_numbers(m, 0, rank, dim, y, import_in(m, where ? 1 : 0)->integer);
    return PM_OK;
}

static int fold_expand(struct import *m)
{
    struct value *v = import_in(m, 0);
    int64_t want[16], dim[PM_FILE_MAX_RANK];
    const int wanted = import_ints(m, 1, NULL, want);
    const double *x = import_numbers(m, v, LARGEST);
    const int rank = wanted > v->view.rank ? wanted : v->view.rank;
    size_t n;

    if (wanted < 0 || rank > PM_FILE_MAX_RANK || !x)
        return import_refuse(m, "a shape that is no constant");
    for (int k = 0; k < rank; k++) {
        const int a = k - (rank - v->view.rank), b = k - (rank - wanted);
        const int64_t have = a >= 0 ? v->view.dim[a] : 1, to = b >= 0 ? want[b] : 1;

        if (have != 1 && to != 1 && have != to)
            return import_refuse(m, "a shape that does not fit");
        dim[k] = have == 1 ? to : have;
    }
    if (import_repeats(m, v, rank, dim))
        return import_op_expand(m);
    double *y = allocate(m, rank, dim, &n);
    for (size_t i = 0; y && i < n; i++)
        y[i] = x[spread(i, rank, dim, &v->view)];
    if (y)
        import_out_numbers(m, 0, rank, dim, y, v->integer);
    return PM_OK;
}

/* ---- parts and joins ----------------------------------------------------------------------- */

static int axis_of(struct import *m, const char *name, int64_t otherwise, int rank)
{
    const int64_t axis = pm_onnx_attr_int(m->n, name, otherwise);

    return axis < -rank || axis >= rank ? -1 : (int)(axis < 0 ? axis + rank : axis);
}

/* Elements before and behind an axis. */
static void around(const struct view *v, int axis, size_t *before, size_t *behind)
{
    *before = *behind = 1;
    for (int i = 0; i < v->rank; i++) {
        *before *= i < axis ? (size_t)v->dim[i] : 1;
        *behind *= i > axis ? (size_t)v->dim[i] : 1;
    }
}

static int fold_gather(struct import *m)
{
    struct value *v = import_in(m, 0), *index = import_in(m, 1);
    const int axis = axis_of(m, "axis", 0, v->view.rank);
    const double *x = import_numbers(m, v, LARGEST), *at = import_numbers(m, index, LARGEST);
    int64_t dim[PM_FILE_MAX_RANK];
    size_t before, behind, n;
    int rank = 0;

    if (axis < 0 || !x || !at || v->view.rank - 1 + index->view.rank > PM_FILE_MAX_RANK)
        return import_refuse(m, "axis or sizes out of range");
    for (int i = 0; i < v->view.rank; i++)
        if (i != axis)
            dim[rank++] = v->view.dim[i];
        else
            for (int k = 0; k < index->view.rank; k++)
                dim[rank++] = index->view.dim[k];
    around(&v->view, axis, &before, &behind);
    double *y = allocate(m, rank, dim, &n);
    const size_t picks = (size_t)view_count(&index->view);
    const int64_t size = v->view.dim[axis];
    for (size_t i = 0; y && i < n; i++) {
        int64_t pick = within(at[i / behind % picks]);

        pick += pick < 0 ? size : 0;
        if (pick < 0 || pick >= size)
            return import_refuse(m, "index %lld of %lld", (long long)pick, (long long)size);
        y[i] = x[(i / behind / picks * (size_t)size + (size_t)pick) * behind + i % behind];
    }
    if (y)
        import_out_numbers(m, 0, rank, dim, y, v->integer);
    return PM_OK;
}

/* Where the part that row i of index [.., axes] names begins in v, in parts; false when it was refused. */
static bool part_at(struct import *m, const struct view *v, const double *at, int64_t axes, size_t i,
                    size_t *place)
{
    *place = 0;
    for (int k = 0; k < axes; k++) {
        const int64_t size = v->dim[k], given = within(at[i * (size_t)axes + (size_t)k]);
        const int64_t pick = given < 0 ? given + size : given;

        if (pick < 0 || pick >= size) {
            import_refuse(m, "index %lld of %lld", (long long)given, (long long)size);
            return false;
        }
        *place = *place * (size_t)size + (size_t)pick;
    }
    return true;
}

/* The parts that indices [.., axes] name. */
static int fold_gather_nd(struct import *m)
{
    struct value *v = import_in(m, 0), *index = import_in(m, 1);
    const double *x = import_numbers(m, v, LARGEST), *at = import_numbers(m, index, LARGEST);
    const int lead = index->view.rank - 1;
    const int64_t axes = lead >= 0 ? index->view.dim[lead] : 0;
    int64_t dim[2 * PM_FILE_MAX_RANK];
    size_t n, part = 1;
    int rank = 0;

    if (!x || !at || axes < 1 || axes > v->view.rank || pm_onnx_attr_int(m->n, "batch_dims", 0) ||
        lead + v->view.rank - axes > PM_FILE_MAX_RANK)
        return import_refuse(m, "sizes out of range, or batch_dims");
    for (int i = 0; i < lead; i++)
        dim[rank++] = index->view.dim[i];
    for (int i = (int)axes; i < v->view.rank; i++)
        dim[rank++] = v->view.dim[i], part *= (size_t)v->view.dim[i];
    double *y = allocate(m, rank, dim, &n);
    for (size_t i = 0, place; y && part && i < n / part; i++) {
        if (!part_at(m, &v->view, at, axes, i, &place))
            return PM_OK;
        memcpy(y + i * part, x + place * part, part * sizeof *y);
    }
    if (y)
        import_out_numbers(m, 0, rank, dim, y, v->integer);
    return PM_OK;
}

/* Copies whose parts that indices [.., axes] name are those of the updates. */
static int fold_scatter(struct import *m)
{
    struct value *v = import_in(m, 0), *index = import_in(m, 1), *parts = import_in(m, 2);
    const double *x = import_numbers(m, v, LARGEST), *at = import_numbers(m, index, LARGEST);
    const double *from = import_numbers(m, parts, LARGEST);
    const int64_t axes = index->view.rank ? index->view.dim[index->view.rank - 1] : 0;
    size_t n, part = 1;

    if (!x || !at || !from || axes < 1 || axes > v->view.rank ||
        strcmp(pm_onnx_attr_text(m->n, "reduction", "none"), "none") != 0)
        return import_refuse(m, "sizes out of range, or a reduction");
    for (int i = (int)axes; i < v->view.rank; i++)
        part *= (size_t)v->view.dim[i];
    const size_t count = (size_t)(view_count(&index->view) / axes);
    double *y = allocate(m, v->view.rank, v->view.dim, &n);
    if (!y)
        return PM_OK;
    if ((size_t)view_count(&parts->view) != count * part)
        return import_refuse(m, "updates that do not fit");
    memcpy(y, x, n * sizeof *y);
    for (size_t i = 0, place; i < count; i++) {
        if (!part_at(m, &v->view, at, axes, i, &place))
            return PM_OK;
        memcpy(y + place * part, from + i * part, part * sizeof *y);
    }
    import_out_numbers(m, 0, v->view.rank, v->view.dim, y, v->integer);
    return PM_OK;
}

/* Output 0 is the inputs' elements, each at most once: learned when all of them are. */
static void out_parts(struct import *m, int rank, const int64_t *dim, const double *y)
{
    const bool joins = strcmp(m->n->op, "Concat") == 0;
    bool learned = true;

    for (int i = 0; i < (joins ? m->n->in_count : 1); i++)
        learned &= import_in(m, i)->learned;
    import_out_numbers(m, 0, rank, dim, y, import_in(m, 0)->integer);
    import_value(m, m->n->out[0])->learned = learned;
}

static int fold_concat(struct import *m)
{
    const struct view *first = &import_in(m, 0)->view;
    const int axis = axis_of(m, "axis", 0, first->rank);
    int64_t dim[PM_FILE_MAX_RANK];
    size_t before, behind, n, at = 0;

    if (axis < 0)
        return import_refuse(m, "axis out of range");
    memcpy(dim, first->dim, sizeof dim);
    for (int i = 1; i < m->n->in_count; i++) {
        if (import_in(m, i)->view.rank != first->rank)
            return import_refuse(m, "constants whose shapes do not fit");
        dim[axis] += import_in(m, i)->view.dim[axis];
    }
    around(first, axis, &before, &behind);
    double *y = allocate(m, first->rank, dim, &n);
    for (int i = 0; y && i < m->n->in_count; i++) {
        struct value *v = import_in(m, i);
        const double *x = import_numbers(m, v, LARGEST);
        const size_t part = (size_t)v->view.dim[axis] * behind;

        if (!x || (size_t)view_count(&v->view) != before * part)
            return import_refuse(m, "constants whose shapes do not fit");
        for (size_t k = 0; part && k < before; k++)
            memcpy(y + k * (size_t)dim[axis] * behind + at, x + k * part, part * sizeof *y);
        at += part;
    }
    if (y)
        out_parts(m, first->rank, dim, y);
    return PM_OK;
}

static int fold_slice(struct import *m)
{
    struct value *v = import_in(m, 0);
    struct import_range range[PM_FILE_MAX_RANK];
    const double *x = import_numbers(m, v, LARGEST);
    int64_t dim[PM_FILE_MAX_RANK];
    size_t n;

    if (!x || !import_ranges(m, range))
        return m->refused_now ? PM_OK : import_refuse(m, "ranges that are no constants");
    for (int k = 0; k < v->view.rank; k++)
        dim[k] = range[k].count;
    double *y = allocate(m, v->view.rank, dim, &n);
    for (size_t i = 0; y && i < n; i++) {
        size_t rest = i, at = 0, stride = 1;

        for (int k = v->view.rank - 1; k >= 0; k--) {
            at += (size_t)(range[k].begin + (int64_t)(rest % (size_t)dim[k]) * range[k].step) * stride;
            rest /= (size_t)dim[k];
            stride *= (size_t)v->view.dim[k];
        }
        y[i] = x[at];
    }
    if (y)
        out_parts(m, v->view.rank, dim, y);
    return PM_OK;
}

static int fold_reduce(struct import *m)
{
    struct value *v = import_in(m, 0);
    const double *x = import_numbers(m, v, LARGEST);
    const size_t n = (size_t)view_count(&v->view);
    const bool product = strcmp(m->n->op, "ReduceProd") == 0;
    int64_t axes[16];
    double *y = pm_arena_alloc(m->lasting, 2 * sizeof *y);
    const int count = import_ints(m, 1, "axes", axes);

    if (!x || count < 0 || (count && count != v->view.rank) || strcmp(m->n->op, "ReduceMean") == 0)
        return import_refuse(m, "constants are reduced over all axes only");
    const int64_t dim[PM_FILE_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    y[0] = product ? 1 : strcmp(m->n->op, "ReduceSum") == 0 ? 0 : n ? x[0] : 0;
    for (size_t i = 0; i < n; i++)
        y[0] = product                              ? y[0] * x[i]
               : strcmp(m->n->op, "ReduceSum") == 0 ? y[0] + x[i]
               : strcmp(m->n->op, "ReduceMin") == 0 ? fmin(y[0], x[i])
                                                    : fmax(y[0], x[i]);
    const bool keep = pm_onnx_attr_int(m->n, "keepdims", 1) != 0;
    import_out_numbers(m, 0, keep ? v->view.rank : 0, dim, y, v->integer);
    return PM_OK;
}

/* ---- the door ------------------------------------------------------------------------------ */

static const struct { const char *op; int (*fold)(struct import *m); bool always; } folds[] = {
    { "Constant", fold_constant, true }, { "Shape", fold_shape, true },
    { "ConstantOfShape", fold_constant_of_shape, false }, { "Range", fold_range, false },
    { "Cast", fold_cast, false }, { "CastLike", fold_cast_like, true },
    { "Gather", fold_gather, false }, { "Concat", fold_concat, false },
    { "Slice", fold_slice, false }, { "ScatterND", fold_scatter, false },
    { "GatherND", fold_gather_nd, false },
    { "Expand", fold_expand, false },
    { "Add", fold_binary, false }, { "Sub", fold_binary, false }, { "Mul", fold_binary, false },
    { "Div", fold_binary, false }, { "Mod", fold_binary, false }, { "Pow", fold_binary, false },
    { "Min", fold_binary, false }, { "Max", fold_binary, false }, { "Sum", fold_binary, false },
    { "Equal", fold_binary, false }, { "Greater", fold_binary, false },
    { "GreaterOrEqual", fold_binary, false }, { "Less", fold_binary, false },
    { "LessOrEqual", fold_binary, false }, { "And", fold_binary, false },
    { "Or", fold_binary, false }, { "Where", fold_binary, false },
    { "Sqrt", fold_unary, false }, { "Exp", fold_unary, false }, { "Log", fold_unary, false },
    { "Abs", fold_unary, false }, { "Floor", fold_unary, false }, { "Ceil", fold_unary, false },
    { "Erf", fold_unary, false }, { "Tanh", fold_unary, false }, { "Round", fold_unary, false },
    { "Neg", fold_unary, false }, { "Reciprocal", fold_unary, false }, { "Not", fold_unary, false },
    { "Relu", fold_unary, false }, { "Sigmoid", fold_unary, false },
    { "ReduceProd", fold_reduce, false }, { "ReduceSum", fold_reduce, false },
    { "ReduceMin", fold_reduce, false }, { "ReduceMax", fold_reduce, false },
};

int import_fold(struct import *m, bool *done)
{
    bool constants = m->n->in_count > 0;

    *done = false;
    for (int i = 0; i < m->n->in_count; i++)
        constants &= value_constant(import_in(m, i)) || import_in(m, i)->kind == VALUE_ABSENT;
    for (size_t i = 0; i < PM_COUNT(folds); i++)
        if (strcmp(folds[i].op, m->n->op) == 0 && (constants || folds[i].always)) {
            *done = true;
            return folds[i].fold(m);
        }
    return PM_OK;
}
