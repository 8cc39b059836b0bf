/* onnx, writing: fields are written in the order of their numbers, so that equal models give equal
 * bytes. A message begins with its length. Therefore everything except the tensors' bytes is built
 * in memory first; the tensors' bytes are then streamed in between. */
#include "formats/onnx/onnx_private.h"
#include "formats/wire.h"

#include <string.h>
#include <unistd.h>

enum { ALIGN_BESIDE = 64, PIECE = 1 << 20 };
static const uint64_t MAX_MODEL = (UINT64_C(1) << 31) - (64 << 10);

/* ---- protobuf -------------------------------------------------------------------------- */

static void add_int(struct pm_str *s, uint32_t number, int64_t v)
{
    pm_wire_add_varint(s, number << 3 | PM_WIRE_VARINT);
    pm_wire_add_varint(s, (uint64_t)v);
}

static void add_float(struct pm_str *s, uint32_t number, float v)
{
    pm_wire_add_varint(s, number << 3 | PM_WIRE_FIXED32);
    pm_str_bytes(s, &v, sizeof v);
}

static void add_length(struct pm_str *s, uint32_t number, uint64_t size)
{
    pm_wire_add_varint(s, number << 3 | PM_WIRE_BYTES);
    pm_wire_add_varint(s, size);
}

static void add_text(struct pm_str *s, uint32_t number, const char *text)
{
    add_length(s, number, strlen(text));
    pm_str_bytes(s, text, strlen(text));
}

static void add_text_if(struct pm_str *s, uint32_t number, const char *text)
{
    if (text && text[0])
        add_text(s, number, text);
}

/* Takes the message's text. */
static void add_message(struct pm_str *s, uint32_t number, struct pm_str *message)
{
    add_length(s, number, message->length);
    pm_str_bytes(s, message->text, message->length);
    pm_str_free(message);
    *message = (struct pm_str){ 0 };
}

static void add_entry(struct pm_str *s, uint32_t number, const char *key, const char *value)
{
    struct pm_str entry = { 0 };

    add_text(&entry, ENTRY_KEY, key);
    add_text(&entry, ENTRY_VALUE, value);
    add_message(s, number, &entry);
}

/* ---- nodes and values ------------------------------------------------------------------ */

static void add_tensor_head(struct pm_str *s, const struct pm_onnx_tensor *t)
{
    for (int i = 0; i < t->rank; i++)
        add_int(s, TENSOR_DIMS, t->dim[i]);
    add_int(s, TENSOR_TYPE, pm_onnx_type_number(t->type));
    add_text_if(s, TENSOR_NAME, t->name);
}

/* A whole tensor, as the value of an attribute. */
static int add_tensor(struct pm_str *s, uint32_t number, const struct pm_onnx_tensor *t)
{
    int err = PM_OK;
    struct pm_str message = { 0 };
    char *bytes = pm_malloc((size_t)t->bytes);

    PM_TRY(pm_onnx_bytes(t, 0, (size_t)t->bytes, bytes));
    add_tensor_head(&message, t);
    add_length(&message, TENSOR_RAW, t->bytes);
    pm_str_bytes(&message, bytes, (size_t)t->bytes);
    add_message(s, number, &message);
out:
    pm_str_free(&message);
    pm_free(bytes);
    return err;
}

static int unknown_kind(const struct pm_onnx_model *m, const struct pm_onnx_node *n,
                        const struct pm_onnx_attr *a)
{
    return pm_fail(PM_EDATA, "%s: node '%.200s' (%s): attribute '%.200s' has a kind that Pumice "
                   "does not write", m->path, n->name, n->op, a->name);
}

static int add_graph(struct pm_str *s, uint32_t number, const struct pm_onnx_model *g);

static int add_attr(struct pm_str *s, const struct pm_onnx_model *m, const struct pm_onnx_node *n,
                    const struct pm_onnx_attr *a)
{
    int err = PM_OK;
    struct pm_str message = { 0 };

    add_text(&message, ATTR_NAME, a->name);
    switch (a->type) {
    case PM_ONNX_FLOAT:
        add_float(&message, ATTR_F, a->f);
        break;
    case PM_ONNX_INT:
        add_int(&message, ATTR_I, a->i);
        break;
    case PM_ONNX_STRING:
        add_text(&message, ATTR_S, a->s);
        break;
    case PM_ONNX_TENSOR:
        if (a->t->type == PM_DTYPE_OTHER)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: node '%.200s' (%s): the tensor of attribute '%.200s' has a type "
                           "that Pumice does not write",
                           m->path, n->name, n->op, a->name));
        PM_TRY(add_tensor(&message, ATTR_T, a->t));
        break;
    case PM_ONNX_GRAPH:
        if (!a->g)
            PM_TRY(unknown_kind(m, n, a));
        PM_TRY(add_graph(&message, ATTR_G, a->g));
        break;
    case PM_ONNX_FLOATS:
        for (int i = 0; i < a->count; i++)
            add_float(&message, ATTR_FLOATS, a->floats[i]);
        break;
    case PM_ONNX_INTS:
        for (int i = 0; i < a->count; i++)
            add_int(&message, ATTR_INTS, a->ints[i]);
        break;
    case PM_ONNX_STRINGS:
        for (int i = 0; i < a->count; i++)
            add_text(&message, ATTR_STRINGS, a->strings[i]);
        break;
    default:
        PM_TRY(unknown_kind(m, n, a));
    }
    add_int(&message, ATTR_TYPE, a->type); /* our numbers are the format's */
    add_message(s, NODE_ATTR, &message);
out:
    pm_str_free(&message);
    return err;
}

static int add_node(struct pm_str *s, const struct pm_onnx_model *m, const struct pm_onnx_node *n)
{
    int err = PM_OK;
    struct pm_str message = { 0 };

    for (int i = 0; i < n->in_count; i++)
        add_text(&message, NODE_INPUT, n->in[i]);
    for (int i = 0; i < n->out_count; i++)
        add_text(&message, NODE_OUTPUT, n->out[i]);
    add_text_if(&message, NODE_NAME, n->name);
    add_text(&message, NODE_OP, n->op);
    for (int i = 0; i < n->attr_count; i++)
        PM_TRY(add_attr(&message, m, n, &n->attrs[i]));
    add_text_if(&message, NODE_DOMAIN, n->domain);
    add_message(s, GRAPH_NODE, &message);
out:
    pm_str_free(&message);
    return err;
}

static void add_value(struct pm_str *s, uint32_t number, const struct pm_onnx_value *v)
{
    struct pm_str message = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 }, dim = { 0 };

    add_int(&tensor, TYPE_TENSOR_ELEMENT, pm_onnx_type_number(v->type));
    for (int i = 0; i < v->rank; i++) {
        if (v->dim[i] >= 0)
            add_int(&dim, DIM_VALUE, v->dim[i]);
        else
            add_text_if(&dim, DIM_PARAM, v->dim_name[i]);
        add_message(&shape, SHAPE_DIM, &dim);
    }
    if (v->rank >= 0)
        add_message(&tensor, TYPE_TENSOR_SHAPE, &shape);
    add_message(&type, TYPE_TENSOR, &tensor);
    add_text(&message, VALUE_NAME, v->name);
    add_message(&message, VALUE_TYPE, &type);
    add_message(s, number, &message);
}

/* An operator's body. Its initializers are small. */
static int add_graph(struct pm_str *s, uint32_t number, const struct pm_onnx_model *g)
{
    struct pm_str message = { 0 };
    int err = PM_OK;

    for (size_t i = 0; i < g->node_count; i++)
        PM_TRY(add_node(&message, g, &g->nodes[i]));
    add_text(&message, GRAPH_NAME, g->graph_name);
    for (size_t i = 0; i < g->tensor_count; i++)
        PM_TRY(add_tensor(&message, GRAPH_INITIALIZER, &g->tensors[i]));
    for (size_t i = 0; i < g->input_count; i++)
        add_value(&message, GRAPH_INPUT, &g->inputs[i]);
    for (size_t i = 0; i < g->output_count; i++)
        add_value(&message, GRAPH_OUTPUT, &g->outputs[i]);
    add_message(s, number, &message);
out:
    pm_str_free(&message);
    return err;
}

/* ---- the file -------------------------------------------------------------------------- */

struct writing {
    const struct pm_onnx_model *m;
    const char *path, *beside_name; /* beside_name: the name in the model */
    bool beside;                    /* large tensors are written to that file */
    struct pm_str head, graph, tail;
    size_t *cut;          /* by tensor: end of the graph's text before its bytes */
    uint64_t inside;      /* bytes of the tensors inside */
    uint64_t beside_size; /* of the file beside */
    uint8_t *piece;
    struct pm_sha256 sha; /* of the file beside */
};

static bool goes_beside(const struct writing *w, const struct pm_onnx_tensor *t)
{
    return w->beside && t->bytes > PM_ONNX_BESIDE;
}

static void add_beside(struct writing *w, const struct pm_onnx_tensor *t, struct pm_str *message)
{
    char number[24];

    w->beside_size = (w->beside_size + ALIGN_BESIDE - 1) / ALIGN_BESIDE * ALIGN_BESIDE;
    add_entry(message, TENSOR_EXTERNAL, "location", w->beside_name);
    snprintf(number, sizeof number, "%llu", (unsigned long long)w->beside_size);
    add_entry(message, TENSOR_EXTERNAL, "offset", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)t->bytes);
    add_entry(message, TENSOR_EXTERNAL, "length", number);
    add_int(message, TENSOR_LOCATION, 1);
    w->beside_size += t->bytes;
}

static int add_initializer(struct writing *w, size_t index)
{
    int err = PM_OK;
    const struct pm_onnx_tensor *t = &w->m->tensors[index];
    struct pm_str message = { 0 };
    uint64_t inside = 0;

    if (t->type == PM_DTYPE_OTHER)
        PM_TRY(pm_fail(PM_EDATA, "%s: tensor '%.200s' has a type that Pumice does not write",
                       w->path, t->name));
    add_tensor_head(&message, t);
    if (goes_beside(w, t)) {
        add_beside(w, t, &message);
    } else {
        add_length(&message, TENSOR_RAW, t->bytes);
        inside = t->bytes;
    }
    add_length(&w->graph, GRAPH_INITIALIZER, message.length + inside);
    pm_str_bytes(&w->graph, message.text, message.length);
    w->inside += inside;
    w->cut[index] = w->graph.length;
out:
    pm_str_free(&message);
    return err;
}

/* Before IR version 4 initializers are inputs too. */
static void add_given_input(struct pm_str *s, const struct pm_onnx_tensor *t)
{
    struct pm_onnx_value v = { .name = t->name, .type = t->type, .rank = t->rank };

    memcpy(v.dim, t->dim, sizeof v.dim);
    add_value(s, GRAPH_INPUT, &v);
}

/* Builds everything except the tensors' bytes. beside: path of the external data file, or NULL. */
static int put_together(struct writing *w, const char *beside)
{
    int err = PM_OK;
    const struct pm_onnx_model *m = w->m;
    struct pm_str opset = { 0 };

    w->head.length = w->graph.length = w->tail.length = 0;
    w->beside_size = w->inside = 0;
    w->beside_name = beside && strrchr(beside, '/') ? strrchr(beside, '/') + 1 : beside;
    add_int(&w->head, MODEL_IR_VERSION, m->ir_version);
    add_text_if(&w->head, MODEL_PRODUCER, m->producer);
    add_text_if(&w->head, MODEL_DOC, m->doc);
    for (size_t i = 0; i < m->node_count; i++)
        PM_TRY(add_node(&w->graph, m, &m->nodes[i]));
    add_text(&w->graph, GRAPH_NAME, m->graph_name);
    for (size_t i = 0; i < m->tensor_count; i++)
        PM_TRY(add_initializer(w, i));
    for (size_t i = 0; i < m->input_count; i++)
        add_value(&w->graph, GRAPH_INPUT, &m->inputs[i]);
    for (size_t i = 0; i < m->tensor_count && m->ir_version < 4; i++)
        add_given_input(&w->graph, &m->tensors[i]);
    for (size_t i = 0; i < m->output_count; i++)
        add_value(&w->graph, GRAPH_OUTPUT, &m->outputs[i]);
    add_length(&w->head, MODEL_GRAPH, w->graph.length + w->inside);
    add_text(&opset, OPSET_DOMAIN, "");
    add_int(&opset, OPSET_VERSION, m->opset);
    add_message(&w->tail, MODEL_OPSET, &opset);
    for (size_t i = 0; i < m->domain_count; i++) {
        add_text(&opset, OPSET_DOMAIN, m->domains[i].name);
        add_int(&opset, OPSET_VERSION, m->domains[i].version);
        add_message(&w->tail, MODEL_OPSET, &opset);
    }
    for (size_t i = 0; i < m->meta_count; i++)
        add_entry(&w->tail, MODEL_META, m->meta[2 * i], m->meta[2 * i + 1]);
    const uint64_t size = w->head.length + w->graph.length + w->inside + w->tail.length;
    if (size > MAX_MODEL)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: %llu bytes are more than an ONNX model may have in one file "
                       "(%llu)%s",
                       w->path, (unsigned long long)size, (unsigned long long)MAX_MODEL,
                       w->beside ? "" : "; write the weights beside it: export.weights=beside"));
out:
    return err;
}

/* hashed: the bytes are added to w->sha. */
static int put(struct writing *w, struct pm_new_file *f, const void *data, size_t size, bool hashed)
{
    if (hashed)
        pm_sha256_add(&w->sha, data, size);
    return pm_new_file_add(f, data, size);
}

static int put_tensor(struct writing *w, struct pm_new_file *f, const struct pm_onnx_tensor *t,
                      bool hashed)
{
    int err = PM_OK;

    if (t->data)
        return put(w, f, t->data, (size_t)t->bytes, hashed);
    for (uint64_t done = 0; done < t->bytes;) {
        const size_t n = t->bytes - done < PIECE ? (size_t)(t->bytes - done) : PIECE;
        PM_TRY(pm_onnx_bytes(t, done, n, w->piece));
        PM_TRY(put(w, f, w->piece, n, hashed));
        done += n;
    }
out:
    return err;
}

static int put_model(struct writing *w, struct pm_new_file *f)
{
    int err = PM_OK;
    size_t at = 0;

    PM_TRY(pm_new_file_add(f, w->head.text, w->head.length));
    for (size_t i = 0; i < w->m->tensor_count; i++) {
        PM_TRY(pm_new_file_add(f, w->graph.text + at, w->cut[i] - at));
        at = w->cut[i];
        if (!goes_beside(w, &w->m->tensors[i]))
            PM_TRY(put_tensor(w, f, &w->m->tensors[i], false));
    }
    PM_TRY(pm_new_file_add(f, w->graph.text + at, w->graph.length - at));
    PM_TRY(pm_new_file_add(f, w->tail.text, w->tail.length));
    PM_TRY(pm_new_file_sync(f));
out:
    return err;
}

/* Opens f if any tensor is stored in the external file. sha256: digest of that file. */
static int put_beside(struct writing *w, struct pm_new_file *f, const char *path, char sha256[65])
{
    static const uint8_t zeros[ALIGN_BESIDE];
    int err = PM_OK;
    uint64_t at = 0;

    pm_sha256_start(&w->sha);
    for (size_t i = 0; i < w->m->tensor_count; i++) {
        const struct pm_onnx_tensor *t = &w->m->tensors[i];
        const size_t gap = (size_t)(-at % ALIGN_BESIDE);
        if (!goes_beside(w, t))
            continue;
        if (!f->temporary)
            PM_TRY(pm_new_file_open(f, path));
        PM_TRY(put(w, f, zeros, gap, true));
        PM_TRY(put_tensor(w, f, t, true));
        at += gap + t->bytes;
    }
    pm_sha256_end(&w->sha, sha256);
    if (f->temporary)
        PM_TRY(pm_new_file_sync(f));
out:
    return err;
}

/* Renames the data file first: if the process is killed in between, the old model still finds its
 * own data. check (may be NULL) checks the new model before it replaces the old one. */
static int give_names(struct pm_new_file *model, struct pm_new_file *weights, const char *data,
                      int (*check)(void *ctx, const char *file), void *ctx)
{
    const bool had = data && pm_file_exists(data); /* same content: the old model may refer to it */
    int err = PM_OK;

    if (data) {
        weights->path = data;
        PM_TRY(pm_new_file_commit(weights));
    }
    if (check)
        PM_TRY(check(ctx, model->temporary));
    PM_TRY(pm_new_file_commit(model));
out:
    if (err < 0 && data && !had && !weights->temporary)
        unlink(data);
    return err;
}

int pm_onnx_write(const struct pm_onnx_model *m, const char *path, bool beside, char **data)
{
    return pm_onnx_write_checked(m, path, beside, NULL, NULL, data);
}

int pm_onnx_write_checked(const struct pm_onnx_model *m, const char *path, bool beside,
                          int (*check)(void *ctx, const char *file), void *ctx, char **data)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct pm_paths old = { 0 };
    struct pm_new_file model = { .fd = -1 }, weights = { .fd = -1 };
    struct writing w = { .m = m, .path = path, .beside = beside };
    char sha256[65], *name = NULL;

    w.cut = pm_malloc(m->tensor_count * sizeof *w.cut);
    w.piece = pm_malloc(PIECE);
    pm_onnx_beside_find(path, a, &old);
    /* The first pass uses a placeholder name: a model that cannot be written is refused before
     * gigabytes of data are written. The digest is known only after writing them. */
    PM_TRY(put_together(&w, "data"));
    const char *unnamed = pm_arena_printf(a, "%s.data", path);
    pm_temporaries_clean(unnamed); /* even if this export has no external data */
    PM_TRY(put_beside(&w, &weights, unnamed, sha256));
    if (weights.temporary)
        name = pm_onnx_beside_path(path, sha256);
    PM_TRY(put_together(&w, name));
    PM_TRY(pm_new_file_open(&model, path));
    PM_TRY(put_model(&w, &model));
    PM_TRY(give_names(&model, &weights, name, check, ctx));
    pm_onnx_beside_remove(&old, name);
    if (data)
        *data = name, name = NULL;
out:
    pm_new_file_abandon(&model);
    pm_new_file_abandon(&weights);
    pm_str_free(&w.head);
    pm_str_free(&w.graph);
    pm_str_free(&w.tail);
    pm_free(name);
    pm_free(w.cut);
    pm_free(w.piece);
    pm_free(old.list);
    pm_arena_destroy(&a);
    return err;
}
