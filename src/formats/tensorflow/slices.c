/* tf_slices: dtypes and shapes in TensorFlow's numbers, and partitioned variables.
 *
 * The table stores the values of a slice under a key made of: the number 0, the variable's name as
 * a string, the rank as a number, then start and length of each dimension as signed numbers (a
 * whole dimension: 0, -1). The encoding keeps the order: encoded keys compare like the values.
 *   number: its length in bytes, then its bytes, most significant first;
 *   string: its bytes, 00 as 00 FF and FF as FF 00, then 00 01;
 *   signed: two's complement, most significant byte first, in the smallest number of bytes n that
 *   leaves n + 1 sign bits; these bits become n ones and a zero, inverted for negative numbers. */
#include "formats/tensorflow/tf_checkpoint.h"

#include <string.h>

enum { MOST_SLICES = 4096 }; /* of one variable; each is compared with each */

static const struct {
    int32_t code;
    enum pm_dtype type;
} codes[] = {
    { 1, PM_DTYPE_F32 },  { 2, PM_DTYPE_F64 },   { 3, PM_DTYPE_I32 },  { 4, PM_DTYPE_U8 },
    { 5, PM_DTYPE_I16 },  { 6, PM_DTYPE_I8 },    { 9, PM_DTYPE_I64 },  { 10, PM_DTYPE_BOOL },
    { 14, PM_DTYPE_BF16 }, { 17, PM_DTYPE_U16 }, { 19, PM_DTYPE_F16 }, { 22, PM_DTYPE_U32 },
    { 23, PM_DTYPE_U64 },
};

enum pm_dtype pm_tf_dtype(int32_t code)
{
    for (size_t i = 0; i < PM_COUNT(codes); i++)
        if (codes[i].code == code)
            return codes[i].type;
    return PM_DTYPE_OTHER;
}

const char *pm_tf_dtype_other(int32_t code)
{
    static const char *const names[] = {
        [7] = "string",    [8] = "complex64",   [11] = "qint8",       [12] = "quint8",
        [13] = "qint32",   [15] = "qint16",     [16] = "quint16",     [18] = "complex128",
        [20] = "resource", [21] = "variant",    [24] = "float8_e5m2", [25] = "float8_e4m3fn",
        [29] = "int4",     [30] = "uint4",
    };

    return code >= 0 && (size_t)code < PM_COUNT(names) ? names[code] : NULL;
}

int32_t pm_tf_dtype_code(enum pm_dtype type)
{
    for (size_t i = 0; i < PM_COUNT(codes); i++)
        if (codes[i].type == type)
            return codes[i].code;
    return 0;
}

int pm_tf_shape(const struct pm_tensor_file *f, struct pm_file_tensor *t, const Pm__Tf__Shape *s)
{
    t->rank = 0;
    if (s && s->unknown_rank)
        return pm_tensor_file_bad(f, t->name, "it has no shape");
    if (s && s->n_dim > PM_FILE_MAX_RANK)
        return pm_tensor_file_bad(f, t->name, "more than 8 dimensions");
    for (size_t i = 0; s && i < s->n_dim; i++)
        t->dim[t->rank++] = s->dim[i]->size;
    return pm_tensor_file_measure(f, t);
}

/* ---- keys ------------------------------------------------------------------------------ */

static void add_number(struct pm_str *s, uint64_t v)
{
    uint8_t bytes[9];
    size_t n = 0;

    for (uint64_t rest = v; rest; rest >>= 8)
        n++;
    bytes[0] = (uint8_t)n;
    for (size_t i = 0; i < n; i++)
        bytes[n - i] = (uint8_t)(v >> 8 * i);
    pm_str_bytes(s, bytes, n + 1);
}

static void add_string(struct pm_str *s, const char *text)
{
    for (; *text; text++) /* which is never 00 */
        pm_str_bytes(s, *text == '\xff' ? "\xff\0" : text, *text == '\xff' ? 2 : 1);
    pm_str_bytes(s, "\0\1", 2);
}

static void add_signed(struct pm_str *s, int64_t v)
{
    const uint64_t magnitude = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    uint8_t bytes[10];
    int n = 1;

    while (n < 10 && magnitude >> (7 * n - 1))
        n++;
    for (int i = 0; i < n; i++)
        bytes[n - 1 - i] = (uint8_t)(i < 8 ? (uint64_t)v >> 8 * i : v < 0 ? 255 : 0);
    bytes[0] ^= (uint8_t)(n >= 8 ? 255 : ~(255 >> n));
    if (n > 8)
        bytes[1] ^= (uint8_t)~(255 >> (n - 8));
    pm_str_bytes(s, bytes, (size_t)n);
}

void pm_tf_slice_key(const char *name, int rank, const struct pm_tf_slice *s, struct pm_str *out)
{
    out->length = 0;
    add_number(out, 0);
    add_string(out, name);
    add_number(out, (uint64_t)rank);
    for (int i = 0; i < rank; i++) {
        add_signed(out, s->start[i]);
        add_signed(out, s->open[i] ? -1 : s->length[i]);
    }
}

/* ---- slices ---------------------------------------------------------------------------- */

static bool overlap(const struct pm_tf_slice *a, const struct pm_tf_slice *b, int rank)
{
    if (a->count == 0 || b->count == 0)
        return false;
    for (int i = 0; i < rank; i++)
        if (a->start[i] >= b->start[i] + b->length[i] || b->start[i] >= a->start[i] + a->length[i])
            return false;
    return true;
}

int pm_tf_slices_add(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                     const Pm__Tf__Slice *p, struct pm_tf_slices *out)
{
    if (out->count == MOST_SLICES)
        return pm_tensor_file_bad(f, t->name, "it has more than 4096 slices");
    if (!p || p->n_extent != (size_t)t->rank)
        return pm_tensor_file_bad(f, t->name, "a slice has another number of dimensions");
    PM_GROW(out->list, out->count, out->capacity);
    struct pm_tf_slice *s = &out->list[out->count++];
    *s = (struct pm_tf_slice){ .count = 1 };
    for (int i = 0; i < t->rank; i++) {
        const Pm__Tf__Extent *e = p->extent[i];
        const bool some = e->has_length_case == PM__TF__EXTENT__HAS_LENGTH_LENGTH;
        s->start[i] = e->start;
        s->length[i] = some ? e->length : t->dim[i];
        s->open[i] = !some;
        if (e->start < 0 || s->length[i] < 0 || e->start > t->dim[i] ||
            s->length[i] > t->dim[i] - e->start)
            return pm_tensor_file_bad(f, t->name, "a slice goes beyond its shape");
        s->count *= (uint64_t)s->length[i];
    }
    for (size_t k = 0; k + 1 < out->count; k++)
        if (overlap(&out->list[k], s, t->rank))
            return pm_tensor_file_bad(f, t->name, "two of its slices overlap");
    return PM_OK;
}

int pm_tf_slices_check(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                       const struct pm_tf_slices *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->count; i++)
        sum += s->list[i].count; /* they do not overlap, so at most t->count */
    if (s->count == 0 || sum != t->count)
        return pm_tensor_file_bad(f, t->name, "its slices are not all there");
    return PM_OK;
}

void pm_tf_slices_free(struct pm_tf_slices *s)
{
    pm_free(s->list);
    *s = (struct pm_tf_slices){ 0 };
}

void pm_tf_slice_put(const struct pm_file_tensor *t, const struct pm_tf_slice *s,
                     const void *elements, void *whole)
{
    uint64_t run = pm_dtype_size(t->type), stride[PM_FILE_MAX_RANK], at[PM_FILE_MAX_RANK] = { 0 };
    int outer = t->rank; /* dimensions outside a run of bytes that lie together in both */
    const uint8_t *from = elements;

    if (s->count == 0)
        return;
    for (int i = t->rank - 1; i >= 0; i--)
        stride[i] = i + 1 < t->rank ? stride[i + 1] * (uint64_t)t->dim[i + 1] : run;
    while (outer > 0 && s->length[outer - 1] == t->dim[outer - 1])
        run *= (uint64_t)t->dim[--outer];
    if (outer > 0) /* the first that is not whole still belongs to it */
        run *= (uint64_t)s->length[--outer];
    for (;;) {
        uint64_t to = 0;
        for (int i = 0; i < t->rank; i++)
            to += ((uint64_t)s->start[i] + at[i]) * stride[i];
        memcpy((uint8_t *)whole + to, from, (size_t)run);
        from += run;
        int i = outer - 1;
        while (i >= 0 && ++at[i] == (uint64_t)s->length[i])
            at[i--] = 0;
        if (i < 0)
            return;
    }
}

int pm_tf_whole_read(struct pm_tf_whole *w, pm_tf_make *make, const struct pm_tensor_file *f,
                     const struct pm_file_tensor *t, uint64_t begin, size_t size, void *dst)
{
    int err = PM_OK;

    pthread_mutex_lock(&w->lock);
    if (begin == 0 && size == t->bytes) {
        err = make(f, t, dst);
        goto out;
    }
    if (w->id != t->offset + 1) {
        w->id = 0;
        w->data = pm_realloc(w->data, (size_t)t->bytes + 1);
        PM_TRY(make(f, t, w->data));
        w->id = t->offset + 1;
    }
    memcpy(dst, w->data + begin, size);
out:
    pthread_mutex_unlock(&w->lock);
    return err;
}
