/* safetensors, reading: 8 bytes little-endian header length, a JSON object, then the tensors' bytes.
 *
 * {"__metadata__": {"key": "value"}, "name": {"dtype": "F32", "shape": [3, 4],
 * "data_offsets": [begin, end]}}: offsets count from the end of the header and must cover the data
 * exactly. Files are read with pread rather than mapped, so that a file cut short by another process
 * is an error and not a SIGBUS. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <pumice/formats.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_HEADER = 100 << 20 }; /* the format's own bound */

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [PM_ST_F64] = { "F64", 8 },   [PM_ST_F32] = { "F32", 4 }, [PM_ST_F16] = { "F16", 2 },
    [PM_ST_BF16] = { "BF16", 2 }, [PM_ST_I64] = { "I64", 8 }, [PM_ST_I32] = { "I32", 4 },
    [PM_ST_I16] = { "I16", 2 },   [PM_ST_I8] = { "I8", 1 },   [PM_ST_U64] = { "U64", 8 },
    [PM_ST_U32] = { "U32", 4 },   [PM_ST_U16] = { "U16", 2 }, [PM_ST_U8] = { "U8", 1 },
    [PM_ST_BOOL] = { "BOOL", 1 }, [PM_ST_OTHER] = { "other", 0 },
};

struct pm_safetensors {
    struct pm_arena *arena; /* owned */
    const char *path;
    int fd;              /* -1 when in memory */
    const uint8_t *data; /* memory, borrowed; NULL when a file */
    uint64_t size;       /* of the whole file */
    uint64_t start;      /* of the tensors' bytes */
    struct pm_safetensor *list;
    size_t count;
    const char **meta; /* key, value, ... */
    size_t meta_count;
};

const char *pm_st_type_name(enum pm_st_type t)
{
    return types[t].name;
}

size_t pm_st_type_size(enum pm_st_type t)
{
    return types[t].size;
}

char *pm_safetensor_shape(const struct pm_safetensor *t, char buf[96])
{
    size_t used = 0;

    if (t->rank == 0)
        snprintf(buf, 96, "scalar");
    for (int i = 0; i < t->rank && used < 95; i++)
        used += (size_t)snprintf(buf + used, 96 - used, "%s%lld", i ? "x" : "", (long long)t->dim[i]);
    return buf;
}

/* ---- reading --------------------------------------------------------------------------- */

static int read_at(const struct pm_safetensors *s, uint64_t offset, size_t size, void *dst)
{
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
            return pm_fail(PM_EDATA, "%s: ends at offset %llu while being read; expected %llu bytes",
                           s->path, (unsigned long long)(offset + done),
                           (unsigned long long)s->size);
        done += (size_t)n;
    }
    return PM_OK;
}

/* A JSON number that is an integer in 0..2^53. */
static bool is_size(const cJSON *v, uint64_t *out)
{
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= 9007199254740992.0))
        return false;
    *out = (uint64_t)v->valuedouble;
    return (double)*out == v->valuedouble;
}

static int bad(const struct pm_safetensors *s, const char *name, const char *what)
{
    return pm_fail(PM_EDATA, "%s: tensor '%.200s': %s", s->path, name, what);
}

static int parse_shape(const struct pm_safetensors *s, const cJSON *v, struct pm_safetensor *t)
{
    const cJSON *dim;

    if (!cJSON_IsArray(v))
        return bad(s, t->name, "\"shape\" is not a list of sizes");
    t->count = 1;
    cJSON_ArrayForEach(dim, v)
    {
        uint64_t n;
        if (t->rank == PM_ST_MAX_RANK)
            return bad(s, t->name, "more than 8 dimensions");
        if (!is_size(dim, &n))
            return bad(s, t->name, "\"shape\" holds something else than sizes");
        if (__builtin_mul_overflow(t->count, n, &t->count))
            return bad(s, t->name, "\"shape\" is larger than any file");
        t->dim[t->rank++] = (int64_t)n;
    }
    return PM_OK;
}

static int parse_offsets(const struct pm_safetensors *s, const cJSON *v, struct pm_safetensor *t)
{
    uint64_t begin, end, room = s->size - s->start;

    if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 2 || !is_size(v->child, &begin) ||
        !is_size(v->child->next, &end))
        return bad(s, t->name, "\"data_offsets\" is not [begin, end]");
    if (begin > end || end > room)
        return pm_fail(PM_EDATA,
                       "%s: tensor '%.200s': data_offsets [%llu, %llu] do not lie in the file's %llu "
                       "bytes of data (cut short?)",
                       s->path, t->name, (unsigned long long)begin, (unsigned long long)end,
                       (unsigned long long)room);
    t->offset = s->start + begin;
    t->bytes = end - begin;
    return PM_OK;
}

static int parse_tensor(const struct pm_safetensors *s, const cJSON *v, struct pm_safetensor *t)
{
    const cJSON *type = NULL, *shape = NULL, *offsets = NULL, *m;
    uint64_t bytes;
    char buf[96];
    int err = PM_OK;

    if (!cJSON_IsObject(v))
        return bad(s, t->name, "its header entry is not an object");
    cJSON_ArrayForEach(m, v)
    {
        const cJSON **place = strcmp(m->string, "dtype") == 0          ? &type
                              : strcmp(m->string, "shape") == 0        ? &shape
                              : strcmp(m->string, "data_offsets") == 0 ? &offsets
                                                                       : NULL;
        if (!place || *place)
            return pm_fail(PM_EDATA, "%s: tensor '%.200s': %s key '%.200s' in the header", s->path,
                           t->name, place ? "second" : "unknown", m->string);
        *place = m;
    }
    if (!cJSON_IsString(type))
        return bad(s, t->name, "no \"dtype\"");
    for (t->type = 0; t->type < PM_ST_OTHER; t->type++)
        if (strcmp(types[t->type].name, type->valuestring) == 0)
            break;
    PM_TRY(parse_shape(s, shape, t));
    PM_TRY(parse_offsets(s, offsets, t));
    if (t->type == PM_ST_OTHER)
        return PM_OK;
    if (__builtin_mul_overflow(t->count, (uint64_t)types[t->type].size, &bytes) || bytes != t->bytes)
        return pm_fail(PM_EDATA, "%s: tensor '%.200s': %s of shape %s does not fit its %llu bytes",
                       s->path, t->name, types[t->type].name, pm_safetensor_shape(t, buf),
                       (unsigned long long)t->bytes);
out:
    return err;
}

static int parse_meta(struct pm_safetensors *s, const cJSON *v)
{
    const cJSON *m;

    if (!cJSON_IsObject(v) || s->meta)
        return pm_fail(PM_EDATA, "%s: __metadata__ is not one object", s->path);
    s->meta = pm_arena_alloc(s->arena, (size_t)(2 * cJSON_GetArraySize(v) + 1) * sizeof *s->meta);
    cJSON_ArrayForEach(m, v)
    {
        if (!cJSON_IsString(m))
            return pm_fail(PM_EDATA, "%s: __metadata__.%.200s is not a string", s->path, m->string);
        s->meta[2 * s->meta_count] = pm_arena_strdup(s->arena, m->string);
        s->meta[2 * s->meta_count + 1] = pm_arena_strdup(s->arena, m->valuestring);
        s->meta_count++;
    }
    return PM_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct pm_safetensor *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int by_name(const void *a, const void *b)
{
    const struct pm_safetensor *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Whole, without overlap, without holes; then sorted by name, each once. */
static int check_cover(struct pm_safetensors *s)
{
    uint64_t at = s->start;

    qsort(s->list, s->count, sizeof *s->list, by_offset);
    for (size_t i = 0; i < s->count; i++) {
        const struct pm_safetensor *t = &s->list[i];
        if (t->offset != at)
            return pm_fail(PM_EDATA, "%s: tensor '%.200s' begins at offset %llu, %s %llu", s->path,
                           t->name, (unsigned long long)t->offset,
                           t->offset < at ? "inside the one that ends at" : "leaving a hole after",
                           (unsigned long long)at);
        at += t->bytes;
    }
    if (at != s->size)
        return pm_fail(PM_EDATA, "%s: the header's tensors end at offset %llu, the file at %llu",
                       s->path, (unsigned long long)at, (unsigned long long)s->size);
    qsort(s->list, s->count, sizeof *s->list, by_name);
    for (size_t i = 1; i < s->count; i++)
        if (strcmp(s->list[i - 1].name, s->list[i].name) == 0)
            return bad(s, s->list[i].name, "occurs twice in the header");
    return PM_OK;
}

static int parse_header(struct pm_safetensors *s, const char *text, size_t length)
{
    int err = PM_OK;
    const char *end = NULL;
    const cJSON *m;
    cJSON *root = cJSON_ParseWithLengthOpts(text, length, &end, false);

    if (!root)
        PM_TRY(pm_fail(PM_EDATA, "%s: the header is not JSON at offset %zu", s->path,
                       8 + (end ? (size_t)(end - text) : 0)));
    if (!cJSON_IsObject(root))
        PM_TRY(pm_fail(PM_EDATA, "%s: the header is not a JSON object", s->path));
    for (; end < text + length; end++)
        if (*end != ' ')
            PM_TRY(pm_fail(PM_EDATA, "%s: byte %d follows the header's JSON at offset %zu", s->path,
                           (unsigned char)*end, 8 + (size_t)(end - text)));
    s->list = pm_arena_alloc(s->arena, ((size_t)cJSON_GetArraySize(root) + 1) * sizeof *s->list);
    cJSON_ArrayForEach(m, root)
    {
        struct pm_safetensor *t = &s->list[s->count];
        if (strcmp(m->string, "__metadata__") == 0) {
            PM_TRY(parse_meta(s, m));
            continue;
        }
        t->name = pm_arena_strdup(s->arena, m->string);
        PM_TRY(parse_tensor(s, m, t));
        s->count++;
    }
    PM_TRY(check_cover(s));
out:
    cJSON_Delete(root);
    return err;
}

static int load(struct pm_safetensors *s)
{
    int err = PM_OK;
    char *text = NULL;
    uint8_t head[8];
    uint64_t length = 0;

    if (s->size < 8)
        PM_TRY(pm_fail(PM_EDATA, "%s: %llu bytes are too few for a safetensors file", s->path,
                       (unsigned long long)s->size));
    PM_TRY(read_at(s, 0, 8, head));
    for (int i = 7; i >= 0; i--)
        length = length << 8 | head[i];
    if (length > MAX_HEADER || length > s->size - 8)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: not a safetensors file, or cut short: header length %llu at offset 0, "
                       "allowed 0..%llu",
                       s->path, (unsigned long long)length,
                       (unsigned long long)(s->size - 8 < MAX_HEADER ? s->size - 8 : MAX_HEADER)));
    s->start = 8 + length;
    text = pm_malloc((size_t)length + 1);
    PM_TRY(read_at(s, 8, (size_t)length, text));
    text[length] = 0;
    PM_TRY(parse_header(s, text, (size_t)length));
out:
    pm_free(text);
    return err;
}

static struct pm_safetensors *make(const char *path)
{
    struct pm_safetensors *s = pm_calloc(1, sizeof *s);

    s->arena = pm_arena_create();
    s->path = pm_arena_strdup(s->arena, path);
    s->fd = -1;
    return s;
}

int pm_safetensors_open(const char *path, struct pm_safetensors **out)
{
    int err = PM_OK;
    struct stat st;
    struct pm_safetensors *s = make(path);

    s->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st) != 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: cannot open: %s", path, strerror(errno)));
    if (!S_ISREG(st.st_mode))
        PM_TRY(pm_fail(PM_EDATA, "%s: not a file", path));
    s->size = (uint64_t)st.st_size;
    PM_TRY(load(s));
    *out = s, s = NULL;
out:
    pm_safetensors_close(&s);
    return err;
}

int pm_safetensors_open_memory(const char *name, const void *data, size_t size,
                               struct pm_safetensors **out)
{
    int err = PM_OK;
    struct pm_safetensors *s = make(name);

    s->data = data;
    s->size = size;
    PM_TRY(load(s));
    *out = s, s = NULL;
out:
    pm_safetensors_close(&s);
    return err;
}

void pm_safetensors_close(struct pm_safetensors **s)
{
    if (!*s)
        return;
    if ((*s)->fd >= 0)
        close((*s)->fd);
    pm_arena_destroy(&(*s)->arena);
    pm_free(*s);
    *s = NULL;
}

const char *pm_safetensors_path(const struct pm_safetensors *s)
{
    return s->path;
}

uint64_t pm_safetensors_size(const struct pm_safetensors *s)
{
    return s->size;
}

size_t pm_safetensors_count(const struct pm_safetensors *s)
{
    return s->count;
}

const struct pm_safetensor *pm_safetensors_get(const struct pm_safetensors *s, size_t i)
{
    return &s->list[i];
}

const struct pm_safetensor *pm_safetensors_find(const struct pm_safetensors *s, const char *name)
{
    struct pm_safetensor key = { .name = name };

    return s->count ? bsearch(&key, s->list, s->count, sizeof key, by_name) : NULL;
}

const char *pm_safetensors_meta(const struct pm_safetensors *s, const char *key)
{
    for (size_t i = 0; i < s->meta_count; i++)
        if (strcmp(s->meta[2 * i], key) == 0)
            return s->meta[2 * i + 1];
    return NULL;
}

bool pm_safetensors_meta_at(const struct pm_safetensors *s, size_t i, const char **key,
                            const char **value)
{
    if (i >= s->meta_count)
        return false;
    *key = s->meta[2 * i];
    *value = s->meta[2 * i + 1];
    return true;
}

int pm_safetensors_bytes(const struct pm_safetensors *s, const struct pm_safetensor *t,
                         uint64_t begin, size_t size, void *dst)
{
    if (begin > t->bytes || size > t->bytes - begin)
        return pm_fail(PM_EDATA, "%s: tensor '%.200s': bytes %llu + %zu of its %llu were asked for",
                       s->path, t->name, (unsigned long long)begin, size,
                       (unsigned long long)t->bytes);
    return read_at(s, t->offset + begin, size, dst);
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

static double element(enum pm_st_type type, const uint8_t *p)
{
    union { uint64_t u8; int64_t i8; double f8; uint32_t u4; int32_t i4; float f4; uint16_t u2;
            int16_t i2; int8_t i1; } v;

    memcpy(&v, p, types[type].size);
    switch (type) {
    case PM_ST_F64: return v.f8;
    case PM_ST_F32: return (double)v.f4;
    case PM_ST_F16: return (double)half_to_float(v.u2);
    case PM_ST_BF16: return (double)brain_to_float(v.u2);
    case PM_ST_I64: return (double)v.i8;
    case PM_ST_I32: return v.i4;
    case PM_ST_I16: return v.i2;
    case PM_ST_I8: return v.i1;
    case PM_ST_U64: return (double)v.u8;
    case PM_ST_U32: return v.u4;
    case PM_ST_U16: return v.u2;
    default: return *p;
    }
}

/* Reads in pieces of this many elements; floats or doubles gets the numbers, the other is NULL. */
static int numbers(const struct pm_safetensors *s, const struct pm_safetensor *t, uint64_t first,
                   size_t count, float *floats, double *doubles)
{
    int err = PM_OK;
    size_t size = types[t->type].size;
    uint8_t piece[1024 * 8];

    if (t->type == PM_ST_OTHER)
        PM_TRY(bad(s, t->name, "its dtype is not known to this program"));
    if (first > t->count || count > t->count - first)
        PM_TRY(pm_fail(PM_EDATA, "%s: tensor '%.200s': elements %llu + %zu of its %llu were asked for",
                       s->path, t->name, (unsigned long long)first, count,
                       (unsigned long long)t->count));
    if (floats && t->type == PM_ST_F32)
        return read_at(s, t->offset + first * 4, count * 4, floats);
    for (size_t done = 0; done < count;) {
        size_t n = count - done < 1024 ? count - done : 1024;
        PM_TRY(read_at(s, t->offset + (first + done) * size, n * size, piece));
        for (size_t i = 0; i < n; i++) {
            double v = element(t->type, piece + i * size);
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

int pm_safetensors_floats(const struct pm_safetensors *s, const struct pm_safetensor *t,
                          uint64_t first, size_t count, float *dst)
{
    return numbers(s, t, first, count, dst, NULL);
}

int pm_safetensors_doubles(const struct pm_safetensors *s, const struct pm_safetensor *t,
                           uint64_t first, size_t count, double *dst)
{
    return numbers(s, t, first, count, NULL, dst);
}
