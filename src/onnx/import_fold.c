/* import_fold: computes nodes with only constant inputs during import. Exporters write such nodes
 * to compute shapes, and to cut, join or transpose weights before use. Shape is constant for every
 * value, because sizes are known. Large constants are not computed: operators that only change a
 * view leave them in the file. Elements that are only cut or joined stay weights (import_private.h:
 * learned); computed elements do not. */
#include "onnx/import_fold.h"
#include "onnx/import_ops.h"

#include <math.h>
#include <string.h>

int64_t import_within(double v)
{
    return v >= 0x1p40 ? INT64_C(1) << 40 : v <= -0x1p40 ? -(INT64_C(1) << 40)
           : v == v    ? (int64_t)v
                       : 0;
}

int64_t import_attr_int(const struct import *m, const char *name, int64_t otherwise)
{
    return import_within((double)pm_onnx_attr_int(m->n, name, otherwise));
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
            out[i] = import_within((double)a->ints[i]);
        return a->count <= 16 ? a->count : -1;
    }
    if (!v || v->kind == VALUE_ABSENT)
        return 0;
    numbers = import_numbers(m, v, 16);
    if (!numbers)
        return -1;
    n = (int)view_count(&v->view);
    for (int i = 0; i < n; i++)
        out[i] = import_within(numbers[i]);
    return n;
}

double *import_fold_allocate(struct import *m, int rank, const int64_t *dim, size_t *count)
{
    double n = 1;

    for (int i = 0; i < rank; i++)
        n *= (double)dim[i];
    if (!import_sane(rank, dim) || n > FOLD_LARGEST) {
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
            return import_refuse(m, "a shape that is too large or has a negative axis");
        struct pm_onnx_tensor *t = pm_arena_alloc(m->lasting, sizeof *t);

        *t = *a->t;
        t->name = m->n->out[0]; /* a Constant's tensor may have any name */
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
        return import_refuse(m, "a shape that is not a constant of at most %d numbers",
                             PM_FILE_MAX_RANK);
    if (a && a->t && a->t->count == 1)
        if (pm_onnx_floats(a->t, 0, 1, &f) < 0)
            return import_refuse(m, "a value that is not numeric");
    if (!import_sane(rank, dim))
        return import_refuse(m, "a shape that is too large or has a negative axis");
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
        return import_refuse(m, "limits that are not constants");
    const double steps = ceil((*b - *a) / *step);
    if (!(steps <= FOLD_LARGEST))
        return import_refuse(m, "a range of %g numbers", steps);
    const int64_t n = steps > 0 ? (int64_t)steps : 0;
    double *x = import_fold_allocate(m, 1, &n, &count);
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
    const double *x = import_numbers(m, v, FOLD_LARGEST);
    const size_t count = (size_t)view_count(&v->view);

    if (!x)
        return import_refuse(m, "its constant has more than %d elements", FOLD_LARGEST);
    double *y = pm_arena_alloc(m->lasting, sizeof *y * (count + 1));
    for (size_t i = 0; i < count; i++)
        y[i] = unary(m->n->op, x[i]);
    import_out_numbers(m, 0, v->view.rank, v->view.dim, y, v->integer);
    return PM_OK;
}

static int fold_clip(struct import *m)
{
    struct value *v = import_in(m, 0);
    const double *x = import_numbers(m, v, FOLD_LARGEST);
    const size_t count = (size_t)view_count(&v->view);
    double low, high;

    if (!x)
        return import_refuse(m, "its constant has more than %d elements", FOLD_LARGEST);
    if (!import_clip_limits(m, &low, &high))
        return PM_OK;
    double *y = pm_arena_alloc(m->lasting, sizeof *y * (count + 1));
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] < low ? low : x[i] > high ? high : x[i];
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

    if (integer == v->integer && to != 9) { /* unchanged: stays in the file */
        import_out_view(m, 0, v, &v->view);
        return PM_OK;
    }
    x = import_numbers(m, v, FOLD_LARGEST);
    if (!x)
        return import_refuse(m, "its constant has more than %d elements", FOLD_LARGEST);
    double *y = pm_arena_alloc(m->lasting, sizeof *y * (count + 1));
    for (size_t i = 0; i < count; i++)
        y[i] = to == 9 ? x[i] != 0 : integer && fabs(x[i]) < 9e15 ? trunc(x[i]) : x[i];
    import_out_numbers(m, 0, v->view.rank, v->view.dim, y, integer);
    return PM_OK;
}

/* CastLike. Integer constants become floating point if the second input is; computed values have
 * one type here. */
static int fold_cast_like(struct import *m)
{
    struct value *v = import_in(m, 0);

    if (v->integer && !import_in(m, 1)->integer) {
        const double *x = import_numbers(m, v, FOLD_LARGEST);

        if (!x)
            return import_refuse(m, "its constant has more than %d elements", FOLD_LARGEST);
        import_out_numbers(m, 0, v->view.rank, v->view.dim, x, false);
    } else
        import_out_view(m, 0, v, &v->view);
    return PM_OK;
}

/* ---- two and more inputs with broadcasting ------------------------------------------------- */

/* Computes the common shape of the node's first `count` inputs; false if there is none. */
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

/* Index of element i of the common shape in a broadcast input. */
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
        if (!(in[i] = import_numbers(m, import_in(m, i), FOLD_LARGEST)))
            return import_refuse(m, "its constant has more than %d elements", FOLD_LARGEST);
    double *y = import_fold_allocate(m, rank, dim, &n);
    for (size_t i = 0; y && i < n; i++) {
        double x[8] = { 0 };

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
    const double *x = import_numbers(m, v, FOLD_LARGEST);
    const int rank = wanted > v->view.rank ? wanted : v->view.rank;
    size_t n;

    if (wanted < 0 || rank > PM_FILE_MAX_RANK || !x)
        return import_refuse(m, "a shape that is not a constant");
    for (int k = 0; k < rank; k++) {
        const int a = k - (rank - v->view.rank), b = k - (rank - wanted);
        const int64_t have = a >= 0 ? v->view.dim[a] : 1, to = b >= 0 ? want[b] : 1;

        if (have != 1 && to != 1 && have != to)
            return import_refuse(m, "a shape that does not fit");
        dim[k] = have == 1 ? to : have;
    }
    if (import_repeats(m, v, rank, dim))
        return import_op_expand(m);
    double *y = import_fold_allocate(m, rank, dim, &n);
    for (size_t i = 0; y && i < n; i++)
        y[i] = x[spread(i, rank, dim, &v->view)];
    if (y)
        import_out_numbers(m, 0, rank, dim, y, v->integer);
    return PM_OK;
}

/* ---- reductions ---------------------------------------------------------------------------- */

static int fold_reduce(struct import *m)
{
    struct value *v = import_in(m, 0);
    const double *x = import_numbers(m, v, FOLD_LARGEST);
    const size_t n = (size_t)view_count(&v->view);
    const bool product = strcmp(m->n->op, "ReduceProd") == 0;
    int64_t axes[16];
    double *y = pm_arena_alloc(m->lasting, 2 * sizeof *y);
    const int count = import_ints(m, 1, "axes", axes);

    if (!x || count < 0 || (count && count != v->view.rank) || strcmp(m->n->op, "ReduceMean") == 0)
        return import_refuse(m, "a reduction of constants over some axes only");
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

/* ---- entry point --------------------------------------------------------------------------- */

static const struct { const char *op; int (*fold)(struct import *m); bool always; } folds[] = {
    { "Constant", fold_constant, true }, { "Shape", fold_shape, true },
    { "ConstantOfShape", fold_constant_of_shape, false }, { "Range", fold_range, false },
    { "Cast", fold_cast, false }, { "CastLike", fold_cast_like, true },
    { "Gather", import_fold_gather, false }, { "Concat", import_fold_concat, false },
    { "Slice", import_fold_slice, false }, { "ScatterND", import_fold_scatter, false },
    { "GatherND", import_fold_gather_nd, false },
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
    { "Relu", fold_unary, false }, { "Sigmoid", fold_unary, false }, { "Clip", fold_clip, false },
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
