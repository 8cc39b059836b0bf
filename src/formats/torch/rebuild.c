/* The meaning of globals in PyTorch pickles: storages, element types, and the results of PyTorch's
 * own constructors. An unknown class gives an object that has only a name. Globals that exist only
 * to run code are refused by name. */
#include "formats/torch/torch.h"

#include <string.h>

/* ---- element types --------------------------------------------------------------------- */

static const struct pm_torch_type types[] = {
    { "float64", "DoubleStorage", PM_DTYPE_F64, 8 },
    { "float32", "FloatStorage", PM_DTYPE_F32, 4 },
    { "float16", "HalfStorage", PM_DTYPE_F16, 2 },
    { "bfloat16", "BFloat16Storage", PM_DTYPE_BF16, 2 },
    { "int64", "LongStorage", PM_DTYPE_I64, 8 },
    { "int32", "IntStorage", PM_DTYPE_I32, 4 },
    { "int16", "ShortStorage", PM_DTYPE_I16, 2 },
    { "int8", "CharStorage", PM_DTYPE_I8, 1 },
    { "uint8", "ByteStorage", PM_DTYPE_U8, 1 },
    { "uint8", "UntypedStorage", PM_DTYPE_U8, 1 },
    { "uint8", "_UntypedStorage", PM_DTYPE_U8, 1 },
    { "bool", "BoolStorage", PM_DTYPE_BOOL, 1 },
    { "uint16", NULL, PM_DTYPE_U16, 2 },
    { "uint32", NULL, PM_DTYPE_U32, 4 },
    { "uint64", NULL, PM_DTYPE_U64, 8 },
    { "complex32", NULL, PM_DTYPE_OTHER, 4 },
    { "complex64", "ComplexFloatStorage", PM_DTYPE_OTHER, 8 },
    { "complex128", "ComplexDoubleStorage", PM_DTYPE_OTHER, 16 },
    { "qint8", "QInt8Storage", PM_DTYPE_OTHER, 1 },
    { "quint8", "QUInt8Storage", PM_DTYPE_OTHER, 1 },
    { "qint32", "QInt32Storage", PM_DTYPE_OTHER, 4 },
    { "quint4x2", "QUInt4x2Storage", PM_DTYPE_OTHER, 0 },
    { "quint2x4", "QUInt2x4Storage", PM_DTYPE_OTHER, 0 },
    { "float8_e4m3fn", NULL, PM_DTYPE_OTHER, 1 },
    { "float8_e5m2", NULL, PM_DTYPE_OTHER, 1 },
    { "float8_e4m3fnuz", NULL, PM_DTYPE_OTHER, 1 },
    { "float8_e5m2fnuz", NULL, PM_DTYPE_OTHER, 1 },
    { "float8_e8m0fnu", NULL, PM_DTYPE_OTHER, 1 },
};
/* Tensors without readable bytes: sparse, on the meta device, or of a type that is not listed
 * here. */
static const struct pm_torch_type no_type = { "other", NULL, PM_DTYPE_OTHER, 0 };
/* Complex numbers stored as their conjugates, numbers stored with the other sign. */
static const struct pm_torch_type negated = { "negated", NULL, PM_DTYPE_OTHER, 0 };

/* "torch.FloatStorage", "torch.cuda.FloatStorage", "torch.storage.UntypedStorage". */
static const struct pm_torch_type *storage_type(const struct pm_torch_value *v)
{
    if (!v || v->kind != PM_TORCH_GLOBAL || strncmp(v->text, "torch.", 6) != 0)
        return NULL;
    const char *name = strrchr(v->text, '.') + 1;
    for (size_t i = 0; i < PM_COUNT(types); i++)
        if (types[i].storage && strcmp(types[i].storage, name) == 0)
            return &types[i];
    return NULL;
}

/* "torch.float32"; no_type if the list has no such type. */
static const struct pm_torch_type *number_type(const struct pm_torch_value *v)
{
    if (v && v->kind == PM_TORCH_GLOBAL && strncmp(v->text, "torch.", 6) == 0)
        for (size_t i = 0; i < PM_COUNT(types); i++)
            if (strcmp(types[i].name, v->text + 6) == 0)
                return &types[i];
    return &no_type;
}

/* ---- globals --------------------------------------------------------------------------- */

int pm_torch_global(const struct pm_torch_pickle *p, const struct pm_torch_value *name)
{
    static const char *const modules[] = {
        "os", "posix", "nt", "sys", "subprocess", "pty", "runpy", "shutil", "socket",
        "importlib", "ctypes", "commands", "popen2", "code", "codeop", "marshal", "pickle",
        "_pickle", "cPickle", "dill", "cloudpickle", "webbrowser", "urllib", "requests", "pip",
        "pdb", "bdb", "timeit", "builtins.eval", "builtins.exec", "builtins.compile",
        "builtins.__import__", "builtins.open", "builtins.input", "builtins.breakpoint",
        "__builtin__.eval", "__builtin__.execfile", "__builtin__.compile",
        "__builtin__.__import__", "__builtin__.open", "__builtin__.file", "__builtin__.apply",
        "__builtin__.input", "__builtin__.raw_input", "torch.hub",
        "torch.storage._load_from_bytes",
    };

    for (size_t i = 0; i < PM_COUNT(modules); i++) {
        size_t n = strlen(modules[i]);
        if (strncmp(name->text, modules[i], n) == 0 && (name->text[n] == '.' || !name->text[n]))
            return pm_torch_pickle_bad(p, "it names '%.200s', which would run code; refused",
                                       name->text);
    }
    return PM_OK;
}

/* What a known global makes. */
enum making { MAKES_OBJECT, MAKES_DICT, MAKES_SET, MAKES_FIRST, MAKES_VIEW, MAKES_TYPED_VIEW,
              MAKES_SUBCLASS, MAKES_SPARSE, MAKES_META, MAKES_WRAPPER };

static enum making making_of(const char *name)
{
    static const struct { const char *name; enum making making; } known[] = {
        { "collections.OrderedDict", MAKES_DICT },
        { "collections.defaultdict", MAKES_DICT },
        { "collections.Counter", MAKES_DICT },
        { "builtins.dict", MAKES_DICT },
        { "__builtin__.dict", MAKES_DICT },
        { "builtins.set", MAKES_SET },
        { "__builtin__.set", MAKES_SET },
        { "builtins.frozenset", MAKES_SET },
        { "__builtin__.frozenset", MAKES_SET },
        { "builtins.list", MAKES_FIRST },
        { "builtins.tuple", MAKES_FIRST },
        { "torch.Size", MAKES_FIRST },
        { "torch._utils._rebuild_tensor", MAKES_VIEW },
        { "torch._utils._rebuild_tensor_v2", MAKES_VIEW },
        { "torch._utils._rebuild_qtensor", MAKES_VIEW },
        { "torch._utils._rebuild_tensor_v3", MAKES_TYPED_VIEW },
        { "torch._utils._rebuild_parameter", MAKES_FIRST },
        { "torch._utils._rebuild_parameter_with_state", MAKES_FIRST },
        { "torch._utils._rebuild_device_tensor_from_cpu_tensor", MAKES_FIRST },
        { "torch.nn.parameter.Parameter", MAKES_FIRST },
        { "torch.nn.parameter.Buffer", MAKES_FIRST },
        { "torch.autograd.variable.Variable", MAKES_FIRST },
        { "torch._tensor._rebuild_from_type", MAKES_SUBCLASS },
        { "torch._tensor._rebuild_from_type_v2", MAKES_SUBCLASS },
        { "torch._utils._rebuild_sparse_tensor", MAKES_SPARSE },
        { "torch._utils._rebuild_meta_tensor_no_storage", MAKES_META },
        { "torch._utils._rebuild_wrapper_subclass", MAKES_WRAPPER },
        { "torch.jit._pickle.build_intlist", MAKES_FIRST },
        { "torch.jit._pickle.build_doublelist", MAKES_FIRST },
        { "torch.jit._pickle.build_boollist", MAKES_FIRST },
        { "torch.jit._pickle.build_tensorlist", MAKES_FIRST },
        { "torch.jit._pickle.restore_type_tag", MAKES_FIRST },
    };

    for (size_t i = 0; i < PM_COUNT(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].making;
    return MAKES_OBJECT;
}

/* ---- tensors --------------------------------------------------------------------------- */

static bool is_count(const struct pm_torch_value *v)
{
    return v && v->kind == PM_TORCH_INT && v->integer >= 0;
}

/* Stores a tuple of integers in dims; false if it is not one. Ignores integers after the eighth. */
static bool read_dims(const struct pm_torch_value *v, int64_t dims[PM_FILE_MAX_RANK],
                      uint32_t *rank)
{
    uint32_t n = 0;

    if (!v || (v->kind != PM_TORCH_TUPLE && v->kind != PM_TORCH_LIST))
        return false;
    for (const struct pm_torch_cell *c = v->cells; c; c = c->next, n++) {
        if (c->value->kind != PM_TORCH_INT)
            return false;
        if (n < PM_FILE_MAX_RANK)
            dims[n] = c->value->integer;
    }
    *rank = n;
    return true;
}

static bool is_contiguous(const struct pm_torch_view *v)
{
    int64_t step = 1;

    for (int i = v->rank; i-- > 0;) {
        if (v->dim[i] == 0)
            return true;
        if (v->dim[i] != 1 && v->stride[i] != step)
            return false;
        if (__builtin_mul_overflow(step, v->dim[i], &step))
            return false;
    }
    return true;
}

/* size, and, when the tensor has bytes, stride. */
static bool read_shape(struct pm_torch_view *v, const struct pm_torch_value *size,
                       const struct pm_torch_value *stride)
{
    uint32_t rank, strides = 0;

    if (!read_dims(size, v->dim, &rank) ||
        (v->storage && (!read_dims(stride, v->stride, &strides) || strides != rank)))
        return false;
    if (rank > PM_FILE_MAX_RANK) {
        v->wrong = "it has more than 8 dimensions";
        return true;
    }
    v->rank = (int)rank;
    for (int i = 0; i < v->rank; i++)
        if (v->dim[i] < 0 || v->stride[i] < 0)
            v->wrong = "a size or a stride of it is below zero";
    v->contiguous = !v->wrong && is_contiguous(v);
    return true;
}

static struct pm_torch_value *view_value(struct pm_torch_pickle *p)
{
    struct pm_torch_value *v = pm_torch_value(p, PM_TORCH_TENSOR);

    v->view = pm_arena_alloc(p->views, sizeof *v->view);
    v->view->type = &no_type;
    return v;
}

/* A flag in the metadata of _rebuild_tensor_v2: the stored numbers are conjugated or negated. */
static bool is_negated(const struct pm_torch_value *notes)
{
    static const char *const bits[] = { "conj", "neg" };

    for (size_t i = 0; i < PM_COUNT(bits); i++) {
        const struct pm_torch_value *v = pm_torch_get(notes, bits[i]);
        if (v && v->kind == PM_TORCH_BOOL && v->yes)
            return true;
    }
    return false;
}

/* (storage, first, size, stride, requires_grad, hooks[, type][, notes]). */
static int make_view(struct pm_torch_pickle *p, const struct pm_torch_value *args, bool typed,
                     struct pm_torch_value **out)
{
    const struct pm_torch_value *storage = pm_torch_item(args, 0), *first = pm_torch_item(args, 1);
    struct pm_torch_value *made = view_value(p);
    struct pm_torch_view *v = made->view;

    if (!storage || storage->kind != PM_TORCH_STORAGE || !is_count(first))
        return pm_torch_pickle_bad(p, "a tensor without a storage or with a bad offset");
    v->storage = storage->storage;
    v->first = (uint64_t)first->integer;
    v->type = typed ? number_type(pm_torch_item(args, 6)) : v->storage->type;
    if (is_negated(pm_torch_item(args, typed ? 7 : 6)))
        v->type = &negated;
    if (!read_shape(v, pm_torch_item(args, 2), pm_torch_item(args, 3)))
        return pm_torch_pickle_bad(p, "a tensor's size and stride are not tuples of one length");
    *out = made;
    return PM_OK;
}

/* A tensor of which only the shape is known. */
static int make_shape(struct pm_torch_pickle *p, const struct pm_torch_value *size,
                      struct pm_torch_value **out)
{
    struct pm_torch_value *made = view_value(p);

    if (!read_shape(made->view, size, NULL))
        return pm_torch_pickle_bad(p, "a tensor's size is not a tuple");
    *out = made;
    return PM_OK;
}

/* (layout, (indices, [more indices,] values, size, ...)): its size is the first tuple. */
static int make_sparse(struct pm_torch_pickle *p, const struct pm_torch_value *args,
                       struct pm_torch_value **out)
{
    const struct pm_torch_value *data = pm_torch_item(args, 1), *size = NULL;

    for (uint32_t i = 0; i < 4 && !size; i++) {
        const struct pm_torch_value *v = pm_torch_item(data, i);
        if (v && (v->kind == PM_TORCH_TUPLE || v->kind == PM_TORCH_LIST))
            size = v;
    }
    return make_shape(p, size, out);
}

/* ---- calls ----------------------------------------------------------------------------- */

/* An object of an unknown class. Its effect on a tensor argument is unknown, too. */
static void make_object(struct pm_torch_pickle *p, const struct pm_torch_value *f,
                        const struct pm_torch_value *args, struct pm_torch_value **out)
{
    *out = pm_torch_value(p, PM_TORCH_OBJECT);
    (*out)->of = f;
    for (const struct pm_torch_cell *c = args->cells; c; c = c->next)
        if (c->value->kind == PM_TORCH_TENSOR && !p->unknown)
            p->unknown = f->kind == PM_TORCH_GLOBAL ? f->text : "a computed function";
}

/* dict(), dict(dict), dict([(key, value), ...]); a defaultdict's first argument is its default. */
static int make_dict(struct pm_torch_pickle *p, const struct pm_torch_value *args,
                     struct pm_torch_value **out)
{
    struct pm_torch_value *made = pm_torch_value(p, PM_TORCH_DICT);
    const struct pm_torch_value *from = NULL;

    for (const struct pm_torch_cell *c = args->cells; c; c = c->next)
        if (c->value->kind == PM_TORCH_DICT || c->value->kind == PM_TORCH_LIST)
            from = c->value;
    for (const struct pm_torch_cell *c = from ? from->cells : NULL; c; c = c->next) {
        bool pair = from->kind == PM_TORCH_LIST;
        struct pm_torch_value *key = pair ? pm_torch_item(c->value, 0) : c->key;
        struct pm_torch_value *value = pair ? pm_torch_item(c->value, 1) : c->value;
        if (!key || !value)
            return pm_torch_pickle_bad(p, "a dict is made of values that are not pairs");
        pm_torch_append(p, made, key, value);
    }
    *out = made;
    return PM_OK;
}

static int make_set(struct pm_torch_pickle *p, const struct pm_torch_value *args,
                    struct pm_torch_value **out)
{
    struct pm_torch_value *made = pm_torch_value(p, PM_TORCH_SET);
    const struct pm_torch_value *from = pm_torch_item(args, 0);

    if (from && (from->kind == PM_TORCH_LIST || from->kind == PM_TORCH_TUPLE))
        for (const struct pm_torch_cell *c = from->cells; c; c = c->next)
            pm_torch_append(p, made, NULL, c->value);
    *out = made;
    return PM_OK;
}

static int make(struct pm_torch_pickle *p, enum making making, const struct pm_torch_value *f,
                struct pm_torch_value *args, struct pm_torch_value **out)
{
    switch (making) {
    case MAKES_DICT: return make_dict(p, args, out);
    case MAKES_SET: return make_set(p, args, out);
    case MAKES_VIEW: case MAKES_TYPED_VIEW:
        return make_view(p, args, making == MAKES_TYPED_VIEW, out);
    case MAKES_SPARSE: return make_sparse(p, args, out);
    case MAKES_META: return make_shape(p, pm_torch_item(args, 1), out);
    case MAKES_WRAPPER: return make_shape(p, pm_torch_item(args, 2), out);
    case MAKES_FIRST:
        *out = pm_torch_item(args, 0);
        if (*out)
            return PM_OK;
        break;
    default: break;
    }
    make_object(p, f, args, out);
    return PM_OK;
}

int pm_torch_call(struct pm_torch_pickle *p, const struct pm_torch_value *f,
                  struct pm_torch_value *args, struct pm_torch_value **out)
{
    enum making making = f->kind == PM_TORCH_GLOBAL ? making_of(f->text) : MAKES_OBJECT;

    if (making == MAKES_SUBCLASS) { /* (function, class, its arguments, state) */
        const struct pm_torch_value *inner = pm_torch_item(args, 0);
        struct pm_torch_value *inner_args = pm_torch_item(args, 2);
        if (inner && inner->kind == PM_TORCH_GLOBAL && inner_args &&
            inner_args->kind == PM_TORCH_TUPLE) {
            f = inner;
            args = inner_args;
            making = making_of(f->text);
        }
    }
    return make(p, making, f, args, out);
}

/* ---- persistent ids -------------------------------------------------------------------- */

/* The file's key of a storage: a text, or a number in some old files. */
static const char *key_text(struct pm_torch_pickle *p, const struct pm_torch_value *v)
{
    if (v && v->kind == PM_TORCH_INT)
        return pm_arena_printf(p->views, "%lld", (long long)v->integer);
    if (v && v->kind == PM_TORCH_STRING && v->text && strlen(v->text) == v->length)
        return pm_arena_strdup(p->views, v->text);
    return NULL;
}

/* ("storage", type, key, device, count[, None or (key of the view, first, count)]). */
static int make_storage(struct pm_torch_pickle *p, const struct pm_torch_value *id,
                        struct pm_torch_value **out)
{
    const struct pm_torch_value *kind = pm_torch_item(id, 1), *count = pm_torch_item(id, 4);
    const struct pm_torch_value *part = pm_torch_item(id, 5);
    struct pm_torch_storage *s = pm_arena_alloc(p->views, sizeof *s);

    s->key = key_text(p, pm_torch_item(id, 2));
    s->type = storage_type(kind);
    if (!s->type)
        return pm_torch_pickle_bad(p, "a storage of unknown type '%.200s'",
                                   kind && kind->kind == PM_TORCH_GLOBAL ? kind->text : "?");
    if (!s->key || !is_count(count))
        return pm_torch_pickle_bad(p, "a storage without key or count");
    s->count = s->view = (uint64_t)count->integer;
    if (part && part->kind != PM_TORCH_NONE) {
        const struct pm_torch_value *first = pm_torch_item(part, 1), *n = pm_torch_item(part, 2);
        if (!is_count(first) || !is_count(n) || (uint64_t)first->integer > s->count ||
            (uint64_t)n->integer > s->count - (uint64_t)first->integer)
            return pm_torch_pickle_bad(p, "a view that is outside of its storage");
        s->first = (uint64_t)first->integer;
        s->view = (uint64_t)n->integer;
    }
    s->next = p->storages;
    p->storages = s;
    *out = pm_torch_value(p, PM_TORCH_STORAGE);
    (*out)->storage = s;
    return PM_OK;
}

int pm_torch_persistent(struct pm_torch_pickle *p, const struct pm_torch_value *id,
                        struct pm_torch_value **out)
{
    const struct pm_torch_value *kind = pm_torch_item(id, 0);

    if (kind && kind->kind == PM_TORCH_STRING && kind->text) {
        if (strcmp(kind->text, "storage") == 0)
            return make_storage(p, id, out);
        *out = pm_torch_item(id, 1);
        if (strcmp(kind->text, "module") == 0 && *out)
            return PM_OK;
    }
    return pm_torch_pickle_bad(p, "a persistent id that is not a storage");
}
