/* tensor_file: the object that the readers of all formats fill, and conversion of its numbers.
 * Files are read with pread instead of mmap: a file that another process truncates then gives an
 * error, not SIGBUS. */
#include "formats/tensor_format.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [PM_DTYPE_F64] = { "F64", 8 },   [PM_DTYPE_F32] = { "F32", 4 }, [PM_DTYPE_F16] = { "F16", 2 },
    [PM_DTYPE_BF16] = { "BF16", 2 }, [PM_DTYPE_I64] = { "I64", 8 }, [PM_DTYPE_I32] = { "I32", 4 },
    [PM_DTYPE_I16] = { "I16", 2 },   [PM_DTYPE_I8] = { "I8", 1 },   [PM_DTYPE_U64] = { "U64", 8 },
    [PM_DTYPE_U32] = { "U32", 4 },   [PM_DTYPE_U16] = { "U16", 2 }, [PM_DTYPE_U8] = { "U8", 1 },
    [PM_DTYPE_BOOL] = { "BOOL", 1 }, [PM_DTYPE_OTHER] = { "other", 0 },
};

const char *pm_dtype_name(enum pm_dtype t)
{
    return types[t].name;
}

size_t pm_dtype_size(enum pm_dtype t)
{
    return types[t].size;
}

const char *pm_file_tensor_type(const struct pm_file_tensor *t)
{
    return t->type == PM_DTYPE_OTHER && t->other ? t->other : types[t->type].name;
}

char *pm_file_tensor_shape(const struct pm_file_tensor *t, char buf[96])
{
    size_t used = 0;

    if (t->rank == 0)
        snprintf(buf, 96, "scalar");
    for (int i = 0; i < t->rank && used < 95; i++)
        used +=
            (size_t)snprintf(buf + used, 96 - used, "%s%lld", i ? "x" : "", (long long)t->dim[i]);
    return buf;
}

uint64_t pm_file_tensor_bytes(const struct pm_file_tensor *t)
{
    uint64_t bytes = pm_dtype_size(t->type);

    for (int i = 0; i < t->rank; i++)
        bytes *= (uint64_t)t->dim[i];
    return bytes;
}

int pm_file_tensor_elements(const struct pm_file_tensor *t, struct pm_fill_buffer *b,
                            const void **data)
{
    const size_t bytes = (size_t)pm_file_tensor_bytes(t);

    *data = t->data ? t->data : "";
    if (t->data || bytes == 0)
        return PM_OK;
    assert(t->fill);
    if (bytes > b->capacity) {
        pm_free(b->data);
        b->data = pm_malloc(bytes);
        b->capacity = bytes;
    }
    *data = b->data;
    return t->fill(t, b->data);
}

/* ---- formats --------------------------------------------------------------------------- */

#define PM_TENSOR_FORMAT(name) extern const struct pm_tensor_format pm_format_##name;
#include "formats/tensor_formats.def"
#undef PM_TENSOR_FORMAT

const struct pm_tensor_format *const *pm_tensor_formats(size_t *count)
{
#define PM_TENSOR_FORMAT(name) &pm_format_##name,
    static const struct pm_tensor_format *const rows[] = {
#include "formats/tensor_formats.def"
    };
#undef PM_TENSOR_FORMAT

    *count = PM_COUNT(rows);
    return rows;
}

static int probe(const char *path, struct pm_tensor_probe *out)
{
    struct stat st;
    int fd;

    *out = (struct pm_tensor_probe){ .path = path };
    if (stat(path, &st) != 0)
        return PM_OK;
    out->folder = S_ISDIR(st.st_mode);
    out->file = S_ISREG(st.st_mode);
    out->size = out->file ? (uint64_t)st.st_size : 0;
    if (!out->file)
        return PM_OK;
    if (pm_file_open(path, &fd, NULL) < 0)
        return PM_EDATA;
    ssize_t n = pread(fd, out->head, sizeof out->head, 0);
    close(fd);
    if (n < 0)
        return pm_fail(PM_EDATA, "%s: cannot read at offset 0: %s", path, strerror(errno));
    out->head_size = (size_t)n;
    return PM_OK;
}

static const struct pm_tensor_format *format_of(const struct pm_tensor_probe *p)
{
    size_t count;
    const struct pm_tensor_format *const *rows = pm_tensor_formats(&count);

    for (size_t i = 0; i < count; i++)
        if (rows[i]->is(p))
            return rows[i];
    return NULL;
}

bool pm_tensor_file_is(const char *path)
{
    struct pm_tensor_probe p;

    return probe(path, &p) == PM_OK && format_of(&p);
}

int pm_tensor_file_open(const char *path, struct pm_tensor_file **out)
{
    int err = PM_OK;
    size_t count;
    const struct pm_tensor_format *const *rows = pm_tensor_formats(&count), *row;
    struct pm_tensor_probe p;
    struct pm_str known = { 0 };
    int fd;

    PM_TRY(probe(path, &p));
    if ((row = format_of(&p)) != NULL)
        return row->open(path, out);
    if (!pm_file_exists(path) && !p.folder)
        PM_TRY(pm_fail(PM_EDATA, "%s: no such file", path));
    if (!p.file && !p.folder)
        PM_TRY(pm_file_open(path, &fd, NULL)); /* says why not */
    for (size_t i = 0; i < count; i++)
        pm_str_add(&known, "%s%s", i ? ", " : "", rows[i]->name);
    PM_TRY(pm_fail(PM_EDATA, "%s: not a tensor file that Pumice can read (%s)", path,
                   known.text));
out:
    pm_str_free(&known);
    return err;
}

/* ---- filling --------------------------------------------------------------------------- */

int pm_tensor_file_bad(const struct pm_tensor_file *f, const char *name, const char *what)
{
    return pm_fail(PM_EDATA, "%s: tensor '%.200s': %s", f->path, name, what);
}

struct pm_tensor_file *pm_tensor_file_make(const char *path, const struct pm_tensor_format *format)
{
    struct pm_tensor_file *f = pm_calloc(1, sizeof *f);

    f->arena = pm_arena_create();
    f->path = pm_arena_strdup(f->arena, path);
    f->format = format;
    return f;
}

static struct pm_tensor_source *add_source(struct pm_tensor_file *f, const char *path, int *index)
{
    PM_GROW(f->sources, f->source_count, f->source_capacity);
    if (index)
        *index = f->source_count;
    struct pm_tensor_source *s = &f->sources[f->source_count++];
    *s = (struct pm_tensor_source){ .path = pm_arena_strdup(f->arena, path), .fd = -1 };
    return s;
}

int pm_tensor_file_source(struct pm_tensor_file *f, const char *path, int *index)
{
    struct pm_tensor_source *s = add_source(f, path, index);

    return pm_file_open(path, &s->fd, &s->size);
}

void pm_tensor_file_name(struct pm_tensor_file *f, const char *path)
{
    struct stat st;
    struct pm_tensor_source *s = add_source(f, path, NULL);

    s->size = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

int pm_tensor_file_memory(struct pm_tensor_file *f, const char *name, const void *data, size_t size,
                          int *index)
{
    struct pm_tensor_source *s = add_source(f, name, index);

    s->data = data;
    s->size = size;
    return PM_OK;
}

int pm_tensor_file_read(const struct pm_tensor_file *f, int source, uint64_t offset, size_t size,
                        void *dst)
{
    const struct pm_tensor_source *s = &f->sources[source];

    if (s->data) {
        memcpy(dst, s->data + offset, size);
        return PM_OK;
    }
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(s->fd, (char *)dst + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return pm_fail(PM_EDATA, "%s: cannot read at offset %llu: %s", s->path,
                           (unsigned long long)(offset + done), strerror(errno));
        if (n == 0)
            return pm_fail(PM_EDATA,
                           "%s: ends at offset %llu while being read; expected %llu bytes", s->path,
                           (unsigned long long)(offset + done), (unsigned long long)s->size);
        done += (size_t)n;
    }
    return PM_OK;
}

struct pm_file_tensor *pm_tensor_file_add(struct pm_tensor_file *f, const char *name)
{
    PM_GROW(f->list, f->count, f->capacity);
    f->list[f->count] = (struct pm_file_tensor){ .name = pm_arena_strdup(f->arena, name) };
    return &f->list[f->count++];
}

void pm_tensor_file_add_meta(struct pm_tensor_file *f, const char *key, const char *value)
{
    f->meta = pm_realloc(f->meta, 2 * (f->meta_count + 1) * sizeof *f->meta);
    f->meta[2 * f->meta_count] = pm_arena_strdup(f->arena, key);
    f->meta[2 * f->meta_count + 1] = pm_arena_strdup(f->arena, value);
    f->meta_count++;
}

int pm_tensor_file_measure(const struct pm_tensor_file *f, struct pm_file_tensor *t)
{
    t->count = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] < 0 || __builtin_mul_overflow(t->count, (uint64_t)t->dim[i], &t->count))
            return pm_tensor_file_bad(f, t->name, "its shape is larger than any file");
    if (__builtin_mul_overflow(t->count, (uint64_t)types[t->type].size, &t->bytes))
        return pm_tensor_file_bad(f, t->name, "its shape is larger than any file");
    return PM_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct pm_file_tensor *x = a, *y = b;

    return strcmp(x->name, y->name);
}

int pm_tensor_file_finish(struct pm_tensor_file *f)
{
    if (f->count)
        qsort(f->list, f->count, sizeof *f->list, by_name);
    for (size_t i = 1; i < f->count; i++)
        if (strcmp(f->list[i - 1].name, f->list[i].name) == 0)
            return pm_tensor_file_bad(f, f->list[i].name, "occurs twice");
    return PM_OK;
}

/* ---- using ----------------------------------------------------------------------------- */

void pm_tensor_file_close(struct pm_tensor_file **f)
{
    if (!*f)
        return;
    if ((*f)->close)
        (*f)->close(*f);
    for (int i = 0; i < (*f)->source_count; i++)
        if ((*f)->sources[i].fd >= 0)
            close((*f)->sources[i].fd);
    pm_free((*f)->sources);
    pm_free((*f)->list);
    pm_free((void *)(*f)->meta);
    pm_arena_destroy(&(*f)->arena);
    pm_free(*f);
    *f = NULL;
}

const char *pm_tensor_file_path(const struct pm_tensor_file *f)
{
    return f->path;
}

const char *pm_tensor_file_format(const struct pm_tensor_file *f)
{
    return f->format->name;
}

uint64_t pm_tensor_file_size(const struct pm_tensor_file *f)
{
    uint64_t size = 0;

    for (int i = 0; i < f->source_count; i++)
        size += f->sources[i].size;
    return size;
}

bool pm_tensor_file_reads(const struct pm_tensor_file *f, const char *path)
{
    struct stat is, of;

    if (stat(path, &is) != 0)
        return false;
    for (int i = 0; i < f->source_count; i++) {
        const struct pm_tensor_source *s = &f->sources[i];
        const bool there =
            s->fd >= 0 ? fstat(s->fd, &of) == 0 : !s->data && stat(s->path, &of) == 0;

        if (there && is.st_dev == of.st_dev && is.st_ino == of.st_ino)
            return true;
    }
    return false;
}

size_t pm_tensor_file_count(const struct pm_tensor_file *f)
{
    return f->count;
}

const struct pm_file_tensor *pm_tensor_file_get(const struct pm_tensor_file *f, size_t i)
{
    return &f->list[i];
}

const struct pm_file_tensor *pm_tensor_file_find(const struct pm_tensor_file *f, const char *name)
{
    struct pm_file_tensor key = { .name = name };

    return f->count ? bsearch(&key, f->list, f->count, sizeof key, by_name) : NULL;
}

const char *pm_tensor_file_meta(const struct pm_tensor_file *f, const char *key)
{
    for (size_t i = 0; i < f->meta_count; i++)
        if (strcmp(f->meta[2 * i], key) == 0)
            return f->meta[2 * i + 1];
    return NULL;
}

bool pm_tensor_file_meta_at(const struct pm_tensor_file *f, size_t i, const char **key,
                            const char **value)
{
    if (i >= f->meta_count)
        return false;
    *key = f->meta[2 * i];
    *value = f->meta[2 * i + 1];
    return true;
}

static int read_bytes(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                      uint64_t begin, size_t size, void *dst)
{
    return f->read ? f->read(f, t, begin, size, dst)
                   : pm_tensor_file_read(f, t->source, t->offset + begin, size, dst);
}

int pm_tensor_file_bytes(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                         uint64_t begin, size_t size, void *dst)
{
    if (begin > t->bytes || size > t->bytes - begin)
        return pm_fail(
            PM_EDATA,
            "%s: tensor '%.200s': the read from byte %llu, %zu bytes long, exceeds its %llu bytes",
            f->path, t->name, (unsigned long long)begin, size, (unsigned long long)t->bytes);
    return read_bytes(f, t, begin, size, dst);
}

/* ---- numbers --------------------------------------------------------------------------- */

static float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    union { uint32_t u; float f; } v;

    if (exponent == 0) { /* zero or subnormal: mantissa * 2^-24, exact */
        v.f = (float)mantissa * 0x1p-24f;
        v.u |= sign;
    } else {
        v.u = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13;
    }
    return v.f;
}

/* The upper half of a float. */
static float brain_to_float(uint16_t h)
{
    union { uint32_t u; float f; } v = { .u = (uint32_t)h << 16 };

    return v.f;
}

double pm_dtype_number(enum pm_dtype type, const uint8_t *p)
{
    union { uint64_t u8; int64_t i8; double f8; uint32_t u4; int32_t i4; float f4; uint16_t u2;
            int16_t i2; int8_t i1; } v;

    memcpy(&v, p, types[type].size);
    switch (type) {
    case PM_DTYPE_F64: return v.f8;
    case PM_DTYPE_F32: return (double)v.f4;
    case PM_DTYPE_F16: return (double)half_to_float(v.u2);
    case PM_DTYPE_BF16: return (double)brain_to_float(v.u2);
    case PM_DTYPE_I64: return (double)v.i8;
    case PM_DTYPE_I32: return v.i4;
    case PM_DTYPE_I16: return v.i2;
    case PM_DTYPE_I8: return v.i1;
    case PM_DTYPE_U64: return (double)v.u8;
    case PM_DTYPE_U32: return v.u4;
    case PM_DTYPE_U16: return v.u2;
    default: return *p;
    }
}

/* Reads in pieces of this many elements. floats or doubles receives the numbers; the other is
 * NULL. */
static int numbers(const struct pm_tensor_file *f, const struct pm_file_tensor *t, uint64_t first,
                   size_t count, float *floats, double *doubles)
{
    int err = PM_OK;
    size_t size = types[t->type].size;
    uint8_t piece[1024 * 8];

    if (t->type == PM_DTYPE_OTHER)
        PM_TRY(pm_tensor_file_bad(f, t->name, "its dtype is unknown to Pumice"));
    if (first > t->count || count > t->count - first)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: tensor '%.200s': the read from element %llu, %zu elements long, "
                       "exceeds its %llu elements",
                       f->path, t->name, (unsigned long long)first, count,
                       (unsigned long long)t->count));
    if (floats && t->type == PM_DTYPE_F32)
        return read_bytes(f, t, first * 4, count * 4, floats);
    for (size_t done = 0; done < count;) {
        size_t n = count - done < 1024 ? count - done : 1024;
        PM_TRY(read_bytes(f, t, (first + done) * size, n * size, piece));
        for (size_t i = 0; i < n; i++) {
            double v = pm_dtype_number(t->type, piece + i * size);
            if (floats)
                floats[done + i] = (float)v;
            else
                doubles[done + i] = v;
        }
        done += n;
    }
out:
    return err;
}

int pm_tensor_file_floats(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                          uint64_t first, size_t count, float *dst)
{
    return numbers(f, t, first, count, dst, NULL);
}

int pm_tensor_file_doubles(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                           uint64_t first, size_t count, double *dst)
{
    return numbers(f, t, first, count, NULL, dst);
}
