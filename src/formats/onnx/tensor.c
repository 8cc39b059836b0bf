/* onnx: tensors. A TensorProto stores its elements in raw_data, in a list of their type (a packed
 * list of fixed-size numbers has the same bytes), or in a range of another file. Long data are not
 * copied: they are read from the file on request. */
#include "formats/onnx/onnx_private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "formats/tensor_format.h"

/* By TensorProto.DataType: our type, the list field that may hold the elements, and their
 * encoding. */
static const struct {
    enum pm_dtype type;
    uint32_t list;
    enum pm_wire_type in;
} rows[] = {
    [0] = { PM_DTYPE_OTHER },
    [1] = { PM_DTYPE_F32, TENSOR_FLOATS, PM_WIRE_FIXED32 },
    [2] = { PM_DTYPE_U8, TENSOR_INT32S, PM_WIRE_VARINT },
    [3] = { PM_DTYPE_I8, TENSOR_INT32S, PM_WIRE_VARINT },
    [4] = { PM_DTYPE_U16, TENSOR_INT32S, PM_WIRE_VARINT },
    [5] = { PM_DTYPE_I16, TENSOR_INT32S, PM_WIRE_VARINT },
    [6] = { PM_DTYPE_I32, TENSOR_INT32S, PM_WIRE_VARINT },
    [7] = { PM_DTYPE_I64, TENSOR_INT64S, PM_WIRE_VARINT },
    [8] = { PM_DTYPE_OTHER }, /* strings */
    [9] = { PM_DTYPE_BOOL, TENSOR_INT32S, PM_WIRE_VARINT },
    [10] = { PM_DTYPE_F16, TENSOR_INT32S, PM_WIRE_VARINT },
    [11] = { PM_DTYPE_F64, TENSOR_DOUBLES, PM_WIRE_FIXED64 },
    [12] = { PM_DTYPE_U32, TENSOR_UINT64S, PM_WIRE_VARINT },
    [13] = { PM_DTYPE_U64, TENSOR_UINT64S, PM_WIRE_VARINT },
    [14] = { PM_DTYPE_OTHER }, /* complex */
    [15] = { PM_DTYPE_OTHER },
    [16] = { PM_DTYPE_BF16, TENSOR_INT32S, PM_WIRE_VARINT },
};

enum pm_dtype pm_onnx_type_of(uint64_t number)
{
    return number < PM_COUNT(rows) ? rows[number].type : PM_DTYPE_OTHER;
}

int pm_onnx_type_number(enum pm_dtype type)
{
    for (int i = 0; i < (int)PM_COUNT(rows); i++)
        if (rows[i].type == type)
            return i;
    return 0;
}

/* Location of a long tensor's bytes. */
struct place {
    struct pm_wire_file *file; /* open with the model; NULL: the one at path */
    const char *path;
    uint64_t offset;
};

static int fill_from_place(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst)
{
    int err = PM_OK;
    const struct place *p = t->fill_from;
    struct pm_wire_file beside = { .fd = -1 };

    if (p->file)
        return pm_wire_read(p->file, p->offset + begin, size, dst);
    PM_TRY(pm_wire_open(&beside, p->path));
    PM_TRY(pm_wire_read(&beside, p->offset + begin, size, dst));
out:
    pm_wire_close(&beside);
    return err;
}

/* ---- one TensorProto ------------------------------------------------------------------- */

struct parts {
    const struct pm_onnx_reading *r;
    struct pm_wire all; /* the message */
    struct pm_onnx_tensor *t;
    uint64_t type;
    struct pm_wire_field raw;
    bool has_raw, outside;
    const char *location;
    uint64_t offset, length;
    bool has_length;
};

static int bad(const struct parts *p, const char *what)
{
    return pm_fail(PM_EDATA, "%s: tensor '%.200s' at offset %llu: %s", p->all.file->path,
                   p->t->name, (unsigned long long)p->all.at, what);
}

int pm_onnx_int(const struct pm_wire *w, const struct pm_wire_field *f, int64_t *out)
{
    *out = (int64_t)f->value;
    return pm_wire_is(w, f, PM_WIRE_VARINT);
}

int pm_onnx_entry(const struct pm_wire *w, const struct pm_wire_field *f, struct pm_arena *a,
                  const char **key, const char **value)
{
    int err = PM_OK, more;
    struct pm_wire entry;
    struct pm_wire_field g;

    *key = *value = "";
    PM_TRY(pm_wire_is(w, f, PM_WIRE_BYTES));
    entry = pm_wire_inside(w, f);
    while ((more = pm_wire_next(&entry, &g)) > 0)
        if (g.number == ENTRY_KEY || g.number == ENTRY_VALUE)
            PM_TRY(pm_wire_text(&entry, &g, a, g.number == ENTRY_KEY ? key : value));
    PM_TRY(more);
out:
    return err;
}

static int add_dim(struct parts *p, uint64_t value)
{
    if (p->t->rank == PM_FILE_MAX_RANK)
        return bad(p, "more than 8 dimensions");
    if (value > INT64_MAX)
        return bad(p, "a dimension below 0");
    p->t->dim[p->t->rank++] = (int64_t)value;
    return PM_OK;
}

static int add_dims(struct parts *p, const struct pm_wire *w, const struct pm_wire_field *f)
{
    int err = PM_OK, more;
    uint64_t v;
    struct pm_wire list;

    if (f->type != PM_WIRE_VARINT) /* a single value has the encoding of a packed list of one */
        PM_TRY(pm_wire_is(w, f, PM_WIRE_BYTES));
    list = pm_wire_inside(w, f);
    while ((more = pm_wire_packed(&list, PM_WIRE_VARINT, &v)) > 0)
        PM_TRY(add_dim(p, v));
    PM_TRY(more);
out:
    return err;
}

static bool is_decimal(const char *s, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(s, &end, 10);
    return *s >= '0' && *s <= '9' && !*end && !errno && *out <= INT64_MAX;
}

static int add_external(struct parts *p, const struct pm_wire *w, const struct pm_wire_field *f)
{
    int err = PM_OK;
    const char *key, *value;

    PM_TRY(pm_onnx_entry(w, f, p->r->arena, &key, &value));
    if (strcmp(key, "location") == 0)
        p->location = value;
    else if (strcmp(key, "offset") == 0 && !is_decimal(value, &p->offset))
        PM_TRY(bad(p, "the offset of its external data is not a number"));
    else if (strcmp(key, "length") == 0) {
        p->has_length = true;
        if (!is_decimal(value, &p->length))
            PM_TRY(bad(p, "the length of its external data is not a number"));
    }
out:
    return err;
}

static int parse_field(struct parts *p, const struct pm_wire *w, const struct pm_wire_field *f)
{
    int err = PM_OK;

    switch (f->number) {
    case TENSOR_DIMS:
        return add_dims(p, w, f);
    case TENSOR_TYPE:
        p->type = f->value;
        return pm_wire_is(w, f, PM_WIRE_VARINT);
    case TENSOR_SEGMENT:
        return bad(p, "is a segment of a larger tensor, which Pumice cannot read");
    case TENSOR_NAME:
        return pm_wire_text(w, f, p->r->arena, &p->t->name);
    case TENSOR_RAW:
        p->raw = *f;
        p->has_raw = true;
        return pm_wire_is(w, f, PM_WIRE_BYTES);
    case TENSOR_EXTERNAL:
        return add_external(p, w, f);
    case TENSOR_LOCATION:
        p->outside = f->value != 0;
        if (f->value > 1)
            PM_TRY(bad(p, "data_location is neither DEFAULT nor EXTERNAL"));
        return pm_wire_is(w, f, PM_WIRE_VARINT);
    default:
        return PM_OK;
    }
out:
    return err;
}

bool pm_onnx_measure(struct pm_onnx_tensor *t)
{
    t->count = 1;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->count, (uint64_t)t->dim[i], &t->count))
            return false;
    return !__builtin_mul_overflow(t->count, (uint64_t)pm_dtype_size(t->type), &t->bytes) &&
           t->count <= INT64_MAX && t->bytes <= INT64_MAX;
}

static int take_place(const struct parts *p, struct pm_wire_file *file, const char *path,
                      uint64_t offset)
{
    int err = PM_OK;
    struct pm_onnx_tensor *t = p->t;
    struct place *place;

    if (file && file->data && !p->r->whole) {
        t->data = file->data + offset;
        return PM_OK;
    }
    place = pm_arena_alloc(p->r->arena, sizeof *place);
    *place = (struct place){ file, path, offset };
    t->fill_from = place;
    t->fill = fill_from_place;
    if (t->bytes <= PM_ONNX_SMALL || p->r->whole) {
        void *data = pm_arena_alloc(p->r->arena, (size_t)t->bytes);
        PM_TRY(fill_from_place(t, 0, (size_t)t->bytes, data));
        t->data = data;
        t->fill = NULL;
        t->fill_from = NULL;
    }
out:
    return err;
}

/* ---- external data --------------------------------------------------------------------- */

static bool leaves_folder(const char *location)
{
    if (location[0] == '/' || !location[0])
        return true;
    for (const char *s = location; s; s = strchr(s, '/')) {
        s += *s == '/';
        if (s[0] == '.' && s[1] == '.' && (s[2] == '/' || !s[2]))
            return true;
    }
    return strchr(location, '\\') != NULL;
}

/* Resolves links in the file's path (result in the arena) and checks that it lies in the folder. */
static int find_beside(const struct parts *p, const char **out)
{
    int err = PM_OK;
    char *folder = NULL, *file = NULL;
    const char *joined;
    size_t n;

    if (!p->location)
        PM_TRY(bad(p, "its data is external, but no location is given"));
    if (!p->r->folder)
        PM_TRY(bad(p, "its data is external, which a model in memory cannot have"));
    if (leaves_folder(p->location))
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: tensor '%.200s': external data '%.300s' is not inside the model's "
                       "folder",
                       p->all.file->path, p->t->name, p->location));
    joined = pm_arena_printf(p->r->arena, "%s/%s", p->r->folder, p->location);
    folder = realpath(p->r->folder, NULL);
    file = realpath(joined, NULL);
    if (!folder || !file)
        PM_TRY(pm_fail(PM_EDATA, "%s: tensor '%.200s': external data %.300s: %s", p->all.file->path,
                       p->t->name, joined, strerror(errno)));
    n = strlen(folder);
    if (n > 1 && (strncmp(file, folder, n) != 0 || file[n] != '/'))
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: tensor '%.200s': external data %.300s is a link out of the "
                       "model's folder; put the file itself there",
                       p->all.file->path, p->t->name, joined));
    *out = pm_arena_strdup(p->r->arena, file);
out:
    free(folder);
    free(file);
    return err;
}

/* Opens each file once. A model with very many files reopens its file for every read. */
static int open_beside(const struct parts *p, struct pm_wire_file *once, struct pm_wire_file **out)
{
    enum { MOST_OPEN = 64 };
    int err = PM_OK, open = 0;
    struct pm_onnx_beside **at = p->r->beside;
    const char *path = NULL;

    for (; at && *at; at = &(*at)->next, open++)
        if (p->location && strcmp((*at)->location, p->location) == 0) {
            *out = &(*at)->file;
            return PM_OK;
        }
    PM_TRY(find_beside(p, &path));
    *out = once;
    if (at && open < MOST_OPEN) {
        *at = pm_arena_alloc(p->r->arena, sizeof **at);
        (*at)->location = p->location;
        (*at)->file.fd = -1;
        *out = &(*at)->file;
    }
    PM_TRY(pm_wire_open(*out, path));
out:
    return err;
}

static int take_external(struct parts *p)
{
    int err = PM_OK;
    struct pm_wire_file once = { .fd = -1 }, *beside = NULL;

    PM_TRY(open_beside(p, &once, &beside));
    if (p->t->type == PM_DTYPE_OTHER)
        p->t->bytes = p->has_length ? p->length : 0;
    if (p->has_length && p->length != p->t->bytes)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: tensor '%.200s': %llu bytes of external data do not fit its shape "
                       "and type (%llu)",
                       p->all.file->path, p->t->name, (unsigned long long)p->length,
                       (unsigned long long)p->t->bytes));
    if (p->offset > beside->size || p->t->bytes > beside->size - p->offset)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: tensor '%.200s': its external data at offset %llu, %llu bytes long, "
                       "exceeds the %llu bytes of %s (cut short?)",
                       p->all.file->path, p->t->name, (unsigned long long)p->offset,
                       (unsigned long long)p->t->bytes, (unsigned long long)beside->size,
                       beside->path));
    p->t->beside = beside->path;
    PM_TRY(take_place(p, beside == &once ? NULL : beside, beside->path, p->offset));
out:
    pm_wire_close(&once);
    return err;
}

/* ---- lists of elements ----------------------------------------------------------------- */

/* Destination of the elements. */
struct elements {
    uint8_t *at;
    uint64_t left;
    size_t size;
};

static int add_element(const struct parts *p, struct elements *e, uint64_t v)
{
    if (e->left == 0)
        return bad(p, "more elements than its shape has");
    if (p->t->type == PM_DTYPE_BOOL)
        v = v != 0;
    memcpy(e->at, &v, e->size); /* little-endian: the low bytes */
    e->at += e->size;
    e->left--;
    return PM_OK;
}

/* Elements from every field of the list, packed or one by one. */
static int decode_list(struct parts *p, struct elements *e)
{
    int err = PM_OK, more, inner;
    struct pm_wire w = p->all, list;
    struct pm_wire_field f;
    uint64_t v;

    while ((more = pm_wire_next(&w, &f)) > 0) {
        if (f.number != rows[p->type].list)
            continue;
        if (f.type != rows[p->type].in)
            PM_TRY(pm_wire_is(&w, &f, PM_WIRE_BYTES));
        list = pm_wire_inside(&w, &f);
        while ((inner = pm_wire_packed(&list, rows[p->type].in, &v)) > 0)
            PM_TRY(add_element(p, e, v));
        PM_TRY(inner);
    }
    PM_TRY(more);
    if (e->left)
        PM_TRY(bad(p, "fewer elements than its shape has (cut short?)"));
out:
    return err;
}

static int take_list(struct parts *p)
{
    int err = PM_OK, more;
    struct pm_wire w = p->all;
    struct pm_wire_field f, only = { 0 };
    uint64_t bytes = 0;
    int fields = 0;

    while ((more = pm_wire_next(&w, &f)) > 0)
        if (f.number == rows[p->type].list)
            only = f, fields++, bytes += f.size;
    PM_TRY(more);
    if (fields == 1 && only.type == PM_WIRE_BYTES && rows[p->type].in != PM_WIRE_VARINT &&
        only.size == p->t->bytes)
        return take_place(p, w.file, w.file->path, only.begin);
    if (p->t->count > bytes) /* an element takes at least one byte */
        PM_TRY(bad(p, "fewer elements than its shape has (cut short?)"));
    struct elements e = { .left = p->t->count, .size = pm_dtype_size(p->t->type) };
    p->t->data = e.at = pm_arena_alloc(p->r->arena, (size_t)p->t->bytes);
    PM_TRY(decode_list(p, &e));
out:
    return err;
}

int pm_onnx_parse_tensor(const struct pm_onnx_reading *r, struct pm_wire w,
                         struct pm_onnx_tensor *t)
{
    int err = PM_OK, more;
    struct parts p = { .r = r, .all = w, .t = t };
    struct pm_wire_field f;

    *t = (struct pm_onnx_tensor){ .name = "" };
    while ((more = pm_wire_next(&w, &f)) > 0)
        PM_TRY(parse_field(&p, &w, &f));
    PM_TRY(more);
    t->type = pm_onnx_type_of(p.type);
    if (p.type == 0)
        PM_TRY(bad(&p, "no type"));
    if (!pm_onnx_measure(t))
        PM_TRY(bad(&p, "its shape is larger than any file"));
    if (p.outside)
        return take_external(&p);
    if (t->type == PM_DTYPE_OTHER)
        t->bytes = p.raw.size;
    if (p.has_raw && (p.raw.size || !t->bytes)) {
        if (p.raw.size != t->bytes)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: tensor '%.200s' at offset %llu: %llu bytes do not fit its "
                           "shape and type (%llu)",
                           w.file->path, t->name, (unsigned long long)p.raw.key,
                           (unsigned long long)p.raw.size, (unsigned long long)t->bytes));
        return take_place(&p, w.file, w.file->path, p.raw.begin);
    }
    if (t->type == PM_DTYPE_OTHER)
        t->data = "";
    else
        PM_TRY(take_list(&p));
out:
    return err;
}

/* ---- elements -------------------------------------------------------------------------- */

int pm_onnx_bytes(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst)
{
    if (begin > t->bytes || size > t->bytes - begin)
        return pm_fail(
            PM_EDATA,
            "tensor '%.200s': the read from byte %llu, %zu bytes long, exceeds its %llu bytes",
            t->name, (unsigned long long)begin, size, (unsigned long long)t->bytes);
    if (!t->data)
        return size ? t->fill(t, begin, size, dst) : PM_OK;
    if (size)
        memcpy(dst, (const uint8_t *)t->data + begin, size);
    return PM_OK;
}

static int64_t whole_number(enum pm_dtype type, const uint8_t *p)
{
    double v;
    uint64_t u = 0;

    memcpy(&u, p, pm_dtype_size(type));
    switch (type) {
    case PM_DTYPE_I64:
        return (int64_t)u;
    case PM_DTYPE_U64:
        return u > INT64_MAX ? INT64_MAX : (int64_t)u;
    default:
        v = pm_dtype_number(type, p);
        return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : v == v ? (int64_t)v : 0;
    }
}

/* Converts in pieces. floats or ints receives the numbers; the other is NULL. */
static int numbers(const struct pm_onnx_tensor *t, uint64_t first, size_t count, float *floats,
                   int64_t *ints)
{
    int err = PM_OK;
    size_t size = pm_dtype_size(t->type);
    uint8_t piece[65536];

    if (t->type == PM_DTYPE_OTHER)
        PM_TRY(pm_fail(PM_EDATA,
                       "tensor '%.200s': its elements are not of a numeric type that Pumice reads",
                       t->name));
    if (first > t->count || count > t->count - first)
        PM_TRY(pm_fail(PM_EDATA,
                       "tensor '%.200s': the read from element %llu, %zu elements long, exceeds "
                       "its %llu elements",
                       t->name, (unsigned long long)first, count, (unsigned long long)t->count));
    if (floats && t->type == PM_DTYPE_F32)
        return pm_onnx_bytes(t, first * 4, count * 4, floats);
    if (ints && t->type == PM_DTYPE_I64)
        return pm_onnx_bytes(t, first * 8, count * 8, ints);
    for (size_t done = 0; done < count;) {
        size_t n = count - done < sizeof piece / size ? count - done : sizeof piece / size;
        PM_TRY(pm_onnx_bytes(t, (first + done) * size, n * size, piece));
        for (size_t i = 0; i < n; i++)
            if (floats)
                floats[done + i] = (float)pm_dtype_number(t->type, piece + i * size);
            else
                ints[done + i] = whole_number(t->type, piece + i * size);
        done += n;
    }
out:
    return err;
}

int pm_onnx_floats(const struct pm_onnx_tensor *t, uint64_t first, size_t count, float *dst)
{
    return numbers(t, first, count, dst, NULL);
}

int pm_onnx_ints(const struct pm_onnx_tensor *t, uint64_t first, size_t count, int64_t *dst)
{
    return numbers(t, first, count, NULL, dst);
}
