/* import: the walk over a model's nodes. Those that the logits need are taken in the model's order;
 * what has constants only is computed here, the rest becomes layers. Nodes that are not supported are
 * collected, so that one message names all of them. */
#include "onnx/import.h"

#include <ctype.h>
#include <string.h>

struct pm_import {
    struct pm_onnx_model *model; /* owned */
    struct pm_arena *arena;      /* owned: what variables are read from */
    bool told;                   /* what was left out */
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
out:
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

struct value *import_out(struct import *m, int i)
{
    struct value *v, *next;
    const char *name;

    if (i >= m->n->out_count || !m->n->out[i][0]) /* nobody wants it */
        return pm_arena_alloc(m->arena, sizeof *v);
    v = import_value(m, m->n->out[i]);
    name = v->name, next = v->next;
    *v = (struct value){ .name = name, .next = next };
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
    const struct value from = *x;
    struct value *v = import_out(m, i);
    const char *name = v->name;
    struct value *next = v->next;

    *v = from;
    v->name = name, v->next = next;
    v->laid = NULL; /* their atoms may be cut otherwise */
    v->view = *view;
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

void import_out_numbers(struct import *m, int i, int rank, const int64_t *dim, const double *numbers,
                        bool integer)
{
    struct value *v = import_out(m, i);

    v->kind = VALUE_NUMBERS;
    v->view = view_plain(rank, dim);
    v->numbers = numbers;
    v->integer = integer;
}

/* ---- names and refusals ------------------------------------------------------------------ */

static const char *legal(struct pm_arena *a, const char *text)
{
    char *name = pm_arena_strdup(a, text);

    while (*name == '/' || *name == '.')
        name++;
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("_./-", *p))
            *p = '_';
    return name;
}

const char *import_legal_name(struct pm_arena *a, const char *text)
{
    const char *name = legal(a, text);

    return isalnum((unsigned char)name[0]) ? name : pm_arena_printf(a, "value%s", name);
}

/* Inputs of the task are added when the net is there. */
static bool taken(const struct import *m, const char *name)
{
    return pm_net_find(m->net, name) || strcmp(name, "images") == 0 || strcmp(name, "labels") == 0 ||
           strcmp(name, "loss") == 0;
}

const char *import_name(struct import *m, const char *more)
{
    const char *base = m->n->name[0] ? import_legal_name(m->arena, m->n->name)
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

enum { MOST_NAMED = 20 };

int import_refuse(struct import *m, const char *fmt, ...)
{
    char who[160], what[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    describe(m->n, m->index, who, sizeof who);
    if (m->refusals < MOST_NAMED)
        pm_str_add(&m->refused, "%s%s: %s", m->refusals ? "; " : "", who, what);
    m->refusals++;
    m->refused_now = true;
    return PM_OK;
}

bool import_read_by_any(const struct import *m, const char *name)
{
    for (size_t i = 0; i < m->model->node_count; i++)
        for (int k = 0; m->needed[i] && k < m->model->nodes[i].in_count; k++)
            if (strcmp(m->model->nodes[i].in[k], name) == 0)
                return true;
    return strcmp(m->logits, name) == 0;
}

const struct pm_onnx_node *import_only_reader(struct import *m, const char *name)
{
    const struct pm_onnx_node *reader = NULL;

    if (strcmp(m->logits, name) == 0)
        return NULL;
    for (size_t i = 0; i < m->model->node_count; i++)
        for (int k = 0; m->needed[i] && k < m->model->nodes[i].in_count; k++)
            if (strcmp(m->model->nodes[i].in[k], name) == 0) {
                if (reader)
                    return NULL;
                reader = &m->model->nodes[i];
            }
    return reader;
}

/* ---- the walk ---------------------------------------------------------------------------- */

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

/* The value that the loss takes: in front of a Softmax at the end. */
static const char *logits_name(struct pm_import *i, const struct pm_import_options *options)
{
    const struct pm_onnx_model *model = i->model;
    const char *named = options->logits && options->logits[0] ? options->logits : NULL;
    const char *name = named ? named : model->outputs[0].name;
    const struct pm_onnx_node *n = producer(model, name);

    if (options->whole || named)
        return name;
    for (size_t k = 0; k < model->node_count && is_op(n, "Identity Flatten Reshape Squeeze"); k++)
        n = n->in_count ? producer(model, n->in[0]) : NULL;
    if (!is_op(n, "Softmax LogSoftmax") || n->in_count < 1)
        return name;
    if (!i->told)
        PM_INFO("onnx", "%s: the %s at its end is left out: the loss takes what is before it",
                model->path, n->op);
    i->told = true;
    return n->in[0];
}

/* Nodes behind the value, by index. */
static void find_needed(struct import *m, const char *name)
{
    bool *needed = pm_arena_alloc(m->arena, m->model->node_count + 1);
    struct value *wanted = import_value(m, name);

    /* Values that are wanted are marked by a kind until they are made. */
    wanted->kind = VALUE_BROKEN;
    for (size_t i = m->model->node_count; i-- > 0;) {
        const struct pm_onnx_node *n = &m->model->nodes[i];

        for (int k = 0; k < n->out_count; k++)
            needed[i] |= n->out[k][0] && import_value(m, n->out[k])->kind == VALUE_BROKEN;
        for (int k = 0; needed[i] && k < n->in_count; k++)
            if (n->in[k][0])
                import_value(m, n->in[k])->kind = VALUE_BROKEN;
    }
    m->logits = name;
    m->needed = needed;
    m->absorbed = pm_arena_alloc(m->arena, sizeof *m->absorbed * (m->model->node_count + 1));
}

static int add_tensors(struct import *m)
{
    for (size_t i = 0; i < m->model->tensor_count; i++) {
        const struct pm_onnx_tensor *t = &m->model->tensors[i];
        struct value *v = import_value(m, t->name);

        if (!import_sane(t->rank, t->dim))
            return pm_fail(PM_EDATA, "%s: the initializer %s has a shape that no net has",
                           m->model->path, t->name);
        v->kind = VALUE_TENSOR;
        v->tensor = t;
        v->view = view_plain(t->rank, t->dim);
        v->integer = t->type >= PM_DTYPE_I64;
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
        import_refuse(m, "there is no such operator here%s%s", m->n->domain[0] ? ", domain " : "",
                      m->n->domain);
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
            import_refuse(m, "its output has a shape that no net has");
    }
    if (!op || m->refused_now || broken_input(m))
        break_outputs(m);
out:
    return err;
}

static int check_refusals(const struct import *m)
{
    return !m->refusals ? PM_OK
                        : pm_fail(PM_ECONFIG, "%s: %s%s not supported; configs/README.md lists the "
                                  "operators", m->model->path, m->refused.text,
                                  m->refusals > MOST_NAMED ? "; and more: these are" :
                                  m->refusals > 1 ? ": these are" : ": this is");
}

static int walk(struct import *m)
{
    int err = PM_OK;

    for (m->index = 0; m->index < m->model->node_count; m->index++) {
        m->n = &m->model->nodes[m->index];
        if (m->needed[m->index])
            PM_TRY(build_node(m));
    }
    PM_TRY(check_refusals(m));
out:
    return err;
}

/* ---- the doors --------------------------------------------------------------------------- */

static struct import *begin(struct pm_import *i, struct pm_net *net,
                            const struct pm_import_options *options)
{
    struct import *m = pm_arena_alloc(net->arena, sizeof *m);

    *m = (struct import){ .owner = i, .model = i->model, .net = net, .arena = net->arena,
                          .lasting = i->arena, .options = options, .model_batch = -1 };
    return m;
}

/* Everything behind logits; *out is its value. */
static int build(struct import *m, const char *name, struct value **out)
{
    int err = PM_OK;

    PM_TRY(walk(m));
    *out = import_value(m, name);
    if ((*out)->kind != VALUE_NODE)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: \"%s\" %s", m->model->path, name,
                       (*out)->kind == VALUE_BROKEN || (*out)->kind == VALUE_ABSENT
                           ? "is no value of the model: name an output, or a node's output"
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

/* A net must compute something: an input that is only seen under another shape is copied. */
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
    const char *name = logits_name(i, options);
    find_needed(m, name);
    PM_TRY(add_tensors(m));
    for (size_t k = 0; k < i->model->input_count; k++) {
        const struct pm_onnx_value *in = &i->model->inputs[k];

        if (!import_sane(in->rank, in->dim))
            PM_TRY(pm_fail(PM_ECONFIG, "%s: its input \"%s\" has an open shape", i->model->path,
                           in->name));
        if (inputs[k])
            set_input(m, in->name, inputs[k], view_plain(in->rank, in->dim));
    }
    m->batch = m->model_batch = i->model->input_count && i->model->inputs[0].rank > 0
                                    ? i->model->inputs[0].dim[0] : 1;
    PM_TRY(build(m, name, &v));
    *out = computed(m, import_lay_plain(m, v));
    PM_TRY(net->error);
    PM_TRY(check_refusals(m));
out:
    pm_str_free(&m->refused);
    return err;
}

/* The images: the only input of rank 4 that nothing in the graph makes. */
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
        return pm_fail(PM_ECONFIG, "%s: the model has %d inputs of rank 4, but one input is needed, "
                       "the images", model->path, found);
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
            return pm_fail(PM_ECONFIG, "%s: its input \"%s\" has a fixed %s of %lld, but input.%s "
                           "gives %lld; take that, or a model whose sizes are open", m->model->path,
                           in->name, what[k], (long long)in->dim[of[k]],
                           k == 3 ? "channels" : "size", (long long)is[k]);
    return PM_OK;
}

/* The last Gemm, MatMul or Conv in front of the logits. */
static const struct pm_onnx_node *last_weights(const struct pm_onnx_model *model, const char *name)
{
    const struct pm_onnx_node *n = producer(model, name);

    for (size_t i = 0; n && i < model->node_count && !is_op(n, "Gemm MatMul Conv"); i++)
        n = n->in_count ? producer(model, n->in[0]) : NULL;
    return is_op(n, "Gemm MatMul Conv") ? n : NULL;
}

/* The logits, [n, classes]: one axis beside the batch may be larger than 1. */
static int finish(struct import *m, struct value *v, struct pm_heads *heads)
{
    struct pm_node *logits;
    char text[96];
    int axes = 0;

    for (int k = 1; k < v->view.rank; k++)
        axes += v->view.dim[k] > 1;
    if (v->view.rank < 2 || v->view.dim[0] != m->batch || axes > 1)
        return pm_fail(PM_ECONFIG, "%s: \"%s\" has the shape %s, which is no logits [n, classes] for a "
                       "batch of %lld; name the logits with model.onnx_logits", m->model->path,
                       v->name, view_text(&v->view, text), (long long)m->batch);
    m->n = &m->model->nodes[0];
    char groups[16] = "0 ";
    for (int k = 1; k < v->view.rank; k++)
        groups[k + 1] = (char)('0' + k), groups[k + 2] = 0;
    logits = import_lay(m, v, groups);
    if (m->net->error)
        return m->net->error;
    *heads = (struct pm_heads){ .logits = logits };
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
    const char *name = logits_name(i, options);
    find_needed(m, name);
    if (options->new_head && !(m->head = last_weights(i->model, name)) && producer(i->model, name))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: model.onnx_new_head: no Gemm, MatMul or Conv is found in front "
                       "of the output that a fresh one could replace", i->model->path));
    PM_TRY(add_tensors(m));
    const int64_t dim[] = { s.dim[0], last ? s.dim[1] : s.dim[3], last ? s.dim[2] : s.dim[1],
                            last ? s.dim[3] : s.dim[2] };
    set_input(m, in->name, images, view_ordered(4, dim, last ? "0123" : "0231"));
    m->batch = s.dim[0];
    m->model_batch = in->dim[0];
    PM_TRY(build(m, name, &v));
    PM_TRY(finish(m, v, heads));
    PM_TRY(check_refusals(m));
out:
    pm_str_free(&m->refused);
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
    *out = (int)pm_shape_count(heads.logits->out_shape);
out:
    pm_net_destroy(&net);
    return err;
}
