/* onnx, reading: parses ModelProto field by field. The nesting depth is fixed: graphs inside
 * attributes and functions are recorded by name, but not parsed. */
#include "formats/onnx/onnx_private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A model being read. */
struct reading {
    struct pm_onnx_model *m;
    struct pm_onnx_reading tensors;
    bool has_graph;
};

static int copy_text(const struct reading *r, const struct pm_wire *w,
                     const struct pm_wire_field *f, const char **out)
{
    return pm_wire_text(w, f, r->m->arena, out);
}

/* ONNX's default domain has two names. */
static const char *plain_domain(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* ---- attributes ------------------------------------------------------------------------ */

/* Stores the elements of a list attribute in floats or ints. If both are NULL, only counts them. */
static int read_list(const struct pm_wire *attr, uint32_t number, enum pm_wire_type type,
                     float *floats, int64_t *ints, int *count)
{
    int err = PM_OK, more, inner;
    struct pm_wire w = *attr, list;
    struct pm_wire_field f;
    uint64_t v;

    *count = 0;
    while ((more = pm_wire_next(&w, &f)) > 0) {
        if (f.number != number)
            continue;
        if (f.type != type)
            PM_TRY(pm_wire_is(&w, &f, PM_WIRE_BYTES));
        list = pm_wire_inside(&w, &f);
        while ((inner = pm_wire_packed(&list, type, &v)) > 0) {
            const uint32_t bits = (uint32_t)v;
            if (*count == INT_MAX)
                PM_TRY(pm_wire_bad(&w, f.key, "a list of more than 2^31 numbers"));
            if (floats)
                memcpy(&floats[*count], &bits, sizeof bits);
            if (ints)
                ints[*count] = (int64_t)v;
            ++*count;
        }
        PM_TRY(inner);
    }
    PM_TRY(more);
out:
    return err;
}

static int read_strings(const struct reading *r, const struct pm_wire *message, uint32_t number,
                        const char ***out, int *count)
{
    int err = PM_OK, more, n = 0;
    struct pm_wire w = *message;
    struct pm_wire_field f;
    const char **list = NULL;

    while ((more = pm_wire_next(&w, &f)) > 0)
        n += f.number == number && n < INT_MAX;
    PM_TRY(more);
    list = pm_arena_alloc(r->m->arena, (size_t)n * sizeof *list);
    w = *message;
    n = 0;
    while ((more = pm_wire_next(&w, &f)) > 0)
        if (f.number == number)
            PM_TRY(copy_text(r, &w, &f, &list[n++]));
    PM_TRY(more);
    *out = list;
    *count = n;
out:
    return err;
}

static int read_lists(const struct reading *r, const struct pm_wire *w, struct pm_onnx_attr *a)
{
    int err = PM_OK;
    float *floats = NULL;
    int64_t *ints = NULL;
    const char **strings = NULL;
    const bool real = a->type == PM_ONNX_FLOATS;

    if (a->type == PM_ONNX_STRINGS) {
        PM_TRY(read_strings(r, w, ATTR_STRINGS, &strings, &a->count));
        a->strings = strings;
        return PM_OK;
    }
    const uint32_t number = real ? ATTR_FLOATS : ATTR_INTS;
    const enum pm_wire_type type = real ? PM_WIRE_FIXED32 : PM_WIRE_VARINT;
    PM_TRY(read_list(w, number, type, NULL, NULL, &a->count));
    if (real)
        a->floats = floats = pm_arena_alloc(r->m->arena, (size_t)a->count * sizeof *floats);
    else
        a->ints = ints = pm_arena_alloc(r->m->arena, (size_t)a->count * sizeof *ints);
    PM_TRY(read_list(w, number, type, floats, ints, &a->count));
out:
    return err;
}

/* AttributeProto.AttributeType by number. Files of the first IR versions do not contain it. */
static enum pm_onnx_type attr_type(uint64_t number)
{
    static const enum pm_onnx_type types[] = {
        0, PM_ONNX_FLOAT, PM_ONNX_INT, PM_ONNX_STRING, PM_ONNX_TENSOR, PM_ONNX_GRAPH,
        PM_ONNX_FLOATS, PM_ONNX_INTS, PM_ONNX_STRINGS,
    };

    return number < PM_COUNT(types) ? types[number] : PM_ONNX_OTHER;
}

static int attr_field(const struct reading *r, const struct pm_wire *w,
                      const struct pm_wire_field *f, struct pm_onnx_attr *a,
                      enum pm_onnx_type *seen)
{
    int err = PM_OK;
    const uint32_t bits = (uint32_t)f->value;

    if (f->number >= ATTR_F && f->number <= ATTR_STRINGS)
        *seen = attr_type(f->number - 1);
    switch (f->number) {
    case ATTR_NAME:
        return copy_text(r, w, f, &a->name);
    case ATTR_F:
        memcpy(&a->f, &bits, sizeof bits);
        return pm_wire_is(w, f, PM_WIRE_FIXED32);
    case ATTR_I:
        return pm_onnx_int(w, f, &a->i);
    case ATTR_S:
        return copy_text(r, w, f, &a->s);
    case ATTR_T: {
        struct pm_onnx_tensor *t = pm_arena_alloc(r->m->arena, sizeof *t);
        PM_TRY(pm_wire_is(w, f, PM_WIRE_BYTES));
        PM_TRY(pm_onnx_parse_tensor(&r->tensors, pm_wire_inside(w, f), t));
        a->t = t;
        return PM_OK;
    }
    case ATTR_TYPE:
        a->type = attr_type(f->value);
        return pm_wire_is(w, f, PM_WIRE_VARINT);
    case ATTR_REF:
        *seen = PM_ONNX_OTHER;
        return PM_OK;
    default:
        return PM_OK;
    }
out:
    return err;
}

static int read_attr(const struct reading *r, struct pm_wire w, struct pm_onnx_attr *a)
{
    int err = PM_OK, more;
    const struct pm_wire all = w;
    struct pm_wire_field f;
    enum pm_onnx_type seen = PM_ONNX_OTHER;

    *a = (struct pm_onnx_attr){ .name = "", .s = "" };
    while ((more = pm_wire_next(&w, &f)) > 0)
        PM_TRY(attr_field(r, &w, &f, a, &seen));
    PM_TRY(more);
    if (!a->name[0])
        PM_TRY(pm_wire_bad(&all, all.at, "an attribute without a name"));
    if (a->type == 0)
        a->type = seen;
    if (a->type == PM_ONNX_TENSOR && !a->t)
        PM_TRY(pm_wire_bad(&all, all.at, "an attribute without its tensor"));
    if (a->type >= PM_ONNX_FLOATS && a->type <= PM_ONNX_STRINGS)
        PM_TRY(read_lists(r, &all, a));
out:
    return err;
}

/* ---- the graph ------------------------------------------------------------------------- */

static int read_attrs(const struct reading *r, const struct pm_wire *node, struct pm_onnx_node *n)
{
    int err = PM_OK, more, count = 0;
    struct pm_wire w = *node;
    struct pm_wire_field f;

    while ((more = pm_wire_next(&w, &f)) > 0)
        count += f.number == NODE_ATTR && count < INT_MAX;
    PM_TRY(more);
    n->attrs = pm_arena_alloc(r->m->arena, (size_t)count * sizeof *n->attrs);
    w = *node;
    while ((more = pm_wire_next(&w, &f)) > 0) {
        if (f.number != NODE_ATTR)
            continue;
        PM_TRY(pm_wire_is(&w, &f, PM_WIRE_BYTES));
        PM_TRY(read_attr(r, pm_wire_inside(&w, &f), &n->attrs[n->attr_count++]));
    }
    PM_TRY(more);
out:
    return err;
}

static int read_node(const struct reading *r, struct pm_wire w, struct pm_onnx_node *n)
{
    int err = PM_OK, more;
    const struct pm_wire all = w;
    struct pm_wire_field f;

    while ((more = pm_wire_next(&w, &f)) > 0) {
        const char **text = f.number == NODE_NAME     ? &n->name
                            : f.number == NODE_OP     ? &n->op
                            : f.number == NODE_DOMAIN ? &n->domain
                                                      : NULL;
        if (text)
            PM_TRY(copy_text(r, &w, &f, text));
    }
    PM_TRY(more);
    if (!n->op[0])
        PM_TRY(pm_wire_bad(&all, all.at, "a node without an operator"));
    n->domain = plain_domain(n->domain);
    PM_TRY(read_strings(r, &all, NODE_INPUT, &n->in, &n->in_count));
    PM_TRY(read_strings(r, &all, NODE_OUTPUT, &n->out, &n->out_count));
    PM_TRY(read_attrs(r, &all, n));
out:
    return err;
}

static int read_dim(const struct reading *r, struct pm_wire w, struct pm_onnx_value *v)
{
    int err = PM_OK, more;
    const uint64_t begin = w.at;
    struct pm_wire_field f;

    if (v->rank == PM_FILE_MAX_RANK)
        PM_TRY(pm_wire_bad(&w, begin, "an input or output of more than 8 dimensions"));
    v->dim[v->rank] = -1;
    while ((more = pm_wire_next(&w, &f)) > 0) {
        if (f.number == DIM_VALUE)
            PM_TRY(pm_onnx_int(&w, &f, &v->dim[v->rank]));
        else if (f.number == DIM_PARAM)
            PM_TRY(copy_text(r, &w, &f, &v->dim_name[v->rank]));
    }
    PM_TRY(more);
    if (v->dim[v->rank] < 0) /* some writers mark an unknown dimension so */
        v->dim[v->rank] = -1;
    v->rank++;
out:
    return err;
}

/* TypeProto.Tensor. */
static int read_tensor_type(const struct reading *r, struct pm_wire w, struct pm_onnx_value *v)
{
    int err = PM_OK, more, inner;
    struct pm_wire shape;
    struct pm_wire_field f, g;

    while ((more = pm_wire_next(&w, &f)) > 0) {
        if (f.number == TYPE_TENSOR_ELEMENT) {
            PM_TRY(pm_wire_is(&w, &f, PM_WIRE_VARINT));
            v->type = pm_onnx_type_of(f.value);
        }
        if (f.number != TYPE_TENSOR_SHAPE)
            continue;
        PM_TRY(pm_wire_is(&w, &f, PM_WIRE_BYTES));
        shape = pm_wire_inside(&w, &f);
        v->rank = 0;
        while ((inner = pm_wire_next(&shape, &g)) > 0)
            if (g.number == SHAPE_DIM) {
                PM_TRY(pm_wire_is(&shape, &g, PM_WIRE_BYTES));
                PM_TRY(read_dim(r, pm_wire_inside(&shape, &g), v));
            }
        PM_TRY(inner);
    }
    PM_TRY(more);
out:
    return err;
}

static int read_value(const struct reading *r, struct pm_wire w, struct pm_onnx_value *v)
{
    int err = PM_OK, more, inner;
    const struct pm_wire all = w;
    struct pm_wire type;
    struct pm_wire_field f, g;

    while ((more = pm_wire_next(&w, &f)) > 0) {
        if (f.number == VALUE_NAME)
            PM_TRY(copy_text(r, &w, &f, &v->name));
        if (f.number != VALUE_TYPE)
            continue;
        PM_TRY(pm_wire_is(&w, &f, PM_WIRE_BYTES));
        type = pm_wire_inside(&w, &f);
        while ((inner = pm_wire_next(&type, &g)) > 0)
            if (g.number == TYPE_TENSOR) { /* else: a sequence, a map, ... */
                PM_TRY(pm_wire_is(&type, &g, PM_WIRE_BYTES));
                PM_TRY(read_tensor_type(r, pm_wire_inside(&type, &g), v));
            }
        PM_TRY(inner);
    }
    PM_TRY(more);
    if (!v->name[0])
        PM_TRY(pm_wire_bad(&all, all.at, "an input or output without a name"));
out:
    return err;
}

static int graph_field(const struct reading *r, const struct pm_wire *w,
                       const struct pm_wire_field *f)
{
    int err = PM_OK;
    struct pm_onnx_model *m = r->m;
    struct pm_onnx_tensor *t;

    if (f->number == GRAPH_NAME)
        return copy_text(r, w, f, &m->graph_name);
    if (f->number == GRAPH_SPARSE)
        return pm_wire_bad(w, f->key, "a sparse initializer, which Pumice cannot read,");
    if (f->number != GRAPH_NODE && f->number != GRAPH_INITIALIZER && f->number != GRAPH_INPUT &&
        f->number != GRAPH_OUTPUT)
        return PM_OK;
    PM_TRY(pm_wire_is(w, f, PM_WIRE_BYTES));
    switch (f->number) {
    case GRAPH_NODE:
        return read_node(r, pm_wire_inside(w, f), pm_onnx_new_node(m));
    case GRAPH_INITIALIZER:
        t = pm_onnx_new_tensor(m);
        PM_TRY(pm_onnx_parse_tensor(&r->tensors, pm_wire_inside(w, f), t));
        if (!t->name[0])
            PM_TRY(pm_wire_bad(w, f->key, "an initializer without a name"));
        return PM_OK;
    case GRAPH_INPUT:
        return read_value(r, pm_wire_inside(w, f), pm_onnx_new_value(&m->inputs, &m->input_count));
    default:
        return read_value(r, pm_wire_inside(w, f),
                          pm_onnx_new_value(&m->outputs, &m->output_count));
    }
out:
    return err;
}

static int read_graph(struct reading *r, const struct pm_wire *w, const struct pm_wire_field *f)
{
    int err = PM_OK, more;
    struct pm_wire graph;
    struct pm_wire_field g;

    PM_TRY(pm_wire_is(w, f, PM_WIRE_BYTES));
    if (r->has_graph)
        PM_TRY(pm_wire_bad(w, f->key, "a second graph"));
    r->has_graph = true;
    graph = pm_wire_inside(w, f);
    while ((more = pm_wire_next(&graph, &g)) > 0)
        PM_TRY(graph_field(r, &graph, &g));
    PM_TRY(more);
out:
    return err;
}

/* ---- the model ------------------------------------------------------------------------- */

static int read_opset(const struct reading *r, const struct pm_wire *w,
                      const struct pm_wire_field *f)
{
    int err = PM_OK, more;
    struct pm_onnx_model *m = r->m;
    struct pm_onnx_domain d = { .name = "" };
    struct pm_wire opset;
    struct pm_wire_field g;

    PM_TRY(pm_wire_is(w, f, PM_WIRE_BYTES));
    opset = pm_wire_inside(w, f);
    while ((more = pm_wire_next(&opset, &g)) > 0) {
        if (g.number == OPSET_DOMAIN)
            PM_TRY(copy_text(r, &opset, &g, &d.name));
        else if (g.number == OPSET_VERSION)
            PM_TRY(pm_onnx_int(&opset, &g, &d.version));
    }
    PM_TRY(more);
    if (!plain_domain(d.name)[0]) {
        m->opset = d.version;
        return PM_OK;
    }
    m->domains = pm_realloc(m->domains, (m->domain_count + 1) * sizeof *m->domains);
    m->domains[m->domain_count++] = d;
out:
    return err;
}

static int read_function(const struct reading *r, const struct pm_wire *w,
                         const struct pm_wire_field *f)
{
    int err = PM_OK, more;
    struct pm_onnx_model *m = r->m;
    const char *name = "", *domain = "";
    struct pm_wire function;
    struct pm_wire_field g;

    PM_TRY(pm_wire_is(w, f, PM_WIRE_BYTES));
    function = pm_wire_inside(w, f);
    while ((more = pm_wire_next(&function, &g)) > 0)
        if (g.number == FUNCTION_NAME || g.number == FUNCTION_DOMAIN)
            PM_TRY(copy_text(r, &function, &g, g.number == FUNCTION_NAME ? &name : &domain));
    PM_TRY(more);
    m->functions = pm_realloc((void *)m->functions, (m->function_count + 1) * sizeof *m->functions);
    m->functions[m->function_count++] = pm_arena_printf(m->arena, "%s.%s", domain, name);
out:
    return err;
}

static int model_field(struct reading *r, const struct pm_wire *w, const struct pm_wire_field *f)
{
    int err = PM_OK;
    const char *key, *value;

    switch (f->number) {
    case MODEL_IR_VERSION:
        return pm_onnx_int(w, f, &r->m->ir_version);
    case MODEL_PRODUCER:
        return copy_text(r, w, f, &r->m->producer);
    case MODEL_DOC:
        return copy_text(r, w, f, &r->m->doc);
    case MODEL_GRAPH:
        return read_graph(r, w, f);
    case MODEL_OPSET:
        return read_opset(r, w, f);
    case MODEL_FUNCTION:
        return read_function(r, w, f);
    case MODEL_META:
        PM_TRY(pm_onnx_entry(w, f, r->m->arena, &key, &value));
        pm_onnx_add_meta(r->m, key, value);
        return PM_OK;
    default:
        return PM_OK;
    }
out:
    return err;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct pm_onnx_tensor *const *)a)->name,
                  (*(const struct pm_onnx_tensor *const *)b)->name);
}

static int sort_tensors(struct pm_onnx_model *m)
{
    const struct pm_onnx_tensor **list = pm_malloc(m->tensor_count * sizeof *list);

    for (size_t i = 0; i < m->tensor_count; i++)
        list[i] = &m->tensors[i];
    m->own->sorted = list;
    m->own->sorted_count = m->tensor_count;
    if (m->tensor_count)
        qsort(list, m->tensor_count, sizeof *list, by_name);
    for (size_t i = 1; i < m->tensor_count; i++)
        if (strcmp(list[i - 1]->name, list[i]->name) == 0)
            return pm_fail(PM_EDATA, "%s: two initializers are named '%.200s'", m->path,
                           list[i]->name);
    return PM_OK;
}

/* Before IR version 4 initializers were among the inputs. */
static void drop_given_inputs(struct pm_onnx_model *m)
{
    size_t left = 0;

    for (size_t i = 0; i < m->input_count; i++)
        if (!pm_onnx_tensor_find(m, m->inputs[i].name))
            m->inputs[left++] = m->inputs[i];
    m->input_count = left;
}

/* The model's file is open. */
static int read_model(struct pm_onnx_model *m, const char *folder)
{
    int err = PM_OK, more;
    struct reading r = { .m = m, .tensors = { .arena = m->arena, .folder = folder,
                                               .beside = &m->own->beside } };
    struct pm_wire w = pm_wire_all(&m->own->file);
    struct pm_wire_field f;

    while ((more = pm_wire_next(&w, &f)) > 0)
        PM_TRY(model_field(&r, &w, &f));
    PM_TRY(more);
    if (!r.has_graph || m->ir_version < 1)
        PM_TRY(pm_fail(PM_EDATA, "%s: not an ONNX model, or cut short: it has no %s", m->path,
                       r.has_graph ? "IR version" : "graph"));
    if (m->opset < 1 && m->ir_version >= 3)
        PM_TRY(pm_fail(PM_EDATA, "%s: the model has no opset version, or is cut short", m->path));
    if (m->opset < 1) /* files of the first IR versions have no opset */
        m->opset = 1;
    PM_TRY(sort_tensors(m));
    drop_given_inputs(m);
out:
    return err;
}

static struct pm_onnx_model *prepare(const char *path)
{
    struct pm_onnx_model *m = pm_onnx_new(path);

    m->own = pm_calloc(1, sizeof *m->own);
    m->own->file.path = m->path;
    m->own->file.fd = -1;
    return m;
}

/* "a/b" of "a/b/c"; "." of "c". */
static const char *folder_of(struct pm_arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');

    return !slash          ? "."
           : slash == path ? "/"
                           : pm_arena_printf(a, "%.*s", (int)(slash - path), path);
}

int pm_onnx_read(const char *path, struct pm_onnx_model **out)
{
    int err = PM_OK;
    struct pm_onnx_model *m = prepare(path);

    PM_TRY(pm_wire_open(&m->own->file, m->path));
    PM_TRY(read_model(m, folder_of(m->arena, path)));
    *out = m, m = NULL;
out:
    pm_onnx_close(&m);
    return err;
}

int pm_onnx_read_memory(const char *name, const void *data, size_t size, struct pm_onnx_model **out)
{
    int err = PM_OK;
    struct pm_onnx_model *m = prepare(name);

    m->own->file.data = data;
    m->own->file.size = size;
    PM_TRY(read_model(m, NULL));
    *out = m, m = NULL;
out:
    pm_onnx_close(&m);
    return err;
}

int pm_onnx_read_tensor(const char *path, struct pm_arena *a, struct pm_onnx_tensor *out)
{
    int err = PM_OK;
    struct pm_onnx_reading r = { .arena = a, .folder = folder_of(a, path), .whole = true };
    struct pm_wire_file file = { .fd = -1 };

    PM_TRY(pm_wire_open(&file, path));
    PM_TRY(pm_onnx_parse_tensor(&r, pm_wire_all(&file), out));
out:
    pm_wire_close(&file);
    return err;
}
