/* onnx: the model in memory: its lists, looking up attributes and tensors, and building a model. */
#include "formats/onnx/onnx_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct pm_onnx_model *pm_onnx_new(const char *path)
{
    struct pm_onnx_model *m = pm_calloc(1, sizeof *m);

    m->arena = pm_arena_create();
    m->path = pm_arena_strdup(m->arena, path);
    m->producer = m->graph_name = m->doc = "";
    return m;
}

static void close_bodies(struct pm_onnx_node *n)
{
    for (int i = 0; i < n->attr_count; i++)
        pm_onnx_close(&n->attrs[i].g);
}

void pm_onnx_close(struct pm_onnx_model **m)
{
    if (!*m)
        return;
    for (size_t i = 0; i < (*m)->node_count; i++)
        close_bodies(&(*m)->nodes[i]);
    if ((*m)->own) {
        pm_wire_close(&(*m)->own->file);
        for (struct pm_onnx_beside *b = (*m)->own->beside; b; b = b->next)
            pm_wire_close(&b->file);
        pm_free((void *)(*m)->own->sorted);
        pm_free((*m)->own);
    }
    pm_free((*m)->nodes);
    pm_free((*m)->tensors);
    pm_free((*m)->inputs);
    pm_free((*m)->outputs);
    pm_free((*m)->domains);
    pm_free((void *)(*m)->functions);
    pm_free((void *)(*m)->meta);
    pm_arena_destroy(&(*m)->arena);
    pm_free(*m);
    *m = NULL;
}

struct pm_onnx_node *pm_onnx_new_node(struct pm_onnx_model *m)
{
    PM_GROW(m->nodes, m->node_count, m->node_capacity);
    m->nodes[m->node_count] = (struct pm_onnx_node){ .op = "", .domain = "", .name = "" };
    return &m->nodes[m->node_count++];
}

struct pm_onnx_tensor *pm_onnx_new_tensor(struct pm_onnx_model *m)
{
    PM_GROW(m->tensors, m->tensor_count, m->tensor_capacity);
    m->tensors[m->tensor_count] = (struct pm_onnx_tensor){ .name = "" };
    return &m->tensors[m->tensor_count++];
}

struct pm_onnx_value *pm_onnx_new_value(struct pm_onnx_value **list, size_t *count)
{
    *list = pm_realloc(*list, (*count + 1) * sizeof **list);
    (*list)[*count] = (struct pm_onnx_value){ .name = "", .type = PM_DTYPE_OTHER, .rank = -1 };
    return &(*list)[(*count)++];
}

/* ---- looking up ------------------------------------------------------------------------ */

const struct pm_onnx_attr *pm_onnx_attr(const struct pm_onnx_node *n, const char *name)
{
    for (int i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    return NULL;
}

int64_t pm_onnx_attr_int(const struct pm_onnx_node *n, const char *name, int64_t otherwise)
{
    const struct pm_onnx_attr *a = pm_onnx_attr(n, name);

    return a && a->type == PM_ONNX_INT ? a->i : otherwise;
}

float pm_onnx_attr_float(const struct pm_onnx_node *n, const char *name, float otherwise)
{
    const struct pm_onnx_attr *a = pm_onnx_attr(n, name);

    return a && a->type == PM_ONNX_FLOAT ? a->f : otherwise;
}

const char *pm_onnx_attr_text(const struct pm_onnx_node *n, const char *name, const char *otherwise)
{
    const struct pm_onnx_attr *a = pm_onnx_attr(n, name);

    return a && a->type == PM_ONNX_STRING ? a->s : otherwise;
}

static int by_name(const void *key, const void *item)
{
    return strcmp(key, (*(const struct pm_onnx_tensor *const *)item)->name);
}

const struct pm_onnx_tensor *pm_onnx_tensor_find(const struct pm_onnx_model *m, const char *name)
{
    if (m->own && m->own->sorted_count == m->tensor_count) {
        const struct pm_onnx_tensor **hit =
            m->tensor_count
                ? bsearch(name, m->own->sorted, m->tensor_count, sizeof *m->own->sorted, by_name)
                : NULL;
        return hit ? *hit : NULL;
    }
    for (size_t i = 0; i < m->tensor_count; i++)
        if (strcmp(m->tensors[i].name, name) == 0)
            return &m->tensors[i];
    return NULL;
}

const char *pm_onnx_meta(const struct pm_onnx_model *m, const char *key)
{
    for (size_t i = 0; i < m->meta_count; i++)
        if (strcmp(m->meta[2 * i], key) == 0)
            return m->meta[2 * i + 1];
    return NULL;
}

/* ---- making ---------------------------------------------------------------------------- */

struct pm_onnx_model *pm_onnx_make(const char *graph_name)
{
    struct pm_onnx_model *m = pm_onnx_new(graph_name);

    m->graph_name = m->path;
    m->ir_version = 8;
    m->opset = 17;
    m->producer = "pumice";
    return m;
}

static const char **copy_names(struct pm_onnx_model *m, const char *const *names, int *count)
{
    const char **list;

    *count = 0;
    while (names && names[*count])
        ++*count;
    list = pm_arena_alloc(m->arena, (size_t)*count * sizeof *list);
    for (int i = 0; i < *count; i++)
        list[i] = pm_arena_strdup(m->arena, names[i]);
    return list;
}

struct pm_onnx_node *pm_onnx_add(struct pm_onnx_model *m, const char *op, const char *name,
                                 const char *const *in, const char *const *out)
{
    struct pm_onnx_node *n = pm_onnx_new_node(m);

    n->op = pm_arena_strdup(m->arena, op);
    n->name = pm_arena_strdup(m->arena, name);
    n->in = copy_names(m, in, &n->in_count);
    n->out = copy_names(m, out, &n->out_count);
    return n;
}

/* The capacity is 4, 8, 16, ...; the list is full when its count equals one of these. */
static struct pm_onnx_attr *add_attr(struct pm_onnx_model *m, struct pm_onnx_node *n,
                                     const char *name, enum pm_onnx_type type)
{
    const int count = n->attr_count;

    assert(!pm_onnx_attr(n, name));
    if (count == 0 || (count >= 4 && (count & (count - 1)) == 0)) {
        struct pm_onnx_attr *list =
            pm_arena_alloc(m->arena, (size_t)(count ? 2 * count : 4) * sizeof *list);
        if (count)
            memcpy(list, n->attrs, (size_t)count * sizeof *list);
        n->attrs = list;
    }
    n->attrs[count] =
        (struct pm_onnx_attr){ .name = pm_arena_strdup(m->arena, name), .type = type };
    return &n->attrs[n->attr_count++];
}

void pm_onnx_set_int(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, int64_t v)
{
    add_attr(m, n, name, PM_ONNX_INT)->i = v;
}

void pm_onnx_set_float(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, float v)
{
    add_attr(m, n, name, PM_ONNX_FLOAT)->f = v;
}

void pm_onnx_set_text(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name,
                      const char *v)
{
    add_attr(m, n, name, PM_ONNX_STRING)->s = pm_arena_strdup(m->arena, v);
}

void pm_onnx_set_ints(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name, int count,
                      const int64_t *v)
{
    struct pm_onnx_attr *a = add_attr(m, n, name, PM_ONNX_INTS);

    a->count = count;
    a->ints = pm_arena_copy(m->arena, v, (size_t)count * sizeof *v);
}

void pm_onnx_set_graph(struct pm_onnx_model *m, struct pm_onnx_node *n, const char *name,
                       struct pm_onnx_model *body)
{
    add_attr(m, n, name, PM_ONNX_GRAPH)->g = body;
}

struct pm_onnx_tensor *pm_onnx_add_tensor(struct pm_onnx_model *m, const char *name,
                                          enum pm_dtype type, int rank, const int64_t *dim,
                                          const void *data)
{
    struct pm_onnx_tensor *t = pm_onnx_new_tensor(m);

    assert(rank >= 0 && rank <= PM_FILE_MAX_RANK && type != PM_DTYPE_OTHER);
    t->name = pm_arena_strdup(m->arena, name);
    t->type = type;
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->dim[i] = dim[i];
    t->data = data;
    if (!pm_onnx_measure(t))
        assert(!"a shape that is too large for memory");
    return t;
}

static struct pm_onnx_value *add_value(struct pm_onnx_model *m, struct pm_onnx_value *v,
                                       const char *name, enum pm_dtype type, int rank,
                                       const int64_t *dim)
{
    assert(rank >= 0 && rank <= PM_FILE_MAX_RANK);
    v->name = pm_arena_strdup(m->arena, name);
    v->type = type;
    v->rank = rank;
    for (int i = 0; i < rank; i++)
        v->dim[i] = dim[i];
    return v;
}

struct pm_onnx_value *pm_onnx_add_input(struct pm_onnx_model *m, const char *name,
                                        enum pm_dtype type, int rank, const int64_t *dim)
{
    return add_value(m, pm_onnx_new_value(&m->inputs, &m->input_count), name, type, rank, dim);
}

struct pm_onnx_value *pm_onnx_add_output(struct pm_onnx_model *m, const char *name,
                                         enum pm_dtype type, int rank, const int64_t *dim)
{
    return add_value(m, pm_onnx_new_value(&m->outputs, &m->output_count), name, type, rank, dim);
}

void pm_onnx_add_meta(struct pm_onnx_model *m, const char *key, const char *value)
{
    m->meta = pm_realloc((void *)m->meta, 2 * (m->meta_count + 1) * sizeof *m->meta);
    m->meta[2 * m->meta_count] = pm_arena_strdup(m->arena, key);
    m->meta[2 * m->meta_count + 1] = pm_arena_strdup(m->arena, value);
    m->meta_count++;
}
