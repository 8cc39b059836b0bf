/* tf_v1: TensorFlow's V1 checkpoints, reading: one table, or one for each shard. Key "" has name,
 * shape, dtype and slices of every variable of that table; every other key (slices.c) has the
 * values of one slice as a protocol message. Variables may have slices in several shards. Blocks
 * carry the only checksums, and each block that is read is checked.
 *
 * A slice must have as many values as elements, so what is allocated is bounded by the file.
 * Strings and other values without numbers are OTHER and have no bytes. */
#include "formats/tensorflow/tf_checkpoint.h"

#include <stdlib.h>
#include <string.h>

extern const struct pm_tensor_format pm_format_tf_v1;

/* A byte of a file is at most 32 of a block that snappy packed, and each of these one 8-byte
 * number. */
enum { MOST_TIMES = 32 * 8 };

/* A tensor's offset is an index into these. */
struct item {
    struct pm_tf_slices slices;
    int *tables; /* owned: which has each slice */
};
struct checkpoint {
    struct pm_tensor_file *f; /* borrowed */
    struct pm_tf_table *tables;
    Pm__Tf__SavedSlices **metas; /* of each table, while opening; owned */
    size_t table_count;
    struct item *items;
    size_t count, capacity;
    struct pm_tf_whole whole;
};

/* ---- reading --------------------------------------------------------------------------- */

/* A slice that is being read. */
struct wanted {
    const struct pm_tensor_file *f;
    const struct pm_file_tensor *t;
    const struct pm_tf_slice *slice;
    void *whole;
};

static size_t values_in(enum pm_dtype type, const Pm__Tf__Values *v)
{
    switch (type) {
    case PM_DTYPE_F32: return v->n_float_val;
    case PM_DTYPE_F64: return v->n_double_val;
    case PM_DTYPE_I64: return v->n_int64_val;
    case PM_DTYPE_BOOL: return v->n_bool_val;
    case PM_DTYPE_F16: case PM_DTYPE_BF16: return v->n_half_val;
    case PM_DTYPE_I32: case PM_DTYPE_I16: case PM_DTYPE_I8: case PM_DTYPE_U16: case PM_DTYPE_U8:
        return v->n_int_val;
    default: return 0;
    }
}

/* The elements: those of the message if they have the right type, else a converted copy in *made,
 * which the caller frees. */
static const void *elements_of(enum pm_dtype type, const Pm__Tf__Values *v, size_t count,
                               void **made)
{
    const size_t size = pm_dtype_size(type);

    switch (type) {
    case PM_DTYPE_F32: return v->float_val;
    case PM_DTYPE_F64: return v->double_val;
    case PM_DTYPE_I64: return v->int64_val;
    default: break;
    }
    uint8_t *out = *made = pm_malloc(count * size + 1);
    for (size_t i = 0; i < count; i++) {
        const int32_t n = type == PM_DTYPE_BOOL                           ? v->bool_val[i] != 0
                          : type == PM_DTYPE_F16 || type == PM_DTYPE_BF16 ? v->half_val[i]
                                                                          : v->int_val[i];
        memcpy(out + i * size, &n, size); /* the low bytes */
    }
    return out;
}

static int take_values(void *ctx, const struct pm_tf_entry *e)
{
    int err = PM_OK;
    const struct wanted *w = ctx;
    void *made = NULL;
    Pm__Tf__SavedSlices *m = pm__tf__saved_slices__unpack(NULL, e->value_size, e->value);

    if (!m || !m->data || !m->data->data || strcmp(m->data->name, w->t->name) != 0)
        PM_TRY(pm_tensor_file_bad(w->f, w->t->name, "the entry of one of its slices is damaged"));
    const size_t count = values_in(w->t->type, m->data->data);
    if (count != w->slice->count)
        PM_TRY(pm_fail(PM_EDATA, "%s: tensor '%.200s': a slice of %llu elements has %zu values",
                       w->f->path, w->t->name, (unsigned long long)w->slice->count, count));
    pm_tf_slice_put(w->t, w->slice, elements_of(w->t->type, m->data->data, count, &made), w->whole);
out:
    pm_free(made);
    if (m)
        pm__tf__saved_slices__free_unpacked(m, NULL);
    return err;
}

static int make_whole(const struct pm_tensor_file *f, const struct pm_file_tensor *t, void *whole)
{
    int err = PM_OK;
    const struct checkpoint *c = f->own;
    const struct item *item = &c->items[t->offset];
    struct pm_str key = { 0 };

    for (size_t i = 0; i < item->slices.count && t->type != PM_DTYPE_OTHER; i++) {
        const struct pm_tf_slice *s = &item->slices.list[i];
        struct wanted w = { .f = f, .t = t, .slice = s, .whole = whole };
        pm_tf_slice_key(t->name, t->rank, s, &key);
        PM_TRY(
            pm_tf_table_find(&c->tables[item->tables[i]], key.text, key.length, take_values, &w));
    }
out:
    pm_str_free(&key);
    return err;
}

static int read_tensor(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                       uint64_t begin, size_t size, void *dst)
{
    struct checkpoint *c = f->own;

    return pm_tf_whole_read(&c->whole, make_whole, f, t, begin, size, dst);
}

static void checkpoint_close(struct pm_tensor_file *f)
{
    struct checkpoint *c = f->own;

    for (size_t i = 0; i < c->table_count; i++) {
        pm_tf_table_close(&c->tables[i]);
        if (c->metas[i])
            pm__tf__saved_slices__free_unpacked(c->metas[i], NULL);
    }
    for (size_t i = 0; i < c->count; i++) {
        pm_tf_slices_free(&c->items[i].slices);
        pm_free(c->items[i].tables);
    }
    pm_free(c->tables);
    pm_free(c->metas);
    pm_free(c->items);
    pm_free(c->whole.data);
    pthread_mutex_destroy(&c->whole.lock);
    pm_free(c);
}

/* ---- opening --------------------------------------------------------------------------- */

/* Adds the description of a variable in one table. */
struct said {
    const Pm__Tf__SliceMeta *m;
    int table;
};

static int by_name(const void *a, const void *b)
{
    const struct said *x = a, *y = b;
    const int order = strcmp(x->m->name, y->m->name);

    return order ? order : (x->table > y->table) - (x->table < y->table);
}

static int take_meta(void *ctx, const struct pm_tf_entry *e)
{
    Pm__Tf__SavedSlices **out = ctx;

    *out = pm__tf__saved_slices__unpack(NULL, e->value_size, e->value);
    return PM_OK;
}

static int open_table(struct checkpoint *c, const char *path)
{
    int err = PM_OK, source;
    const size_t i = c->table_count;

    PM_TRY(pm_tensor_file_source(c->f, path, &source));
    c->table_count++;
    PM_TRY(pm_tf_table_open(c->f, source, &c->tables[i]));
    PM_TRY(pm_tf_table_find(&c->tables[i], "", 0, take_meta, &c->metas[i]));
    if (!c->metas[i] || !c->metas[i]->meta)
        PM_TRY(pm_tf_table_bad(&c->tables[i],
                               "no list of variables: not a V1 checkpoint, or damaged (the index "
                               "of a V2 checkpoint must be named PREFIX.index)"));
out:
    return err;
}

/* Makes a variable from its descriptions in all tables. */
static int take_tensor(struct checkpoint *c, const struct said *list, size_t count, uint64_t room)
{
    int err = PM_OK;
    struct pm_file_tensor *t = pm_tensor_file_add(c->f, list[0].m->name), other;

    t->type = pm_tf_dtype(list[0].m->type);
    t->other = t->type == PM_DTYPE_OTHER ? pm_tf_dtype_other(list[0].m->type) : NULL;
    t->offset = c->count;
    PM_GROW(c->items, c->count, c->capacity);
    struct item *item = &c->items[c->count++];
    *item = (struct item){ 0 };
    PM_TRY(pm_tf_shape(c->f, t, list[0].m->shape));
    if (t->bytes / MOST_TIMES > room)
        PM_TRY(pm_tensor_file_bad(c->f, t->name, "it is larger than its files can hold: damaged"));
    for (size_t k = 0; k < count; k++) {
        const Pm__Tf__SliceMeta *m = list[k].m;
        other = *t;
        PM_TRY(pm_tf_shape(c->f, &other, m->shape));
        if (m->type != list[0].m->type || other.rank != t->rank ||
            memcmp(other.dim, t->dim, sizeof t->dim) != 0)
            PM_TRY(pm_tensor_file_bad(c->f, t->name, "its shards differ in its dtype or shape"));
        item->tables = pm_realloc(item->tables,
                                  (item->slices.count + m->n_slice + 1) * sizeof *item->tables);
        for (size_t i = 0; i < m->n_slice; i++) {
            item->tables[item->slices.count] = list[k].table;
            PM_TRY(pm_tf_slices_add(c->f, t, m->slice[i], &item->slices));
        }
    }
    PM_TRY(pm_tf_slices_check(c->f, t, &item->slices));
out:
    return err;
}

static int take_tensors(struct checkpoint *c)
{
    int err = PM_OK;
    const uint64_t room = pm_tensor_file_size(c->f);
    struct said *all = NULL;
    size_t count = 0, capacity = 0;

    for (size_t i = 0; i < c->table_count; i++)
        for (size_t k = 0; k < c->metas[i]->meta->n_tensor; k++) {
            PM_GROW(all, count, capacity);
            all[count++] = (struct said){ c->metas[i]->meta->tensor[k], (int)i };
        }
    if (count)
        qsort(all, count, sizeof *all, by_name);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && strcmp(all[i].m->name, all[i + n].m->name) == 0; n++)
            ;
        PM_TRY(take_tensor(c, all + i, n, room));
    }
    PM_TRY(pm_tensor_file_finish(c->f));
out:
    pm_free(all);
    return err;
}

static int load(struct checkpoint *c, const struct pm_tf_place *place)
{
    int err = PM_OK;

    if (place->file_count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: a set of 0 files", c->f->path));
    c->tables = pm_calloc(place->file_count, sizeof *c->tables);
    c->metas = pm_calloc(place->file_count, sizeof *c->metas);
    for (size_t i = 0; i < place->file_count; i++)
        PM_TRY(open_table(c, place->files[i]));
    PM_TRY(take_tensors(c));
    for (size_t i = 0; i < c->table_count; i++) {
        pm__tf__saved_slices__free_unpacked(c->metas[i], NULL);
        c->metas[i] = NULL;
    }
out:
    return err;
}

static bool is_v1(const struct pm_tensor_probe *p)
{
    return pm_tf_kind(p->path) == PM_TF_V1;
}

static int open_v1(const char *path, struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct pm_tf_place place;
    struct pm_tensor_file *f = pm_tensor_file_make(path, &pm_format_tf_v1);
    struct checkpoint *c = pm_calloc(1, sizeof *c);

    c->f = f;
    pthread_mutex_init(&c->whole.lock, NULL);
    f->own = c;
    f->close = checkpoint_close;
    f->read = read_tensor;
    PM_TRY(pm_tf_locate(a, path, &place));
    PM_TRY(load(c, &place));
    *out = f, f = NULL;
out:
    pm_tensor_file_close(&f);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_tensor_format pm_format_tf_v1 = {
    .name = "TensorFlow V1 checkpoint",
    .help = "a TensorFlow V1 checkpoint: its file, the prefix of its shards, or its folder",
    .is = is_v1, .open = open_v1,
};
