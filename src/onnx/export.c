/* export: converts the nodes from the input to the logits. Nodes that the logits do not need (an
 * auxiliary head) are left out. The last operator of a node names its output after the node. */
#include "onnx/export_graph.h"
#include "onnx/export_frame.h"
#include "onnx/export_paste.h"
#include "onnx/export_path.h"

#include <math.h>
#include <string.h>

/* ---- what is exported -------------------------------------------------------------------- */

static void mark(struct pm_export *g, const struct pm_node *n)
{
    for (int i = 0; i < n->inputs; i++) {
        const int x = n->in[i]->index;

        g->reader[x] = n;
        g->readers[x]++;
    }
}

/* Returns the node of output i: first the logits, then the additional outputs. */
static const struct pm_node *output_of(const struct pm_export *g, const struct pm_node *logits,
                                       int i)
{
    return i == 0 ? logits : g->options.also[i - 1];
}

/* Returns the index of the last node that an output needs. */
static int last_of(const struct pm_export *g, const struct pm_node *logits)
{
    int last = 0;

    for (int i = 0; i <= g->options.also_count; i++)
        last = output_of(g, logits, i)->index > last ? output_of(g, logits, i)->index : last;
    return last;
}

/* Counts the readers of each node that leads to an output; other nodes keep 0. */
static void count_readers(struct pm_export *g, const struct pm_node *logits)
{
    for (int i = 0; i <= g->options.also_count; i++) {
        const struct pm_node *n = output_of(g, logits, i);

        g->readers[n->index]++;
        g->reader[n->index] = n;
    }
    for (int i = last_of(g, logits); i >= 0; i--)
        if (g->readers[i] > 0)
            mark(g, g->net->nodes[i]);
}

/* ---- input and output -------------------------------------------------------------------- */

/* Converts pixels, [n, h, w, c] bytes, to the net's input. */
static const char *from_pixels(struct pm_export *g, const char *x, struct pm_shape s)
{
    const struct pm_export_pixels *p = g->options.pixels;
    const int c = s.dim[3];
    float factor[4], shift[4];

    x = pm_export_cast(g, x, PM_EXPORT_FLOAT);
    x = pm_export_nchw(g, x, s);
    if (p->own) {
        const float least = 1 / sqrtf((float)s.dim[1] * (float)s.dim[2] * (float)c);
        const char *mean, *square;

        if (g->options.any_size)
            pm_export_refuse(g, "its preprocessing divides by a number that depends on the size");
        mean = pm_export_op(g, "ReduceMean", PM_VALUES(x));
        pm_export_ints(g, "axes", PM_INT64S(1, 2, 3));
        x = pm_export_op(g, "Sub", PM_VALUES(x, mean));
        square = pm_export_op(g, "Mul", PM_VALUES(x, x));
        square = pm_export_op(g, "ReduceMean", PM_VALUES(square));
        pm_export_ints(g, "axes", PM_INT64S(1, 2, 3));
        square = pm_export_op(g, "Sqrt", PM_VALUES(square));
        square = pm_export_op(g, "Max", PM_VALUES(square, pm_export_number(g, least)));
        return pm_export_op(g, "Div", PM_VALUES(x, square));
    }
    for (int i = 0; i < c; i++)
        factor[i] = 1 / p->std[i], shift[i] = p->mean[i];
    const int64_t dim[] = { 1, c, 1, 1 };
    const char *mean = pm_export_op(g, "Reshape", PM_VALUES(pm_export_numbers(g, c, shift),
                                                            pm_export_integers(g, 4, dim)));
    const char *scale = pm_export_op(g, "Reshape", PM_VALUES(pm_export_numbers(g, c, factor),
                                                             pm_export_integers(g, 4, dim)));
    x = pm_export_op(g, "Sub", PM_VALUES(x, mean));
    return pm_export_op(g, "Mul", PM_VALUES(x, scale));
}

static void add_input(struct pm_export *g, const struct pm_node *n)
{
    const struct pm_shape s = n->out_shape;
    const struct pm_export_options *o = &g->options;
    int64_t dim[PM_MAX_RANK];
    const char *x = o->input ? o->input : n->name;
    const bool sizes = (o->any_size || o->frame) && s.rank == 4;
    struct pm_onnx_value *v;

    g->node = n;
    for (int i = 0; i < s.rank; i++)
        dim[o->pixels ? i : pm_export_axis(s.rank, i)] = s.dim[i];
    const int h = o->pixels ? 1 : 2;

    if (o->any_batch)
        dim[0] = -1;
    if (sizes)
        dim[h] = dim[h + 1] = -1;
    v = pm_onnx_add_input(g->model, x,
                          o->pixels                ? PM_DTYPE_U8
                          : n->out_type == PM_I32 ? PM_DTYPE_I32
                                                   : PM_DTYPE_F32,
                          s.rank, dim);
    if (o->any_batch)
        v->dim_name[0] = "N";
    if (sizes)
        v->dim_name[h] = "H", v->dim_name[h + 1] = "W";
    x = o->pixels ? from_pixels(g, x, s) : x;
    g->value[n->index] = o->frame ? pm_export_frame_in(g, x, s) : x;
}

/* Renames a value that operator `from` or a later one outputs, also where it is read and as the
 * value of nodes. */
static void rename_value(struct pm_export *g, size_t from, const char *value, const char *name)
{
    struct pm_onnx_model *m = g->model;

    for (size_t i = from; i < m->node_count; i++) {
        struct pm_onnx_node *n = &m->nodes[i];

        for (int k = 0; k < n->in_count; k++)
            if (strcmp(n->in[k], value) == 0)
                n->in[k] = name;
        for (int k = 0; k < n->out_count; k++)
            if (strcmp(n->out[k], value) == 0) {
                n->out[k] = name;
                n->name = k == 0 ? name : n->name;
            }
    }
    for (int i = 0; i < g->net->count; i++)
        if (g->value[i] && strcmp(g->value[i], value) == 0)
            g->value[i] = name;
}

static bool is_made(const struct pm_export *g, size_t from, const char *value)
{
    for (size_t i = from; i < g->model->node_count; i++)
        for (int k = 0; k < g->model->nodes[i].out_count; k++)
            if (strcmp(g->model->nodes[i].out[k], value) == 0)
                return true;
    return false;
}

/* Keeps the shape of maps, [n, c, h, w] or [n, h, w], and of one number per picture, [n]; reshapes
 * other outputs to one row per picture. */
static const char *output_shape(struct pm_export *g, const struct pm_node *logits,
                                int64_t dim[PM_MAX_RANK], int *rank)
{
    const struct pm_shape s = logits->out_shape;
    const char *x = g->value[logits->index];
    const bool map = s.rank == 3 || (s.rank == 4 && s.dim[1] * s.dim[2] > 1);
    const struct pm_shape to =
        map || s.rank < 2 ? s : PM_SHAPE2(s.dim[0], (int)(pm_shape_count(s) / (size_t)s.dim[0]));

    for (int i = 0; i < to.rank; i++)
        dim[pm_export_axis(to.rank, i)] = to.dim[i];
    *rank = to.rank;
    return map || s.rank < 2 ? x : pm_export_reshape(g, x, s, to);
}

static bool is_framed(const struct pm_export *g, const struct pm_node *n)
{
    const struct pm_shape in = g->net->nodes[0]->out_shape, s = n->out_shape;

    return g->options.frame && s.rank > 2 && s.dim[1] == in.dim[1] && s.dim[2] == in.dim[2];
}

/* Gives the node's value another name. A node that is the input itself gets a value of its own. */
static const char *rename_node(struct pm_export *g, const struct pm_node *n, const char *name)
{
    const char *x = g->value[n->index];

    g->node = n;
    if (!is_made(g, 0, x))
        x = pm_export_op(g, "Identity", PM_VALUES(x));
    rename_value(g, 0, x, name);
    return name;
}

/* Declares an output of the graph. dim: in the graph's order of axes. sizes: the last two axes are
 * those of a picture of any size. */
static void declare(struct pm_export *g, const char *name, enum pm_dtype type, int rank,
                    const int64_t *dim, bool sizes)
{
    struct pm_onnx_value *v = pm_onnx_add_output(g->model, name, type, rank, dim);

    if (g->options.any_batch)
        v->dim[0] = -1, v->dim_name[0] = "N";
    if (sizes) {
        v->dim[rank - 2] = v->dim[rank - 1] = -1;
        v->dim_name[rank - 2] = "H", v->dim_name[rank - 1] = "W";
    }
}

/* Adds boxes or points as an output of their node's shape, in 0..1 of the picture. */
static void add_places(struct pm_export *g, const struct pm_node *n, enum pm_places places)
{
    const struct pm_shape s = n->out_shape;
    int64_t dim[PM_MAX_RANK];
    const char *x = g->value[n->index];

    g->node = n;
    if (s.rank == 4 || g->options.frame) {
        x = rename_node(g, n, pm_export_name(g, "input"));
        x = pm_export_frame_places(g, pm_export_nhwc(g, x, s), places == PM_PLACES_POINTS);
    }
    rename_value(g, 0, x, n->name);
    for (int i = 0; i < s.rank; i++)
        dim[i] = s.dim[i];
    declare(g, n->name, PM_DTYPE_F32, s.rank, dim, false);
}

/* Adds the node's masks, pasted into the picture at the boxes of the first output. */
static void add_pasted(struct pm_export *g, const struct pm_node *n, const char *boxes)
{
    const struct pm_shape s = n->out_shape, in = g->net->nodes[0]->out_shape;
    const int64_t dim[] = { s.dim[0], s.dim[3], in.dim[1], in.dim[2] };
    const char *x;

    g->node = n;
    x = rename_node(g, n, pm_export_name(g, "input"));
    rename_value(g, 0, pm_export_paste(g, x, s, boxes), n->name);
    declare(g, n->name, PM_DTYPE_U8, 4, dim, g->options.frame != NULL);
}

/* Adds two outputs: the whole map as RawNAME, and the picture's part as NAME. */
static void add_framed(struct pm_export *g, const struct pm_node *n, enum pm_places places)
{
    const char *name = n->name, *raw = pm_arena_printf(g->model->arena, "Raw%s", name);
    const bool classes = n->out_type == PM_I32;
    const struct pm_shape s = n->out_shape;
    const char *y, *whole;
    int64_t dim[PM_MAX_RANK];

    whole = rename_node(g, n, classes ? pm_export_name(g, "whole") : raw);
    if (classes) {
        y = pm_export_cast(g, whole, PM_EXPORT_FLOAT);
        rename_value(g, 0, y, raw);
    }
    y = pm_export_frame_out(g, whole, s, classes);
    if (places == PM_PLACES_LENGTHS)
        y = pm_export_frame_lengths(g, y);
    rename_value(g, 0, y, name);
    for (int i = 0; i < s.rank; i++)
        dim[pm_export_axis(s.rank, i)] = s.dim[i];
    declare(g, name, classes ? PM_DTYPE_I32 : PM_DTYPE_F32, s.rank, dim, true);
    declare(g, raw, PM_DTYPE_F32, s.rank, dim, false);
}

/* from: index of the node's first operator; 0: all operators are searched. */
static void add_output(struct pm_export *g, const struct pm_node *logits, size_t from)
{
    const bool softmax = g->options.end == PM_END_SOFTMAX && !g->options.also_count;
    const char *name = g->options.also_count ? logits->name
                       : softmax             ? "probabilities"
                                             : "logits", *x;
    int64_t dim[PM_MAX_RANK];
    int rank;

    x = output_shape(g, logits, dim, &rank);
    if (softmax) {
        x = pm_export_op(g, "Softmax", PM_VALUES(x));
        pm_export_int(g, "axis", 1);
    }
    if (!g->options.also_count && pm_net_find(g->net, name) && strcmp(x, name) != 0)
        name = pm_export_name(g, name);
    if (!is_made(g, from, x))
        x = pm_export_op(g, "Identity", PM_VALUES(x));
    rename_value(g, from, x, name);
    declare(g, name, logits->out_type == PM_I32 ? PM_DTYPE_I32 : PM_DTYPE_F32, rank, dim, false);
}

/* Adds the best path of the logits x, a value of the graph, as outputs. */
static void add_path(struct pm_export *g, const struct pm_node *logits, const char *x)
{
    const struct pm_shape s = logits->out_shape;
    const int64_t dim[] = { s.dim[0], s.dim[s.rank - 2] };

    g->node = logits;
    const struct pm_export_path t = pm_export_best_path(g, x, s);
    const struct {
        const char *name, *value;
        enum pm_dtype type;
        int rank;
    } outputs[] = {
        { "symbols", t.symbols, PM_DTYPE_I32, 2 }, { "lengths", t.lengths, PM_DTYPE_I32, 1 },
        { "score", t.scores, PM_DTYPE_F32, 1 },
    };

    for (size_t i = 0; i < PM_COUNT(outputs); i++) {
        const char *name = outputs[i].name;

        if (pm_net_find(g->net, name))
            name = pm_export_name(g, name);
        rename_value(g, 0, outputs[i].value, name);
        declare(g, name, outputs[i].type, outputs[i].rank, dim, false);
    }
}

/* ---- the walk ---------------------------------------------------------------------------- */

static void add_node(struct pm_export *g, const struct pm_node *n)
{
    const size_t from = g->model->node_count;

    g->node = n;
    if (!n->layer->onnx) {
        pm_export_refuse(g, "it is a loss");
        return;
    }
    g->value[n->index] = n->layer->onnx(n, g);
    for (int k = 0; k < n->outputs && !g->error; k++) {
        const struct pm_node *o = n->out[k];

        if (!g->value[o->index] || !is_made(g, from, g->value[o->index]))
            continue; /* NULL: an output that nothing reads */
        rename_value(g, from, g->value[o->index], o->name);
        g->value[o->index] = o->name;
    }
}

static int walk(struct pm_export *g, const struct pm_node *logits)
{
    size_t from = 0;

    for (int i = 0; i <= last_of(g, logits) && !g->error; i++) {
        const struct pm_node *n = g->net->nodes[i];

        if (g->readers[i] == 0 || n->output) /* comes with its layer's node */
            continue;
        from = g->model->node_count;
        if (n->inputs == 0)
            add_input(g, n);
        else
            add_node(g, n);
    }
    for (int i = 0; i <= g->options.also_count && !g->error; i++) {
        const struct pm_node *n = output_of(g, logits, i);

        const enum pm_places places = g->options.places ? g->options.places[i] : PM_PLACES_NONE;

        if (places == PM_PLACES_BOXES || places == PM_PLACES_POINTS)
            add_places(g, n, places);
        else if (places == PM_PLACES_MASKS)
            add_pasted(g, n, logits->name);
        else if (is_framed(g, n))
            add_framed(g, n, places);
        else
            add_output(g, n, g->options.also_count ? 0 : from);
    }
    if (g->options.end == PM_END_BEST_PATH && !g->error)
        add_path(g, logits, g->value[logits->index]);
    return g->error;
}

int pm_export_create(const struct pm_net *net, const struct pm_node *logits,
                     const struct pm_export_options *o, struct pm_export **out)
{
    struct pm_export *g = pm_calloc(1, sizeof *g);
    const size_t nodes = (size_t)net->count + 1, vars = (size_t)net->var_count + 1;
    int err = PM_OK;

    g->model = pm_onnx_make("pumice");
    struct pm_arena *a = g->model->arena;
    g->net = net;
    g->options = *o;
    g->cached = -1;
    g->model->ir_version = 8;
    g->model->opset = PM_EXPORT_OPSET;
    g->value = pm_arena_alloc(a, nodes * sizeof *g->value);
    g->readers = pm_arena_alloc(a, nodes * sizeof *g->readers);
    g->reader = pm_arena_alloc(a, nodes * sizeof *g->reader);
    g->fold = pm_arena_alloc(a, nodes * sizeof *g->fold);
    g->is_variable = pm_arena_alloc(a, vars * sizeof *g->is_variable);
    count_readers(g, logits);
    PM_TRY(walk(g, logits));
    *out = g, g = NULL;
out:
    pm_export_destroy(&g);
    return err;
}

void pm_export_destroy(struct pm_export **g)
{
    if (*g) {
        pm_onnx_close(&(*g)->model);
        pm_free((*g)->cache);
        pm_free(*g);
    }
    *g = NULL;
}

const char *pm_export_value(const struct pm_export *g, const struct pm_node *n)
{
    return g->value[n->index];
}

bool pm_export_pasted(const struct pm_export *g, const char **rows, const char **columns)
{
    *rows = g->pasted.rows;
    *columns = g->pasted.columns;
    return g->pasted.rows != NULL;
}

struct pm_onnx_model *pm_export_model(struct pm_export *g)
{
    return g->model;
}

/* ---- comparing --------------------------------------------------------------------------- */

static bool same_attr(const struct pm_onnx_attr *a, const struct pm_onnx_attr *b)
{
    if (strcmp(a->name, b->name) != 0 || a->type != b->type || a->count != b->count)
        return false;
    switch (a->type) {
    case PM_ONNX_FLOAT:
        return a->f == b->f;
    case PM_ONNX_INT:
        return a->i == b->i;
    case PM_ONNX_STRING:
        return strcmp(a->s, b->s) == 0;
    case PM_ONNX_GRAPH: /* depends on the shapes of the values that it gets */
        return true;
    default: /* the only list type that is written */
        return memcmp(a->ints, b->ints, (size_t)a->count * sizeof *a->ints) == 0;
    }
}

static bool same_node(const struct pm_onnx_node *a, const struct pm_onnx_node *b)
{
    if (strcmp(a->op, b->op) != 0 || strcmp(a->name, b->name) != 0 || a->in_count != b->in_count ||
        a->attr_count != b->attr_count)
        return false;
    for (int i = 0; i < a->in_count; i++)
        if (strcmp(a->in[i], b->in[i]) != 0)
            return false;
    for (int i = 0; i < a->attr_count; i++)
        if (!same_attr(&a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

/* Whether two tensors are equal. Values are compared only for constants, which may depend on the
 * size. Variables belong to the same config. */
static bool same_tensor(const struct pm_onnx_tensor *a, const struct pm_onnx_tensor *b)
{
    if (strcmp(a->name, b->name) != 0 || a->rank != b->rank || a->bytes != b->bytes)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return !a->data || !b->data || memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

const char *pm_export_difference(const struct pm_export *a, const struct pm_export *b)
{
    const struct pm_onnx_model *m = a->model, *n = b->model;

    for (size_t i = 0; i < m->node_count && i < n->node_count; i++)
        if (!same_node(&m->nodes[i], &n->nodes[i]))
            return m->nodes[i].name;
    for (size_t i = 0; i < m->tensor_count && i < n->tensor_count; i++)
        if (!same_tensor(&m->tensors[i], &n->tensors[i]))
            return m->tensors[i].name;
    return m->node_count == n->node_count && m->tensor_count == n->tensor_count ? NULL
                                                                                : m->graph_name;
}
