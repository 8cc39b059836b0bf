/* PyTorch files: reads the tensors that torch.save and torch.jit.save write.
 *
 * Since 1.6 a zip archive: NAME/data.pkl holds the value, whose tensors name storages
 * NAME/data/KEY, raw bytes stored as they are. Before: one after another pickles of a magic number,
 * a version, facts of the machine, the value and a list of keys, then per key a 64-bit count and
 * its elements. A tensor is a view of a storage: first element, sizes, strides. */
#include "formats/torch/torch.h"

#include <stdlib.h>
#include <string.h>

enum { LEGACY_VERSION = 1001, MAX_VERSION = 10 };
static const uint8_t legacy_magic[10] = {
    0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19
};

/* What a file being opened consists of. */
struct reading {
    struct pm_tensor_file *f;
    struct pm_arena *arena; /* freed when the file is open */
    struct pm_torch_pickle pickle;
    struct pm_zip zip;
    const char *root_name; /* of the archive: "NAME/" */
};
/* A tensor's `source` is an index into these views. */
struct views {
    const struct pm_torch_view **list;
    size_t count, capacity;
    struct pm_torch_cache cache;
};

/* ---- reading tensors ------------------------------------------------------------------- */

static int read_tensor(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                       uint64_t begin, size_t size, void *dst)
{
    struct views *views = f->own;
    const struct pm_torch_view *v = views->list[t->source];

    if (size == 0)
        return PM_OK;
    return v->contiguous ? pm_tensor_file_read(f, 0, t->offset + begin, size, dst)
                         : pm_torch_read_strided(f, &views->cache, v, begin, size, dst);
}

static void close_views(struct pm_tensor_file *f)
{
    struct views *views = f->own;

    pthread_mutex_destroy(&views->cache.lock);
    pm_free(views->cache.bytes);
    pm_free(views->list);
    pm_free(views);
}

/* ---- tensors of an opened file --------------------------------------------------------- */

/* Checks that the view lies in its storage and that strides of zero do not make it huge. */
static int check_view(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                      const struct pm_torch_view *v)
{
    uint64_t last = v->first, step, have = v->storage->view * v->storage->type->size;
    bool over = false;

    for (int i = 0; i < v->rank; i++)
        over |= __builtin_mul_overflow((uint64_t)v->dim[i] - 1, (uint64_t)v->stride[i], &step) ||
                __builtin_add_overflow(last, step, &last);
    if (over || last >= have / v->type->size)
        return pm_fail(
            PM_EDATA,
            "%s: tensor '%.200s': its first element, shape and strides reach beyond the %llu "
            "bytes of its storage '%.100s'",
            f->path, t->name, (unsigned long long)have, v->storage->key);
    if (t->bytes > 64 << 20 && t->bytes / 16 > f->sources[0].size)
        return pm_fail(
            PM_EDATA,
            "%s: tensor '%.200s': %llu bytes are expanded from a file of %llu (allowed: 64 "
            "MiB, or 16 times the file)",
            f->path, t->name, (unsigned long long)t->bytes, (unsigned long long)f->sources[0].size);
    return PM_OK;
}

static int add_tensor(struct pm_tensor_file *f, const struct pm_torch_named *named)
{
    int err = PM_OK;
    struct views *views = f->own;
    const struct pm_torch_view *v = named->view;
    struct pm_file_tensor *t = pm_tensor_file_add(f, named->name);

    if (v->wrong)
        PM_TRY(pm_tensor_file_bad(f, t->name, v->wrong));
    t->type = v->type->type;
    t->rank = v->rank;
    memcpy(t->dim, v->dim, sizeof t->dim);
    PM_TRY(pm_tensor_file_measure(f, t));
    if (!v->storage)
        t->bytes = 0;
    else if (__builtin_mul_overflow(t->count, (uint64_t)v->type->size, &t->bytes))
        PM_TRY(pm_tensor_file_bad(f, t->name, "its shape is larger than any file"));
    if (t->bytes) {
        PM_TRY(check_view(f, t, v));
        t->offset = v->storage->at + v->storage->first * v->storage->type->size +
                    v->first * v->type->size;
    }
    PM_GROW(views->list, views->count, views->capacity);
    t->source = (int)views->count;
    views->list[views->count++] = v;
out:
    return err;
}

/* Lists the tensors of the value, after the value was read and the storages were located. */
static int add_tensors(struct reading *r, struct pm_torch_value *root)
{
    int err = PM_OK;
    struct pm_torch_names names = { 0 };
    const char *unknown = r->pickle.unknown;
    bool is_object = root->of && root->of->kind == PM_TORCH_GLOBAL;

    PM_TRY(pm_torch_name(r->f, r->arena, root, r->pickle.at - r->pickle.begin, &names));
    if (names.count == 0 && unknown)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: its tensors are made by '%.200s', which Pumice does not run: save a "
                       "state_dict() instead",
                       r->f->path, unknown));
    if (names.count == 0 && root->kind != PM_TORCH_DICT && root->kind != PM_TORCH_LIST &&
        root->kind != PM_TORCH_TUPLE)
        PM_TRY(pm_fail(PM_EDATA, "%s: no tensors: its value is %s%.200s", r->f->path,
                       is_object ? "an object of " : "neither dict nor list",
                       is_object ? root->of->text : ""));
    if (unknown)
        PM_WARN("formats", "%s: skipped the unknown objects that '%.200s' makes of tensors",
                r->f->path, unknown);
    for (size_t i = 0; i < names.count; i++)
        PM_TRY(add_tensor(r->f, &names.list[i]));
    PM_TRY(pm_tensor_file_finish(r->f));
out:
    pm_free(names.list);
    return err;
}

/* ---- zip archives ---------------------------------------------------------------------- */

/* "NAME/what", or NULL. */
static const struct pm_zip_entry *entry(struct reading *r, const char *what)
{
    return pm_zip_find(&r->zip, pm_arena_printf(r->arena, "%s%s", r->root_name, what));
}

/* Finds the folder of data.pkl, which holds all other entries, too. */
static int find_root(struct reading *r)
{
    const char *best = NULL;

    for (size_t i = 0; i < r->zip.count; i++) {
        const char *name = r->zip.entries[i].name;
        size_t n = strlen(name);
        bool is = n > 9 ? strcmp(name + n - 9, "/data.pkl") == 0 : strcmp(name, "data.pkl") == 0;
        if (is && (!best || n < strlen(best)))
            best = name;
    }
    if (!best)
        return pm_fail(PM_EDATA,
                       "%s: a zip archive without data.pkl, so not one of torch.save%s%.100s",
                       r->f->path, r->zip.count ? "; it begins with " : ": it is empty",
                       r->zip.count ? r->zip.entries[0].name : "");
    r->root_name = pm_arena_printf(r->arena, "%.*s", (int)(strlen(best) - 8), best);
    return PM_OK;
}

/* The first bytes of a small entry as text; empty when there is none. */
static int read_small(struct reading *r, const char *what, char text[16])
{
    int err = PM_OK;
    const struct pm_zip_entry *e = entry(r, what);
    uint64_t at;

    memset(text, 0, 16);
    if (e) {
        PM_TRY(pm_zip_place(&r->zip, e, &at));
        PM_TRY(pm_tensor_file_read(r->f, 0, at, e->size < 15 ? (size_t)e->size : 15, text));
    }
out:
    return err;
}

static int check_kind(struct reading *r)
{
    int err = PM_OK;
    char order[16], version[16], *end;

    PM_TRY(read_small(r, "byteorder", order));
    if (order[0] && strcmp(order, "little") != 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: its numbers are stored in byte order '%s', allowed 'little'",
                       r->f->path, order));
    PM_TRY(read_small(r, "version", version));
    if (version[0]) {
        long n = strtol(version, &end, 10);
        if (end == version || n < 1 || n > MAX_VERSION)
            PM_TRY(pm_fail(PM_EDATA, "%s: version %.15s of torch's archives, allowed 1 to %d",
                           r->f->path, version, MAX_VERSION));
    }
out:
    return err;
}

static int place_storage(struct reading *r, struct pm_torch_storage *s)
{
    int err = PM_OK;
    const struct pm_zip_entry *e =
        pm_zip_find(&r->zip, pm_arena_printf(r->arena, "%sdata/%s", r->root_name, s->key));
    uint64_t bytes;

    if (!e)
        PM_TRY(pm_fail(PM_EDATA, "%s: the archive has no '%sdata/%.100s', which its tensors name",
                       r->f->path, r->root_name, s->key));
    PM_TRY(pm_zip_place(&r->zip, e, &s->at));
    if (__builtin_mul_overflow(s->count, (uint64_t)s->type->size, &bytes) || bytes > e->size)
        PM_TRY(pm_fail(PM_EDATA, "%s: '%.200s' has %llu bytes, its tensors need %llu of %s",
                       r->f->path, e->name, (unsigned long long)e->size,
                       (unsigned long long)s->count, s->type->name));
out:
    return err;
}

static int load_zip(struct reading *r)
{
    int err = PM_OK;
    const struct pm_zip_entry *e;
    struct pm_torch_value *root = NULL;

    PM_TRY(pm_zip_open(r->f, r->arena, &r->zip));
    PM_TRY(find_root(r));
    PM_TRY(check_kind(r));
    e = entry(r, "data.pkl");
    PM_TRY(pm_zip_place(&r->zip, e, &r->pickle.at));
    PM_TRY(pm_zip_check(&r->zip, e, r->pickle.at));
    r->pickle.begin = r->pickle.at;
    r->pickle.end = r->pickle.at + e->size;
    PM_TRY(pm_torch_pickle_run(&r->pickle, &root));
    for (struct pm_torch_storage *s = r->pickle.storages; s; s = s->next)
        PM_TRY(place_storage(r, s));
    PM_TRY(add_tensors(r, root));
out:
    return err;
}

/* ---- before 1.6 ------------------------------------------------------------------------ */

static int check_legacy_head(struct reading *r)
{
    int err = PM_OK;
    struct pm_torch_pickle *p = &r->pickle;
    struct pm_torch_value *v = NULL;

    PM_TRY(pm_torch_pickle_run(p, &v));
    if (v->kind != PM_TORCH_BYTES || v->length != sizeof legacy_magic || !v->text ||
        memcmp(v->text, legacy_magic, sizeof legacy_magic) != 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: a pickle, but torch.save did not write it", r->f->path));
    PM_TRY(pm_torch_pickle_run(p, &v));
    if (v->kind != PM_TORCH_INT || v->integer != LEGACY_VERSION)
        PM_TRY(pm_torch_pickle_bad(
            p, "its version is not %d, the only version of torch's old files", LEGACY_VERSION));
    PM_TRY(pm_torch_pickle_run(p, &v));
    v = pm_torch_get(v, "little_endian");
    if (!v || v->kind != PM_TORCH_BOOL || !v->yes)
        PM_TRY(pm_torch_pickle_bad(p, "its numbers are not stored with the low byte first"));
out:
    return err;
}

/* Sorts by key, then by first occurrence: its type gives the element size. */
static int by_key(const void *a, const void *b)
{
    const struct pm_torch_storage *x = *(struct pm_torch_storage *const *)a;
    const struct pm_torch_storage *y = *(struct pm_torch_storage *const *)b;

    return strcmp(x->key, y->key);
}

static struct pm_torch_storage **sort_storages(struct reading *r, size_t *count)
{
    size_t n = 0;

    for (struct pm_torch_storage *s = r->pickle.storages; s; s = s->next)
        n++;
    struct pm_torch_storage **list = pm_arena_alloc(r->arena, (n + 1) * sizeof *list);
    *count = n;
    for (struct pm_torch_storage *s = r->pickle.storages; s; s = s->next) {
        s->at = UINT64_MAX;
        list[--n] = s;
    }
    qsort(list, *count, sizeof *list, by_key);
    return list;
}

/* Locates the storage of one key at *at, and moves *at behind it. */
static int place_legacy(struct reading *r, struct pm_torch_storage **list, size_t count,
                        const struct pm_torch_value *key, uint64_t *at)
{
    int err = PM_OK;
    struct pm_torch_storage wanted = { .key = key->text }, *name = &wanted, **found;
    uint8_t head[8];
    uint64_t elements, bytes = 0, room = r->pickle.end - *at;

    found = key->kind == PM_TORCH_STRING && key->text && count
                ? bsearch(&name, list, count, sizeof *list, by_key) : NULL;
    if (!found)
        PM_TRY(pm_torch_pickle_bad(&r->pickle, "a storage '%.100s' that no tensor names",
                                   key->kind == PM_TORCH_STRING && key->text ? key->text : "?"));
    while (found > list && strcmp(found[-1]->key, key->text) == 0)
        found--;
    if (room < 8)
        PM_TRY(pm_fail(PM_EDATA, "%s: ends at offset %llu, before storage '%.100s'", r->f->path,
                       (unsigned long long)r->pickle.end, key->text));
    PM_TRY(pm_tensor_file_read(r->f, 0, *at, 8, head));
    elements = pm_little(head, 8);
    if (elements != (*found)->count ||
        __builtin_mul_overflow(elements, (uint64_t)(*found)->type->size, &bytes) ||
        bytes > room - 8)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: storage '%.100s' at offset %llu has %llu elements, its tensors need "
                       "%llu of %s, and %llu bytes are left (cut short?)",
                       r->f->path, key->text, (unsigned long long)*at, (unsigned long long)elements,
                       (unsigned long long)(*found)->count, (*found)->type->name,
                       (unsigned long long)(room - 8)));
    for (; found < list + count && strcmp((*found)->key, key->text) == 0; found++) {
        uint64_t want;
        if (__builtin_mul_overflow((*found)->count, (uint64_t)(*found)->type->size, &want) ||
            want > bytes)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: storage '%.100s' has %llu bytes, a tensor needs %llu of %s",
                           r->f->path, key->text, (unsigned long long)bytes,
                           (unsigned long long)(*found)->count, (*found)->type->name));
        (*found)->at = *at + 8;
    }
    *at += 8 + bytes;
out:
    return err;
}

static int load_legacy(struct reading *r)
{
    int err = PM_OK;
    struct pm_torch_value *root = NULL, *keys = NULL;
    struct pm_torch_storage **list;
    uint64_t at, pickles;
    size_t count;

    r->pickle.end = r->f->sources[0].size;
    PM_TRY(check_legacy_head(r));
    PM_TRY(pm_torch_pickle_run(&r->pickle, &root));
    pickles = r->pickle.at;
    PM_TRY(pm_torch_pickle_run(&r->pickle, &keys));
    at = r->pickle.at;
    r->pickle.at = pickles;
    list = sort_storages(r, &count);
    if (keys->kind != PM_TORCH_LIST)
        PM_TRY(pm_torch_pickle_bad(&r->pickle, "the storages' keys are not a list"));
    for (const struct pm_torch_cell *c = keys->cells; c; c = c->next)
        PM_TRY(place_legacy(r, list, count, c->value, &at));
    for (size_t i = 0; i < count; i++)
        if (list[i]->at == UINT64_MAX)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: its tensors name a storage '%.100s' that it does not have",
                           r->f->path, list[i]->key));
    PM_TRY(add_tensors(r, root));
out:
    return err;
}

/* ---- opening --------------------------------------------------------------------------- */

static bool is_zip(const uint8_t *head, size_t size)
{
    return size >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0);
}

static bool is_legacy(const uint8_t *head, size_t size)
{
    return size > 2 && head[0] == 0x80 && memmem(head, size, legacy_magic, sizeof legacy_magic);
}

static int load(struct reading *r)
{
    int err = PM_OK;
    uint8_t head[64], tar[5];
    uint64_t size = r->f->sources[0].size;
    size_t n = size < sizeof head ? (size_t)size : sizeof head;

    PM_TRY(pm_tensor_file_read(r->f, 0, 0, n, head));
    if (is_zip(head, n))
        return load_zip(r);
    if (n && head[0] == 0x80)
        return load_legacy(r);
    if (size > 512) {
        PM_TRY(pm_tensor_file_read(r->f, 0, 257, 5, tar));
        if (memcmp(tar, "ustar", 5) == 0)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: a tar archive, as PyTorch wrote before 0.2: load and save it "
                           "with a newer one",
                           r->f->path));
    }
    PM_TRY(pm_fail(PM_EDATA,
                   "%s: not a PyTorch file: neither a zip archive nor a pickle at offset 0 "
                   "(%llu bytes)",
                   r->f->path, (unsigned long long)size));
out:
    return err;
}

/* f has its one source already. Takes ownership of f: returns it in *out, or closes it on
 * failure. */
static int open_source(struct pm_tensor_file *f, struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct reading r = { .f = f, .arena = pm_arena_create() };
    struct views *views = pm_calloc(1, sizeof *views);

    pthread_mutex_init(&views->cache.lock, NULL);
    f->own = views;
    f->read = read_tensor;
    f->close = close_views;
    r.pickle = (struct pm_torch_pickle){ .f = f, .arena = r.arena, .views = f->arena };
    PM_TRY(load(&r));
    *out = f, f = NULL;
out:
    pm_torch_pickle_end(&r.pickle);
    pm_arena_destroy(&r.arena);
    pm_tensor_file_close(&f);
    return err;
}

static bool is_torch(const struct pm_tensor_probe *p)
{
    return p->file && (is_zip(p->head, p->head_size) || is_legacy(p->head, p->head_size) ||
                       pm_ends_with(p->path, ".pt") || pm_ends_with(p->path, ".pth"));
}

static int open_file(const char *path, struct pm_tensor_file **out);

const struct pm_tensor_format pm_format_torch = {
    .name = "PyTorch", .help = "a .pt or .pth file of PyTorch", .is = is_torch, .open = open_file,
};

static int open_file(const char *path, struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct pm_tensor_file *f = pm_tensor_file_make(path, &pm_format_torch);

    PM_TRY(pm_tensor_file_source(f, path, NULL));
    return open_source(f, out);
out:
    pm_tensor_file_close(&f);
    return err;
}

int pm_torch_open_memory(const char *name, const void *data, size_t size,
                         struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct pm_tensor_file *f = pm_tensor_file_make(name, &pm_format_torch);

    PM_TRY(pm_tensor_file_memory(f, name, data, size, NULL));
    return open_source(f, out);
out:
    pm_tensor_file_close(&f);
    return err;
}
