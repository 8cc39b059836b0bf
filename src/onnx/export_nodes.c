/* export_nodes: adds the operators, constants and initializers that the layers' onnx() functions
 * request. */
#include "onnx/export_graph.h"

#include <assert.h>
#include <string.h>

void pm_export_refuse(struct pm_export *g, const char *format, ...)
{
    va_list args;
    char text[512];

    if (g->error)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    g->error = pm_fail(PM_ECONFIG, "%s: %s cannot be exported to ONNX: %s", g->node->name,
                       g->node->layer->name, text);
}

const char *pm_export_x(const struct pm_export *g, const struct pm_node *n, int i)
{
    return g->value[n->in[i]->index];
}

static bool is_taken(const struct pm_export *g, const char *name)
{
    const struct pm_onnx_model *m = g->model;

    if (pm_net_find(g->net, name) || pm_onnx_tensor_find(m, name))
        return true;
    for (int i = 0; i < g->net->var_count; i++) /* an imported net may have this name */
        if (strcmp(g->net->vars[i]->name, name) == 0)
            return true;
    for (size_t i = m->node_count; i-- > 0;)
        for (int k = 0; k < m->nodes[i].out_count; k++)
            if (strcmp(m->nodes[i].out[k], name) == 0)
                return true;
    return false;
}

const char *pm_export_name(struct pm_export *g, const char *suffix)
{
    const char *name = pm_arena_printf(g->model->arena, "%s:%s", g->node->name, suffix);

    for (int k = 2; is_taken(g, name); k++)
        name = pm_arena_printf(g->model->arena, "%s:%s_%d", g->node->name, suffix, k);
    return name;
}

/* ---- operators --------------------------------------------------------------------------- */

const char *pm_export_op(struct pm_export *g, const char *op, const char *const *in)
{
    const char *out[] = { pm_export_name(g, op), NULL };

    pm_onnx_add(g->model, op, out[0], in, out);
    return out[0];
}

const char *pm_export_op2(struct pm_export *g, const char *op, const char *a, const char *b)
{
    return pm_export_op(g, op, PM_VALUES(a, b));
}

const char *pm_export_cast(struct pm_export *g, const char *x, enum pm_export_type type)
{
    x = pm_export_op(g, "Cast", PM_VALUES(x));
    pm_export_int(g, "to", type);
    return x;
}

const char *pm_export_unsqueeze(struct pm_export *g, const char *x, int64_t axis)
{
    return pm_export_op2(g, "Unsqueeze", x, pm_export_integers(g, 1, &axis));
}

const char *pm_export_view(struct pm_export *g, const char *x, int rank, const int64_t *dim)
{
    return pm_export_op2(g, "Reshape", x, pm_export_integers(g, rank, dim));
}

void pm_export_op_outputs(struct pm_export *g, const char *op, const char *const *in, int count,
                          const char **out)
{
    const char *names[PM_MAX_NODE_OUTPUTS + 1] = { NULL };

    assert(count >= 1 && count <= PM_MAX_NODE_OUTPUTS);
    for (int k = 0; k < count; k++)
        out[k] = names[k] = pm_export_name(g, pm_arena_printf(g->model->arena, "%s%d", op, k));
    pm_onnx_add(g->model, op, out[0], in, names);
}

bool pm_export_is_training(const struct pm_export *g)
{
    return g->options.training;
}

const char *pm_export_dropped(struct pm_export *g, const char *x, const char *like, float keep)
{
    const char *u = pm_export_op(g, "RandomUniformLike", PM_VALUES(like));

    u = pm_export_op(g, "Add", PM_VALUES(u, pm_export_number(g, keep)));
    u = pm_export_op(g, "Floor", PM_VALUES(u));
    x = pm_export_op(g, "Mul", PM_VALUES(x, pm_export_number(g, 1 / keep)));
    return pm_export_op(g, "Mul", PM_VALUES(x, u));
}

bool pm_export_is_read(const struct pm_export *g, const struct pm_node *n, int k)
{
    return g->readers[n->out[k]->index] > 0;
}

void pm_export_output(struct pm_export *g, const struct pm_node *n, int k, const char *value)
{
    assert(k > 0 && k < n->outputs);
    g->value[n->out[k]->index] = value;
}

static struct pm_onnx_node *last(struct pm_export *g)
{
    return &g->model->nodes[g->model->node_count - 1];
}

void pm_export_int(struct pm_export *g, const char *attr, int64_t v)
{
    pm_onnx_set_int(g->model, last(g), attr, v);
}

void pm_export_float(struct pm_export *g, const char *attr, float v)
{
    pm_onnx_set_float(g->model, last(g), attr, v);
}

void pm_export_text(struct pm_export *g, const char *attr, const char *v)
{
    pm_onnx_set_text(g->model, last(g), attr, v);
}

void pm_export_ints(struct pm_export *g, const char *attr, int count, const int64_t *v)
{
    pm_onnx_set_ints(g->model, last(g), attr, count, v);
}

/* ---- constants --------------------------------------------------------------------------- */

bool pm_export_is_constant(const char *name)
{
    const char *mark = strstr(name, ":" PM_EXPORT_CONSTANT);

    if (!mark)
        return false;
    mark += strlen(":" PM_EXPORT_CONSTANT);
    mark += *mark == 's';
    mark += *mark == '_' ? 1 + strspn(mark + 1, "0123456789") : 0;
    return *mark == 0;
}

static const char *constant(struct pm_export *g, const char *suffix, enum pm_dtype type, int rank,
                            int count, const void *v, size_t size)
{
    void *data = pm_arena_alloc(g->model->arena, (size_t)count * size);
    const int64_t dim = count;
    const char *name = pm_export_name(g, suffix);

    memcpy(data, v, (size_t)count * size);
    pm_onnx_add_tensor(g->model, name, type, rank, &dim, data);
    return name;
}

const char *pm_export_number(struct pm_export *g, float v)
{
    return constant(g, PM_EXPORT_CONSTANT, PM_DTYPE_F32, 0, 1, &v, sizeof v);
}

const char *pm_export_numbers(struct pm_export *g, int count, const float *v)
{
    return constant(g, PM_EXPORT_CONSTANT "s", PM_DTYPE_F32, 1, count, v, sizeof *v);
}

const char *pm_export_integers(struct pm_export *g, int count, const int64_t *v)
{
    return constant(g, "integers", PM_DTYPE_I64, 1, count, v, sizeof *v);
}

static const char *to_shape(struct pm_export *g, const char *x, int rank, const int64_t *dim)
{
    return pm_export_op(g, "Reshape", PM_VALUES(x, pm_export_integers(g, rank, dim)));
}

const char *pm_export_tensor(struct pm_export *g, const char *suffix, enum pm_dtype type, int rank,
                             const int64_t *dim, const void *data)
{
    const char *name = pm_export_name(g, suffix);
    struct pm_onnx_tensor *t = pm_onnx_add_tensor(g->model, name, type, rank, dim, NULL);

    t->data = pm_arena_copy(g->model->arena, data, t->bytes);
    return name;
}

/* ---- variables --------------------------------------------------------------------------- */

int pm_export_values(struct pm_export *g, const struct pm_variable *v)
{
    int err = PM_OK;

    if (g->cached == v->index)
        return PM_OK;
    g->cached = -1;
    pm_free(g->cache);
    g->cache = pm_malloc(pm_shape_count(v->shape) * sizeof *g->cache);
    PM_TRY(g->options.read(g->options.ctx, v, g->cache));
    g->cached = v->index;
out:
    return err;
}

bool pm_export_read(struct pm_export *g, const struct pm_node *n, int k, float *data)
{
    const struct pm_variable *v = g->net->vars[n->vars[k]];

    if (!g->error)
        g->error = g->options.read(g->options.ctx, v, data);
    return g->error == PM_OK;
}

/* Copies elements first..first+count-1 of the permuted tensor: from [h][w][i][o] to dim,
 * [o][i][h][w]. */
static void permute(const float *from, const int64_t *dim, size_t first, size_t count, float *to)
{
    const size_t out = (size_t)dim[0], in = (size_t)dim[1], pixels = (size_t)(dim[2] * dim[3]);

    for (size_t k = first; k < first + count;) {
        const size_t o = k / pixels / in, i = k / pixels % in;

        for (size_t p = k % pixels; p < pixels && k < first + count; p++, k++)
            *to++ = from[(p * in + i) * out + o];
    }
}

static int fill(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst)
{
    const struct pm_export_source *s = t->fill_from;
    const size_t first = begin / sizeof(float), count = size / sizeof(float);
    float *to = dst;
    int err = PM_OK;

    assert(begin % sizeof(float) == 0 && size % sizeof(float) == 0);
    PM_TRY(pm_export_values(s->g, s->v));
    if (s->perm)
        permute(s->g->cache, t->dim, first, count, to);
    else
        memcpy(to, s->g->cache + first, size);
    if (s->scale) {
        const size_t out = (size_t)t->dim[s->perm ? 0 : t->rank - 1];
        const size_t per = s->perm ? t->count / out : 1;

        for (size_t i = 0; i < count; i++)
            to[i] *= s->scale[(first + i) / per % out];
    }
out:
    return err;
}

static void add_source(struct pm_export *g, const char *name, const struct pm_variable *v, int rank,
                       const int64_t *dim, bool perm, const float *scale)
{
    struct pm_export_source *s = pm_arena_alloc(g->model->arena, sizeof *s);
    struct pm_onnx_tensor *t = pm_onnx_add_tensor(g->model, name, PM_DTYPE_F32, rank, dim, NULL);

    *s = (struct pm_export_source){ g, v, perm, scale };
    t->fill = fill;
    t->fill_from = s;
}

const char *pm_export_variable(struct pm_export *g, const struct pm_node *n, int k)
{
    const struct pm_variable *v = g->net->vars[n->vars[k]];
    int64_t dim[PM_MAX_RANK];

    for (int i = 0; i < v->shape.rank; i++)
        dim[i] = v->shape.dim[i];
    if (!g->is_variable[v->index])
        add_source(g, v->name, v, v->shape.rank, dim, false, NULL);
    g->is_variable[v->index] = true;
    return v->name;
}

const char *pm_export_trailing(struct pm_export *g, const struct pm_node *n, int k, int rank)
{
    const struct pm_variable *v = g->net->vars[n->vars[k]];
    const struct pm_shape s = v->shape;
    const int64_t channels[] = { s.dim[0], 1, 1 };
    int64_t dim[4] = { 1, 1, 1, 1 };

    if (rank != 4 || pm_shape_count(s) == 1)
        return pm_export_variable(g, n, k);
    if (s.rank == 1 && !g->is_variable[v->index]) {
        add_source(g, v->name, v, 3, channels, false, NULL);
        g->is_variable[v->index] = true;
        return v->name;
    }
    if (s.rank == 1 && pm_onnx_tensor_find(g->model, v->name)->rank == 3)
        return v->name;
    for (int i = 0; i < s.rank; i++)
        dim[4 - s.rank + i] = s.dim[i];
    return pm_export_nchw(g, to_shape(g, pm_export_variable(g, n, k), 4, dim),
                          PM_SHAPE4(1, 1, 1, 1));
}

/* ---- folding ----------------------------------------------------------------------------- */

bool pm_export_fold(struct pm_export *g, const struct pm_node *n)
{
    const struct pm_node *reader = g->reader[n->index];
    const size_t channels = (size_t)n->out_shape.dim[n->out_shape.rank - 1];

    if (!g->options.fold_batch_norm || g->readers[n->index] != 1 || !reader->layer->affine ||
        reader->in[0] != n)
        return false;
    struct pm_export_fold *f = pm_arena_alloc(g->model->arena, sizeof *f);
    float *scale = pm_arena_alloc(g->model->arena, channels * sizeof *scale);
    float *shift = pm_arena_alloc(g->model->arena, channels * sizeof *shift);

    if (!reader->layer->affine(reader, g, scale, shift))
        return false;
    *f = (struct pm_export_fold){ scale, shift };
    g->fold[n->index] = f;
    return true;
}

bool pm_export_was_folded(const struct pm_export *g, const struct pm_node *n)
{
    return g->fold[n->in[0]->index] != NULL;
}

/* Weights changed by folding are named after the node, because other nodes may share the
 * variable. */
const char *pm_export_weights(struct pm_export *g, const struct pm_node *n, bool depthwise)
{
    const struct pm_variable *v = g->net->vars[n->vars[0]];
    const struct pm_export_fold *f = g->fold[n->index];
    const struct pm_shape s = v->shape;
    const bool perm = s.rank == 4;
    const int64_t matrix[] = { s.dim[0], s.dim[1] };
    const int64_t images[] = { depthwise ? (int64_t)s.dim[2] * s.dim[3] : s.dim[3],
                               depthwise ? 1 : s.dim[2], s.dim[0], s.dim[1] };
    const char *name = f ? pm_export_name(g, "weights") : v->name;

    if (f || !g->is_variable[v->index])
        add_source(g, name, v, s.rank, perm ? images : matrix, perm, f ? f->scale : NULL);
    g->is_variable[v->index] |= !f;
    return name;
}

const char *pm_export_bias(struct pm_export *g, const struct pm_node *n, bool has)
{
    const struct pm_export_fold *f = g->fold[n->index];
    const int channels = n->out_shape.dim[n->out_shape.rank - 1];

    if (!f)
        return has ? pm_export_variable(g, n, 1) : NULL;
    float *b = pm_arena_alloc(g->model->arena, (size_t)channels * sizeof *b);
    const int64_t dim = channels;

    memset(b, 0, (size_t)channels * sizeof *b);
    if (has && !pm_export_read(g, n, 1, b))
        return NULL;
    for (int c = 0; c < channels; c++)
        b[c] = b[c] * f->scale[c] + f->shift[c];
    const char *name = pm_export_name(g, "biases");
    pm_onnx_add_tensor(g->model, name, PM_DTYPE_F32, 1, &dim, b);
    return name;
}

/* ---- shapes ------------------------------------------------------------------------------ */

int pm_export_axis(int rank, int axis)
{
    static const int nchw[] = { 0, 2, 3, 1 };

    return rank == 4 ? nchw[axis] : axis;
}

const char *pm_export_shape(struct pm_export *g, const char *x, struct pm_shape s)
{
    const int first = g->options.any_batch ? 1 : 0;
    int64_t dim[PM_MAX_RANK];
    const char *rest, *batch;

    for (int i = 0; i < s.rank; i++)
        dim[pm_export_axis(s.rank, i)] = s.dim[i];
    rest = pm_export_integers(g, s.rank - first, dim + first);
    if (!first)
        return rest;
    batch = pm_export_op(g, "Shape", PM_VALUES(x));
    pm_export_int(g, "end", 1);
    rest = pm_export_op(g, "Concat", PM_VALUES(batch, rest));
    pm_export_int(g, "axis", 0);
    return rest;
}

const char *pm_export_below(struct pm_export *g, const char *count, int rank, int axis, int size)
{
    int32_t *number = pm_malloc((size_t)size * sizeof *number);
    int64_t dim[PM_MAX_RANK], column[PM_MAX_RANK];
    const char *order;

    for (int i = 0; i < size; i++)
        number[i] = i;
    for (int i = 0; i < rank; i++) {
        dim[i] = i == axis ? size : 1;
        column[i] = i == 0 ? -1 : 1;
    }
    order = pm_export_tensor(g, "order", PM_DTYPE_I32, rank, dim, number);
    pm_free(number);
    return pm_export_op2(g, "Less", order, pm_export_view(g, count, rank, column));
}

/* Whether NHWC and NCHW have the same memory order. */
static bool is_flat(struct pm_shape s)
{
    return s.dim[3] == 1 || (s.dim[1] == 1 && s.dim[2] == 1);
}

/* Batch dimension for a Reshape; 0: copies the input's. */
static int64_t batch_of(const struct pm_export *g, int from, int to)
{
    return !g->options.any_batch ? to : from == to ? 0 : -1;
}

const char *pm_export_nhwc(struct pm_export *g, const char *x, struct pm_shape s)
{
    if (s.rank != 4)
        return x;
    x = pm_export_op(g, "Transpose", PM_VALUES(x));
    pm_export_ints(g, "perm", PM_INT64S(0, 2, 3, 1));
    return x;
}

const char *pm_export_nchw(struct pm_export *g, const char *x, struct pm_shape s)
{
    if (s.rank != 4)
        return x;
    x = pm_export_op(g, "Transpose", PM_VALUES(x));
    pm_export_ints(g, "perm", PM_INT64S(0, 3, 1, 2));
    return x;
}

const char *pm_export_reshape(struct pm_export *g, const char *x, struct pm_shape from,
                              struct pm_shape to)
{
    int64_t dim[PM_MAX_RANK];
    const bool flat = to.rank == 4 && is_flat(to);

    if (pm_shape_equal(from, to))
        return x;
    if (from.rank == 4 && !is_flat(from))
        x = pm_export_nhwc(g, x, from);
    for (int i = 0; i < to.rank; i++)
        dim[flat ? pm_export_axis(4, i) : i] = to.dim[i];
    if (to.rank > 0)
        dim[0] = batch_of(g, from.rank ? from.dim[0] : 0, to.dim[0]);
    x = to_shape(g, x, to.rank, dim);
    return to.rank == 4 && !flat ? pm_export_nchw(g, x, to) : x;
}

/* Whether the padding is valid for any input size. With stride 1, TensorFlow's SAME does not depend
 * on the size; otherwise ONNX's SAME_UPPER is the same rule. */
static bool same_for_any(const struct pm_export_window *w, int i)
{
    return w->padding != PM_PAD_SAME || w->stride[i] == 1;
}

void pm_export_window(struct pm_export *g, struct pm_shape x, const struct pm_export_window *w)
{
    struct pm_axis a[2];

    for (int i = 0; i < 2; i++)
        a[i] = pm_axis_of(x.dim[1 + i], w->kernel[i], w->stride[i], w->dilation[i], w->padding,
                          w->before[i], w->after[i]);
    for (int i = 0; i < 2 && g->options.any_size; i++)
        if (w->padding == PM_PAD_SAME && w->stride[i] == 1) { /* padding for an unbounded image */
            const int reach = (w->kernel[i] - 1) * w->dilation[i];
            a[i].before = reach / 2, a[i].after = reach - reach / 2;
        }
    pm_export_ints(g, "kernel_shape", PM_INT64S(w->kernel[0], w->kernel[1]));
    pm_export_ints(g, "strides", PM_INT64S(w->stride[0], w->stride[1]));
    if (w->dilation[0] > 1 || w->dilation[1] > 1)
        pm_export_ints(g, "dilations", PM_INT64S(w->dilation[0], w->dilation[1]));
    if (g->options.any_size && !(same_for_any(w, 0) && same_for_any(w, 1))) {
        if (w->dilation[0] > 1 || w->dilation[1] > 1)
            pm_export_refuse(g, "padding=same with stride and dilation needs a size: leave out "
                             "export.any_size");
        pm_export_text(g, "auto_pad", "SAME_UPPER");
    } else if (a[0].before || a[0].after || a[1].before || a[1].after) {
        pm_export_ints(g, "pads", PM_INT64S(a[0].before, a[1].before, a[0].after, a[1].after));
    }
}
