/* safetensors, reading: 8 bytes little-endian header length, a JSON object, then the tensors'
 * bytes.
 *
 * {"__metadata__": {"key": "value"}, "name": {"dtype": "F32", "shape": [3, 4],
 * "data_offsets": [begin, end]}}: offsets count from the end of the header and must cover the data
 * exactly. */
#include "formats/little.h"
#include "formats/tensor_format.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 100 << 20 }; /* bytes; the limit that the format defines */

/* A file being read. */
struct reading {
    struct pm_tensor_file *f;
    const char *path;
    uint64_t size;  /* of the whole file */
    uint64_t start; /* of the tensors' bytes */
    bool has_meta;
};

/* A JSON number that is an integer in 0..2^53. */
static bool is_size(const cJSON *v, uint64_t *out)
{
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= 9007199254740992.0))
        return false;
    *out = (uint64_t)v->valuedouble;
    return (double)*out == v->valuedouble;
}

static int parse_shape(const struct reading *s, const cJSON *v, struct pm_file_tensor *t)
{
    const cJSON *dim;

    if (!cJSON_IsArray(v))
        return pm_tensor_file_bad(s->f, t->name, "\"shape\" is not a list of sizes");
    t->count = 1;
    cJSON_ArrayForEach(dim, v)
    {
        uint64_t n;
        if (t->rank == PM_FILE_MAX_RANK)
            return pm_tensor_file_bad(s->f, t->name, "more than 8 dimensions");
        if (!is_size(dim, &n))
            return pm_tensor_file_bad(s->f, t->name, "\"shape\" holds a value that is not a size");
        if (__builtin_mul_overflow(t->count, n, &t->count))
            return pm_tensor_file_bad(s->f, t->name, "\"shape\" is larger than any file");
        t->dim[t->rank++] = (int64_t)n;
    }
    return PM_OK;
}

static int parse_offsets(const struct reading *s, const cJSON *v, struct pm_file_tensor *t)
{
    uint64_t begin, end, room = s->size - s->start;

    if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 2 || !is_size(v->child, &begin) ||
        !is_size(v->child->next, &end))
        return pm_tensor_file_bad(s->f, t->name, "\"data_offsets\" is not [begin, end]");
    if (begin > end || end > room)
        return pm_fail(PM_EDATA,
                       "%s: tensor '%.200s': data_offsets [%llu, %llu] do not lie in the file's "
                       "%llu bytes of data (cut short?)",
                       s->path, t->name, (unsigned long long)begin, (unsigned long long)end,
                       (unsigned long long)room);
    t->offset = s->start + begin;
    t->bytes = end - begin;
    return PM_OK;
}

static int parse_tensor(const struct reading *s, const cJSON *v, struct pm_file_tensor *t)
{
    const cJSON *type = NULL, *shape = NULL, *offsets = NULL, *m;
    uint64_t bytes;
    char buf[96];
    int err = PM_OK;

    if (!cJSON_IsObject(v))
        return pm_tensor_file_bad(s->f, t->name, "its header entry is not an object");
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
        return pm_tensor_file_bad(s->f, t->name, "no \"dtype\"");
    for (t->type = 0; t->type < PM_DTYPE_OTHER; t->type++)
        if (strcmp(pm_dtype_name(t->type), type->valuestring) == 0)
            break;
    PM_TRY(parse_shape(s, shape, t));
    PM_TRY(parse_offsets(s, offsets, t));
    if (t->type == PM_DTYPE_OTHER) {
        t->other = pm_arena_strdup(s->f->arena, type->valuestring);
        return PM_OK;
    }
    if (__builtin_mul_overflow(t->count, (uint64_t)pm_dtype_size(t->type), &bytes) ||
        bytes != t->bytes)
        return pm_fail(PM_EDATA, "%s: tensor '%.200s': %s of shape %s does not fit its %llu bytes",
                       s->path, t->name, pm_dtype_name(t->type), pm_file_tensor_shape(t, buf),
                       (unsigned long long)t->bytes);
out:
    return err;
}

static int parse_meta(struct reading *s, const cJSON *v)
{
    const cJSON *m;

    if (!cJSON_IsObject(v) || s->has_meta)
        return pm_fail(PM_EDATA, "%s: __metadata__ is not one object", s->path);
    s->has_meta = true;
    cJSON_ArrayForEach(m, v)
    {
        if (!cJSON_IsString(m))
            return pm_fail(PM_EDATA, "%s: __metadata__.%.200s is not a string", s->path, m->string);
        pm_tensor_file_add_meta(s->f, m->string, m->valuestring);
    }
    return PM_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct pm_file_tensor *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Checks that the tensors cover the data exactly, without overlap and holes; then sorts them by
 * name and refuses names that occur twice. */
static int check_cover(const struct reading *s)
{
    uint64_t at = s->start;

    if (s->f->count)
        qsort(s->f->list, s->f->count, sizeof *s->f->list, by_offset);
    for (size_t i = 0; i < s->f->count; i++) {
        const struct pm_file_tensor *t = &s->f->list[i];
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
    return pm_tensor_file_finish(s->f);
}

static int parse_header(struct reading *s, const char *text, size_t length)
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
    cJSON_ArrayForEach(m, root)
    {
        if (strcmp(m->string, "__metadata__") == 0) {
            PM_TRY(parse_meta(s, m));
            continue;
        }
        PM_TRY(parse_tensor(s, m, pm_tensor_file_add(s->f, m->string)));
    }
    PM_TRY(check_cover(s));
out:
    cJSON_Delete(root);
    return err;
}

static int load(struct reading *s)
{
    int err = PM_OK;
    char *text = NULL;
    uint8_t head[8];
    uint64_t length;

    if (s->size < 8)
        PM_TRY(pm_fail(PM_EDATA, "%s: %llu bytes are too few for a safetensors file", s->path,
                       (unsigned long long)s->size));
    PM_TRY(pm_tensor_file_read(s->f, 0, 0, 8, head));
    length = pm_little(head, 8);
    if (length > MAX_HEADER || length > s->size - 8)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: not a safetensors file, or cut short: header length %llu at offset 0, "
                       "allowed 0..%llu",
                       s->path, (unsigned long long)length,
                       (unsigned long long)(s->size - 8 < MAX_HEADER ? s->size - 8 : MAX_HEADER)));
    s->start = 8 + length;
    text = pm_malloc((size_t)length + 1);
    PM_TRY(pm_tensor_file_read(s->f, 0, 8, (size_t)length, text));
    text[length] = 0;
    PM_TRY(parse_header(s, text, (size_t)length));
out:
    pm_free(text);
    return err;
}

/* f has its one source already. Takes ownership of f: returns it in *out, or closes it on
 * failure. */
static int open_source(struct pm_tensor_file *f, struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct reading r = { .f = f, .path = f->path, .size = f->sources[0].size };

    PM_TRY(load(&r));
    *out = f, f = NULL;
out:
    pm_tensor_file_close(&f);
    return err;
}

static bool is_safetensors(const struct pm_tensor_probe *p)
{
    const uint64_t length = p->head_size > 8 ? pm_little(p->head, 8) : 0;

    return p->file && (pm_ends_with(p->path, ".safetensors") ||
                       (p->head_size > 8 && p->head[8] == '{' && length <= p->size - 8));
}

const struct pm_tensor_format pm_format_safetensors = {
    .name = "safetensors", .help = "a .safetensors file", .is = is_safetensors,
    .open = pm_safetensors_open,
};

int pm_safetensors_open(const char *path, struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct pm_tensor_file *f = pm_tensor_file_make(path, &pm_format_safetensors);

    PM_TRY(pm_tensor_file_source(f, path, NULL));
    return open_source(f, out);
out:
    pm_tensor_file_close(&f);
    return err;
}

int pm_safetensors_open_memory(const char *name, const void *data, size_t size,
                               struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct pm_tensor_file *f = pm_tensor_file_make(name, &pm_format_safetensors);

    PM_TRY(pm_tensor_file_memory(f, name, data, size, NULL));
    return open_source(f, out);
out:
    pm_tensor_file_close(&f);
    return err;
}
