/* tf_v2: TensorFlow's V2 checkpoints (tensor bundles), reading. PREFIX.index is a table: key "" has
 * a header (number of shards, byte order, version), every other key the dtype, shape, place and
 * checksum of a tensor, whose bytes lie little-endian and row-major in PREFIX.data-SHARD-of-SHARDS.
 * A partitioned variable's entry lists its slices, which have entries of their own (slices.c).
 *
 * Names: TensorFlow 2 appends /.ATTRIBUTES/VARIABLE_VALUE to the object path of a variable; the
 * reader removes it. The reader skips the description of the objects, _CHECKPOINTABLE_OBJECT_GRAPH.
 * Strings and other values without numbers have type OTHER, and their bytes are those of the file.
 *
 * A tensor has one checksum for all its bytes. The first read of a tensor reads all of it and
 * checks the checksum, so no unchecked byte is returned. Tensors of type OTHER are not checked,
 * because the checksum of strings covers other bytes and differs between versions. */
#include "formats/tensorflow/tf_checkpoint.h"

#include <pumice/formats.h>
#include <stdlib.h>
#include <string.h>

extern const struct pm_tensor_format pm_format_tf_v2;

enum { MOST_SHARDS = 99999, VERSION = 1 };

static const char value_suffix[] = "/.ATTRIBUTES/VARIABLE_VALUE";

/* Bytes in a shard. */
struct piece {
    int source;
    uint64_t offset, size;
    uint32_t crc;
    bool checked;
};
/* A tensor's offset is an index into these. */
struct item {
    struct piece at;            /* without slices */
    struct pm_tf_slices slices; /* of a partitioned variable */
    struct piece *pieces;       /* owned; of each slice */
};
/* The entry of a slice, kept until its variable is read. */
struct stored {
    char *key; /* owned */
    size_t key_size;
    int32_t dtype;
    struct piece at;
};
struct bundle {
    struct pm_tensor_file *f; /* borrowed */
    struct item *items;
    size_t count, capacity;
    struct pm_tf_whole whole;
    /* While opening. */
    const char *prefix;
    uint64_t room; /* bytes of all shards */
    struct stored *stored;
    size_t stored_count, stored_capacity;
    bool has_header;
};

/* ---- reading --------------------------------------------------------------------------- */

static int bad_crc(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                   const struct piece *p, uint32_t found)
{
    return pm_fail(PM_EDATA,
                   "%s: tensor '%.200s' (offset %llu, %llu bytes): its checksum is %08x, the index "
                   "says %08x: damaged",
                   f->sources[p->source].path, t->name, (unsigned long long)p->offset,
                   (unsigned long long)p->size, found, p->crc);
}

/* All of it. */
static int read_piece(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                      const struct piece *p, void *dst)
{
    int err = PM_OK;

    PM_TRY(pm_tensor_file_read(f, p->source, p->offset, (size_t)p->size, dst));
    const uint32_t found = pm_crc32c_masked(dst, (size_t)p->size);
    if (found != p->crc)
        PM_TRY(bad_crc(f, t, p, found));
out:
    return err;
}

/* Reads the tensor once to check its checksum. */
static int check_piece(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                       struct piece *p)
{
    enum { STEP = 1 << 18 };
    int err = PM_OK;
    uint32_t crc = 0;
    uint8_t *buf = NULL;

    if (__atomic_load_n(&p->checked, __ATOMIC_RELAXED) || t->type == PM_DTYPE_OTHER)
        return PM_OK;
    buf = pm_malloc(p->size < STEP ? (size_t)p->size + 1 : STEP);
    for (uint64_t done = 0; done < p->size;) {
        const size_t n = p->size - done < STEP ? (size_t)(p->size - done) : STEP;
        PM_TRY(pm_tensor_file_read(f, p->source, p->offset + done, n, buf));
        crc = pm_crc32c_more(crc, buf, n);
        done += n;
    }
    if (pm_crc32c_mask(crc) != p->crc)
        PM_TRY(bad_crc(f, t, p, pm_crc32c_mask(crc)));
    __atomic_store_n(&p->checked, true, __ATOMIC_RELAXED);
out:
    pm_free(buf);
    return err;
}

static int make_whole(const struct pm_tensor_file *f, const struct pm_file_tensor *t, void *whole)
{
    int err = PM_OK;
    const struct bundle *b = f->own;
    const struct item *item = &b->items[t->offset];
    uint8_t *slice = NULL;

    for (size_t i = 0; i < item->slices.count; i++) {
        slice = pm_realloc(slice, (size_t)item->pieces[i].size + 1);
        PM_TRY(read_piece(f, t, &item->pieces[i], slice));
        pm_tf_slice_put(t, &item->slices.list[i], slice, whole);
    }
out:
    pm_free(slice);
    return err;
}

static int read_tensor(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                       uint64_t begin, size_t size, void *dst)
{
    int err = PM_OK;
    struct bundle *b = f->own;
    struct item *item = &b->items[t->offset];

    if (item->slices.count)
        return pm_tf_whole_read(&b->whole, make_whole, f, t, begin, size, dst);
    if (size == item->at.size && t->type != PM_DTYPE_OTHER)
        return read_piece(f, t, &item->at, dst);
    PM_TRY(check_piece(f, t, &item->at));
    PM_TRY(pm_tensor_file_read(f, item->at.source, item->at.offset + begin, size, dst));
out:
    return err;
}

static void bundle_close(struct pm_tensor_file *f)
{
    struct bundle *b = f->own;

    for (size_t i = 0; i < b->count; i++) {
        pm_tf_slices_free(&b->items[i].slices);
        pm_free(b->items[i].pieces);
    }
    for (size_t i = 0; i < b->stored_count; i++)
        pm_free(b->stored[i].key);
    pm_free(b->stored);
    pm_free(b->items);
    pm_free(b->whole.data);
    pthread_mutex_destroy(&b->whole.lock);
    pm_free(b);
}

/* ---- the index ------------------------------------------------------------------------- */

static int read_header(struct bundle *b, const struct pm_tf_entry *e)
{
    int err = PM_OK;
    struct pm_str name = { 0 };
    const char *path = b->f->sources[0].path;
    Pm__Tf__BundleHeader *h = pm__tf__bundle_header__unpack(NULL, e->value_size, e->value);

    if (!h || h->num_shards < 1 || h->num_shards > MOST_SHARDS)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: the header names %d shards, allowed 1..%d: not a V2 checkpoint, or damaged", path,
            h ? h->num_shards : 0, MOST_SHARDS));
    if (h->endianness != 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: written on a big-endian machine, which Pumice cannot "
                                 "read; save it again on a little-endian machine", path));
    if (h->version && h->version->min_consumer > VERSION)
        PM_TRY(pm_fail(PM_EDATA, "%s: requires a reader of version %d; this one is version %d",
                       path, h->version->min_consumer, VERSION));
    for (int i = 0; i < h->num_shards; i++) {
        name.length = 0;
        pm_str_add(&name, "%s.data-%05d-of-%05d", b->prefix, i, h->num_shards);
        PM_TRY(pm_tensor_file_source(b->f, name.text, NULL));
        b->room += b->f->sources[b->f->source_count - 1].size;
    }
    b->has_header = true;
out:
    pm_str_free(&name);
    if (h)
        pm__tf__bundle_header__free_unpacked(h, NULL);
    return err;
}

/* The position of an entry's bytes, checked against t->bytes; `name` is for messages. */
static int take_place(const struct bundle *b, const struct pm_file_tensor *t, uint64_t bytes,
                      const Pm__Tf__BundleEntry *e, struct piece *out)
{
    if (e->shard_id < 0 || e->shard_id >= b->f->source_count - 1)
        return pm_fail(PM_EDATA, "%s: tensor '%.200s' lies in shard %d of %d: damaged", b->f->path,
                       t->name, e->shard_id, b->f->source_count - 1);
    const struct pm_tensor_source *s = &b->f->sources[e->shard_id + 1];
    if (e->offset < 0 || e->size < 0 || (uint64_t)e->offset > s->size ||
        (uint64_t)e->size > s->size - (uint64_t)e->offset)
        return pm_fail(PM_EDATA,
                       "%s: tensor '%.200s': %lld bytes at offset %lld do not lie in the file's "
                       "%llu (cut short?)",
                       s->path, t->name, (long long)e->size, (long long)e->offset,
                       (unsigned long long)s->size);
    if (t->type != PM_DTYPE_OTHER && (uint64_t)e->size != bytes) {
        char shape[96];
        return pm_fail(PM_EDATA, "%s: tensor '%.200s': %s of shape %s does not fit its %lld bytes",
                       b->f->path, t->name, pm_dtype_name(t->type), pm_file_tensor_shape(t, shape),
                       (long long)e->size);
    }
    *out = (struct piece){ .source = e->shard_id + 1, .offset = (uint64_t)e->offset,
                           .size = (uint64_t)e->size, .crc = e->crc32c };
    return PM_OK;
}

/* Keeps the entry of one slice by its key. */
static int store_slice(struct bundle *b, const struct pm_tf_entry *e, const Pm__Tf__BundleEntry *m)
{
    int err = PM_OK;
    struct pm_file_tensor t = { .name = "(slice)", .type = pm_tf_dtype(m->dtype) };
    struct stored s = { .key_size = e->key_size, .dtype = m->dtype };

    PM_TRY(pm_tf_shape(b->f, &t, m->shape));
    PM_TRY(take_place(b, &t, t.bytes, m, &s.at));
    s.key = pm_malloc(e->key_size + 1);
    memcpy(s.key, e->key, e->key_size + 1);
    PM_GROW(b->stored, b->stored_count, b->stored_capacity);
    b->stored[b->stored_count++] = s;
out:
    return err;
}

static int by_key(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    const int order = memcmp(x->key, y->key, x->key_size < y->key_size ? x->key_size : y->key_size);

    return order ? order : (x->key_size > y->key_size) - (x->key_size < y->key_size);
}

/* A partitioned variable. The entries of its slices were read before, because their keys begin with
 * 0. */
static int take_slices(struct bundle *b, const struct pm_file_tensor *t,
                       const Pm__Tf__BundleEntry *m, struct item *item)
{
    int err = PM_OK;
    struct pm_str key = { 0 };

    if (t->type == PM_DTYPE_OTHER) /* listed without data */
        return PM_OK;
    if (t->bytes > b->room)
        PM_TRY(pm_tensor_file_bad(b->f, t->name, "it is larger than all shards together: damaged"));
    item->pieces = pm_calloc(m->n_slices, sizeof *item->pieces);
    for (size_t i = 0; i < m->n_slices; i++) {
        PM_TRY(pm_tf_slices_add(b->f, t, m->slices[i], &item->slices));
        const struct pm_tf_slice *s = &item->slices.list[i];
        pm_tf_slice_key(t->name, t->rank, s, &key);
        const struct stored wanted = { .key = key.text, .key_size = key.length };
        const struct stored *found = b->stored_count
            ? bsearch(&wanted, b->stored, b->stored_count, sizeof wanted, by_key) : NULL;
        if (!found || found->dtype != m->dtype ||
            found->at.size != s->count * pm_dtype_size(t->type))
            PM_TRY(pm_tensor_file_bad(b->f, t->name, found ? "a slice has another dtype or size"
                                                           : "one of its slices has no entry"));
        item->pieces[i] = found->at;
    }
    PM_TRY(pm_tf_slices_check(b->f, t, &item->slices));
out:
    pm_str_free(&key);
    return err;
}

static int take_tensor(struct bundle *b, const struct pm_tf_entry *e, const Pm__Tf__BundleEntry *m)
{
    int err = PM_OK;
    char *name = pm_strdup(e->key);
    const size_t length = strlen(name);
    struct pm_file_tensor *t;

    if (length != e->key_size)
        PM_TRY(pm_tensor_file_bad(b->f, name, "its name holds a zero byte"));
    t = pm_tensor_file_add(b->f, name);
    t->type = pm_tf_dtype(m->dtype);
    t->other = pm_tf_dtype_other(m->dtype);
    t->offset = b->count;
    PM_GROW(b->items, b->count, b->capacity);
    struct item *item = &b->items[b->count++];
    *item = (struct item){ 0 };
    PM_TRY(pm_tf_shape(b->f, t, m->shape));
    if (m->n_slices) {
        PM_TRY(take_slices(b, t, m, item)); /* keys of slices have the full name */
    } else {
        PM_TRY(take_place(b, t, t->bytes, m, &item->at));
        t->bytes = item->at.size; /* the shape of an OTHER does not determine its size */
    }
    if (length > sizeof value_suffix - 1 && pm_ends_with(name, value_suffix)) {
        name[length - (sizeof value_suffix - 1)] = 0;
        t->name = pm_arena_strdup(b->f->arena, name);
    }
out:
    pm_free(name);
    return err;
}

static int take_entry(void *ctx, const struct pm_tf_entry *e)
{
    int err = PM_OK;
    struct bundle *b = ctx;
    Pm__Tf__BundleEntry *m = NULL;

    if (e->key_size == 0)
        return read_header(b, e);
    if (!b->has_header)
        PM_TRY(pm_fail(PM_EDATA, "%s: no header: not a V2 checkpoint, or damaged",
                       b->f->sources[0].path));
    if (strcmp(e->key, "_CHECKPOINTABLE_OBJECT_GRAPH") == 0)
        return PM_OK;
    m = pm__tf__bundle_entry__unpack(NULL, e->value_size, e->value);
    if (!m)
        PM_TRY(pm_fail(PM_EDATA, "%s: the entry of '%.200s' is damaged", b->f->sources[0].path,
                       e->key_size && e->key[0] ? e->key : "a slice"));
    PM_TRY(e->key[0] == 0 ? store_slice(b, e, m) : take_tensor(b, e, m));
out:
    if (m)
        pm__tf__bundle_entry__free_unpacked(m, NULL);
    return err;
}

/* ---- the row --------------------------------------------------------------------------- */

static int load(struct bundle *b)
{
    int err = PM_OK;
    struct pm_str index = { 0 };
    struct pm_tf_table table = { 0 };

    pm_str_add(&index, "%s.index", b->prefix);
    PM_TRY(pm_tensor_file_source(b->f, index.text, NULL));
    PM_TRY(pm_tf_table_open(b->f, 0, &table));
    PM_TRY(pm_tf_table_walk(&table, take_entry, b));
    if (!b->has_header)
        PM_TRY(pm_tf_table_bad(&table, "no header: not a V2 checkpoint, or damaged"));
    PM_TRY(pm_tensor_file_finish(b->f));
out:
    pm_tf_table_close(&table);
    pm_str_free(&index);
    return err;
}

static bool is_v2(const struct pm_tensor_probe *p)
{
    return pm_tf_kind(p->path) == PM_TF_V2;
}

static int open_v2(const char *path, struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct pm_tf_place place;
    struct pm_tensor_file *f = pm_tensor_file_make(path, &pm_format_tf_v2);
    struct bundle *b = pm_calloc(1, sizeof *b);

    b->f = f;
    pthread_mutex_init(&b->whole.lock, NULL);
    f->own = b;
    f->close = bundle_close;
    f->read = read_tensor;
    PM_TRY(pm_tf_locate(a, path, &place));
    if (place.kind != PM_TF_V2) /* the files have changed meanwhile */
        PM_TRY(pm_fail(PM_EDATA, "%s: does not lead to a TensorFlow V2 checkpoint", path));
    b->prefix = pm_arena_strdup(f->arena, place.prefix);
    PM_TRY(load(b));
    *out = f, f = NULL;
out:
    pm_tensor_file_close(&f);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_tensor_format pm_format_tf_v2 = {
    .name = "TensorFlow V2 checkpoint",
    .help =
        "a TensorFlow V2 checkpoint: its prefix, its .index, its folder, or a SavedModel's folder",
    .is = is_v2,
    .open = open_v2,
};
