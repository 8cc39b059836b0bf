/* import: converts a whole model. This file finds the image input and the logits, and checks that
 * they fit the task. import_walk.c converts the nodes between them. */
#include "onnx/export_nodes.h"
#include "onnx/import_private.h"

#include <string.h>

struct pm_import {
    struct pm_onnx_model *model; /* owned */
    struct pm_arena *arena;      /* owned: source data of variables */
    bool unused_logged;          /* logged the omitted softmax */
    bool split_logged;           /* logged the split initializers */
};

int pm_import_open_model(struct pm_onnx_model *model, struct pm_import **out)
{
    struct pm_import *i = pm_calloc(1, sizeof *i);

    i->model = model;
    i->arena = pm_arena_create();
    *out = i;
    return PM_OK;
}

int pm_import_open(const char *path, struct pm_import **out)
{
    int err = PM_OK;
    struct pm_onnx_model *model = NULL;

    PM_TRY(pm_onnx_read(path, &model));
    PM_TRY(pm_import_open_model(model, out));
    model = NULL;
out:
    pm_onnx_close(&model);
    return err;
}

void pm_import_close(struct pm_import **i)
{
    if (*i) {
        pm_onnx_close(&(*i)->model);
        pm_arena_destroy(&(*i)->arena);
        pm_free(*i);
    }
    *i = NULL;
}

const struct pm_onnx_model *pm_import_model(const struct pm_import *i)
{
    return i->model;
}

/* ---- the model's end --------------------------------------------------------------------- */

static const struct pm_onnx_node *producer(const struct pm_onnx_model *m, const char *name)
{
    for (size_t i = m->node_count; i-- > 0;)
        for (int k = 0; k < m->nodes[i].out_count; k++)
            if (strcmp(m->nodes[i].out[k], name) == 0)
                return &m->nodes[i];
    return NULL;
}

static bool is_op(const struct pm_onnx_node *n, const char *ops)
{
    const char *hit = n ? strstr(ops, n->op) : NULL;
    const size_t length = n ? strlen(n->op) : 0;

    return hit && n->domain[0] == 0 && (hit == ops || hit[-1] == ' ') &&
           (hit[length] == 0 || hit[length] == ' ');
}

/* Whether a Softmax normalises over the classes of logits [n, classes, ...]. For an output of maps,
 * its axis must be 1. Before opset 13, Softmax joined all axes from `axis` on, so the maps must
 * have a single pixel. */
static bool is_over_classes(const struct pm_onnx_model *m, const struct pm_onnx_node *n)
{
    const struct pm_onnx_value *y = &m->outputs[0];
    const bool joins = m->opset < 13;
    const int64_t axis = pm_onnx_attr_int(n, "axis", joins ? 1 : -1);

    if (strcmp(n->out[0], y->name) != 0 || y->rank < 3)
        return true;
    for (int k = 2; joins && k < y->rank; k++)
        if (y->dim[k] > 1)
            return false;
    return (axis < 0 ? axis + y->rank : axis) == 1;
}

/* Returns the name of the value for the loss: the input of a Softmax at the end. A model of our own
 * may crop the maps to the picture after the Softmax (struct pm_export_frame). Then only the
 * Softmax is skipped. */
static const char *logits_name(struct import *m)
{
    struct pm_import *i = m->owner;
    const struct pm_import_options *options = m->options;
    const struct pm_onnx_model *model = i->model;
    const bool ours = model->producer && strcmp(model->producer, "pumice") == 0;
    bool cut = false;
    const char *named = options->logits && options->logits[0] ? options->logits : NULL;
    const char *name = named ? named : model->outputs[0].name;
    const struct pm_onnx_node *n = producer(model, name);

    if (options->whole || named)
        return name;
    for (size_t k = 0; k < model->node_count && (is_op(n, "Identity Flatten Reshape Squeeze") ||
                                                 (ours && is_op(n, "Slice Resize"))); k++) {
        cut |= is_op(n, "Slice Resize");
        n = n->in_count ? producer(model, n->in[0]) : NULL;
    }
    if (!is_op(n, "Softmax LogSoftmax") || n->in_count < 1 || !is_over_classes(model, n))
        return name;
    if (!i->unused_logged)
        PM_INFO("onnx", "%s: the %s at its end is left out, because the loss contains it",
                model->path, n->op);
    i->unused_logged = true;
    m->left_out = cut ? n : NULL;
    return cut ? name : n->in[0];
}

/* ---- entry points ------------------------------------------------------------------------ */

static struct import *begin(struct pm_import *i, struct pm_net *net,
                            const struct pm_import_options *options)
{
    struct import *m = pm_arena_alloc(net->arena, sizeof *m);

    *m = (struct import){ .owner = i, .model = i->model, .net = net, .arena = net->arena,
                          .lasting = i->arena, .options = options, .model_batch = -1 };
    return m;
}

static void tell_split(const struct import *m)
{
    if (m->split && !m->owner->split_logged)
        PM_INFO("onnx",
                "%s: several layers share %s, which is all zeros or ones; exporters store equal "
                "tensors once, so each layer gets its own variable (%d more in all)",
                m->model->path, m->split, m->splits);
    m->owner->split_logged |= m->split != NULL;
}

/* Builds all nodes that the logits need; *out is the value of the logits. */
static int build(struct import *m, const char *name, struct value **out)
{
    int err = PM_OK;

    PM_TRY(import_walk(m));
    tell_split(m);
    *out = import_value(m, name);
    if ((*out)->kind != VALUE_NODE)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: \"%s\" %s", m->model->path, name,
                       (*out)->kind == VALUE_BROKEN || (*out)->kind == VALUE_ABSENT
                           ? "is not a value of the model: name an output, or a node's output"
                           : "does not depend on the model's inputs"));
out:
    return err;
}

static int check_model(const struct pm_onnx_model *model)
{
    if (model->output_count < 1 || model->node_count < 1)
        return pm_fail(PM_ECONFIG, "%s: the model has no %s", model->path,
                       model->node_count ? "output" : "nodes");
    return PM_OK;
}

static void set_input(struct import *m, const char *name, struct pm_node *node, struct view view)
{
    struct value *v = import_value(m, name);

    v->kind = VALUE_NODE;
    v->node = node;
    v->view = view;
}

static bool is_input(const struct pm_onnx_model *model, const char *name)
{
    for (size_t i = 0; i < model->input_count; i++)
        if (strcmp(model->inputs[i].name, name) == 0)
            return true;
    return false;
}

/* Puts the caller's nodes in the place of the values at which the graph is cut. */
static int set_cuts(struct import *m)
{
    for (int i = 0; i < m->options->cut_count; i++) {
        const struct pm_import_cut *c = &m->options->cuts[i];
        const int rank = c->node->out_shape.rank;
        int64_t dim[PM_MAX_RANK];

        if (!is_input(m->model, c->name) && !producer(m->model, c->name))
            return pm_fail(PM_ECONFIG, "%s: \"%s\" is not a value of the model, so the graph "
                           "cannot be cut there: name an input, or a node's output",
                           m->model->path, c->name);
        for (int k = 0; k < rank; k++)
            dim[pm_export_axis(rank, k)] = c->node->out_shape.dim[k];
        set_input(m, c->name, c->node, rank != 4 ? view_plain(rank, dim)
                                                 : view_ordered(4, dim, "0231"));
    }
    return PM_OK;
}

/* A net must have a layer: an input that is only reshaped is copied. */
static struct pm_node *computed(struct import *m, struct pm_node *y)
{
    struct pm_node *x = y;

    while (x->inputs == 1 && x->layer->view)
        x = x->in[0];
    if (x->inputs || m->net->error)
        return y;
    x = pm_net_add(m->net, import_name(m, "flat"), y, "reshape shape=[-1]");
    x = pm_net_add(m->net, import_name(m, "copy"), x, "transpose perm=[0]");
    return pm_net_add(m->net, import_name(m, "output"), x, "reshape shape=[%zu]",
                      pm_shape_count(y->out_shape));
}

int pm_import_graph(struct pm_import *i, struct pm_net *net, struct pm_node *const *inputs,
                    const struct pm_import_options *options, struct pm_node **out)
{
    int err = PM_OK;
    struct import *m = begin(i, net, options);
    struct value *v;

    PM_TRY(check_model(i->model));
    const char *name = logits_name(m);
    import_need(m, name);
    PM_TRY(import_tensors(m));
    for (size_t k = 0; k < i->model->input_count; k++) {
        const struct pm_onnx_value *in = &i->model->inputs[k];

        if (!import_sane(in->rank, in->dim))
            PM_TRY(pm_fail(PM_ECONFIG,
                           "%s: the shape of its input \"%s\" is not fixed or too large",
                           i->model->path, in->name));
        if (inputs[k])
            set_input(m, in->name, inputs[k], view_plain(in->rank, in->dim));
    }
    PM_TRY(set_cuts(m));
    m->batch = m->model_batch = i->model->input_count && i->model->inputs[0].rank > 0
                                    ? i->model->inputs[0].dim[0] : 1;
    PM_TRY(build(m, name, &v));
    *out = computed(m, import_lay_plain(m, v));
    PM_TRY(net->error);
    PM_TRY(import_check_refusals(m));
out:
    return err;
}

/* Finds the images: the only input of rank 4 that no node outputs. */
static int find_images(const struct pm_onnx_model *model, const struct pm_onnx_value **out)
{
    int found = 0;

    for (size_t k = 0; k < model->input_count; k++) {
        const struct pm_onnx_value *in = &model->inputs[k];
        bool used = false;

        if (in->rank != 4 || producer(model, in->name))
            continue;
        for (size_t j = 0; j < model->node_count && !used; j++)
            for (int q = 0; q < model->nodes[j].in_count; q++)
                used |= strcmp(model->nodes[j].in[q], in->name) == 0;
        if (used && !found++)
            *out = in;
    }
    if (found != 1)
        return pm_fail(PM_ECONFIG,
                       "%s: the model has %d inputs of rank 4, but one input is needed, "
                       "the images",
                       model->path, found);
    return PM_OK;
}

static bool channels_last(const struct pm_onnx_value *in)
{
    const bool last = in->dim[3] == 1 || in->dim[3] == 3 || in->dim[3] == 4;
    const bool first = in->dim[1] == 1 || in->dim[1] == 3 || in->dim[1] == 4;

    return last && !first;
}

static int positive(int64_t n)
{
    return n > 0 && n < 1 << 20 ? (int)n : 0;
}

int pm_import_facts(struct pm_import *i, struct pm_import_facts *out)
{
    int err = PM_OK;
    const struct pm_onnx_value *in = NULL;

    PM_TRY(check_model(i->model));
    PM_TRY(find_images(i->model, &in));
    *out = (struct pm_import_facts){ .channels_last = channels_last(in) };
    out->channels = positive(in->dim[out->channels_last ? 3 : 1]);
    out->height = positive(in->dim[out->channels_last ? 1 : 2]);
    out->width = positive(in->dim[out->channels_last ? 2 : 3]);
out:
    return err;
}

static int check_images(struct import *m, const struct pm_onnx_value *in, struct pm_shape s,
                        bool last)
{
    const int64_t is[] = { s.dim[0], s.dim[1], s.dim[2], s.dim[3] };
    const int of[] = { 0, last ? 1 : 2, last ? 2 : 3, last ? 3 : 1 };
    static const char *const what[] = { "", "height", "width", "channels" };

    for (int k = 1; k < 4; k++)
        if (in->dim[of[k]] > 0 && in->dim[of[k]] != is[k])
            return pm_fail(PM_ECONFIG,
                           "%s: its input \"%s\" has a fixed %s of %lld, but input.%s gives %lld: "
                           "change that key, or use a model without fixed sizes",
                           m->model->path, in->name, what[k], (long long)in->dim[of[k]],
                           k == 3 ? "channels" : "size", (long long)is[k]);
    return PM_OK;
}

/* Finds the last nodes with weights that compute a value. The search stops at the first such node
 * on each path. It follows all inputs of Add, Sum and Concat; for other operators, only the first
 * input that leads to one. */
struct search {
    const struct pm_onnx_model *model;
    const struct pm_onnx_node *first, *other;
    int left; /* steps left, so that the search ends */
};

/* Returns false if there are none. */
static bool search(struct search *s, const char *name)
{
    const struct pm_onnx_node *n = s->left-- > 0 && *name ? producer(s->model, name) : NULL;
    bool found = false;

    if (is_op(n, "Gemm MatMul Conv")) {
        *(s->first && s->first != n ? &s->other : &s->first) = n;
        return true;
    }
    for (int i = 0; n && i < n->in_count && (!found || is_op(n, "Add Sum Concat")); i++)
        found |= search(s, n->in[i]);
    return found;
}

/* Finds the last layer with weights before the logits, which a new layer replaces. There must be
 * exactly one. */
static int find_head(struct import *m, const char *name)
{
    struct search s = { .model = m->model, .left = 256 };

    search(&s, name);
    m->head = s.first;
    if (s.other)
        return pm_fail(PM_ECONFIG,
                       "%s: model.onnx_new_head: two last layers, \"%s\" and \"%s\", compute the "
                       "logits: neither can be replaced",
                       m->model->path, s.first->name, s.other->name);
    if (!m->head && producer(m->model, name))
        return pm_fail(PM_ECONFIG,
                       "%s: model.onnx_new_head: there is no Gemm, MatMul or Conv before the "
                       "output that a new layer could replace",
                       m->model->path);
    return PM_OK;
}

static int refuse_shape(const struct import *m, const struct value *v)
{
    const bool maps = v->view.rank == 4 && v->view.dim[0] == m->batch;
    char text[96];

    return pm_fail(PM_ECONFIG,
                   "%s: \"%s\" has the shape %s, %s for a batch of %lld; set model.onnx_logits to "
                   "the name of the logits",
                   m->model->path, v->name, view_text(&v->view, text),
                   maps ? "the output of a segmentation net, not logits [n, classes]"
                        : "which is not that of logits [n, classes]",
                   (long long)m->batch);
}

/* Makes the logits. For [n, classes], at most one axis besides the batch may be larger than 1. If
 * any shape is allowed, maps get their channels last; other shapes keep ONNX's order. */
static int finish(struct import *m, struct value *v, struct pm_heads *heads)
{
    const int rank = v->view.rank;
    const bool own_shape = m->options->any_shape && rank > 2;
    char groups[] = "0 1234567";
    struct pm_node *logits;
    int axes = 0;

    for (int k = 1; k < rank; k++)
        axes += v->view.dim[k] > 1;
    if (!own_shape && (rank < 2 || v->view.dim[0] != m->batch || axes > 1))
        return refuse_shape(m, v);
    groups[rank + 1] = 0;
    m->n = &m->model->nodes[0];
    logits = !own_shape   ? import_lay(m, v, groups)
             : rank == 4 ? import_lay(m, v, import_channels_last(rank))
                         : import_lay_plain(m, v);
    if (m->net->error)
        return m->net->error;
    *heads = (struct pm_heads){ 0 };
    pm_heads_add(m->net, heads, "logits", logits);
    return PM_OK;
}

int pm_import_net(struct pm_import *i, struct pm_net *net, struct pm_node *images,
                  const struct pm_import_options *options, struct pm_heads *heads)
{
    int err = PM_OK;
    struct import *m = begin(i, net, options);
    const struct pm_onnx_value *in = NULL;
    const struct pm_shape s = images->out_shape;
    struct value *v;

    PM_TRY(check_model(i->model));
    PM_TRY(find_images(i->model, &in));
    const bool last = channels_last(in);
    PM_TRY(check_images(m, in, s, last));
    const char *name = logits_name(m);
    import_need(m, name);
    if (options->new_head)
        PM_TRY(find_head(m, name));
    PM_TRY(import_tensors(m));
    const int64_t dim[] = { s.dim[0], last ? s.dim[1] : s.dim[3], last ? s.dim[2] : s.dim[1],
                            last ? s.dim[3] : s.dim[2] };
    set_input(m, in->name, images, view_ordered(4, dim, last ? "0123" : "0231"));
    PM_TRY(set_cuts(m));
    m->batch = s.dim[0];
    m->model_batch = in->dim[0];
    PM_TRY(build(m, name, &v));
    PM_TRY(finish(m, v, heads));
    PM_TRY(import_check_refusals(m));
out:
    if (err < 0 && !net->error)
        net->error = err;
    return err;
}

int pm_import_classes(struct pm_import *i, struct pm_shape picture,
                      const struct pm_import_options *options, int *out)
{
    int err = PM_OK;
    struct pm_net *net = pm_net_create();
    const struct pm_shape s = PM_SHAPE4(1, picture.dim[0], picture.dim[1], picture.dim[2]);
    struct pm_heads heads;

    PM_TRY(pm_import_net(i, net, pm_net_input(net, "images", s, PM_F32), options, &heads));
    const struct pm_shape y = pm_heads_main(&heads)->out_shape;
    *out = y.rank == 4 ? y.dim[3] : (int)pm_shape_count(y);
out:
    pm_net_destroy(&net);
    return err;
}
