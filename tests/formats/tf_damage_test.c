/* Damaged TensorFlow checkpoints: a file that is cut short or has one flipped bit is refused or
 * gives the right values. Tables with correct checksums but impossible entries are refused with
 * the reason, and the claimed sizes are not allocated. */
#include <pumice/formats.h>

#include "formats/tensorflow/tf_checkpoint.h"
#include "formats/tf_files.h"

#define VAST (INT64_C(1) << 60)

/* ---- cut short, flipped ------------------------------------------------------------------ */

static void cut(const char *from, const char *to, const char *open, const char *why)
{
    char *bytes = NULL;
    size_t size;

    assert_int_equal(pm_file_read(from, &bytes, &size), 0);
    for (size_t n = 0; n < size; n++) {
        struct pm_tensor_file *f = NULL;
        put(to, bytes, n);
        assert_int_equal(pm_tensor_file_open(open, &f), PM_EDATA);
        if (n >= 8 && !strstr(pm_error_text(), why))
            fail_msg("'%s' does not say '%s'", pm_error_text(), why);
    }
    put(to, bytes, size);
    struct pm_tensor_file *f = opened(open);
    pm_tensor_file_close(&f);
    pm_free(bytes);
}

static void cut_short(void **state)
{
    (void)state;
    copy(golden("plain/model.ckpt-7.data-00000-of-00001"), in("c.data-00000-of-00001"));
    cut(golden("plain/model.ckpt-7.index"), in("c.index"), in("c"), "cut short");
    cut(golden("plain/model.ckpt-7.data-00000-of-00001"), in("c.data-00000-of-00001"), in("c"),
        "cut short");
    cut(golden("v1/model.ckpt-7"), in("c1"), in("c1"), "cut short");
}

/* Flips each bit of every `stride`-th byte. Returns how many of the files that could be opened
 * had an unreadable tensor. */
static size_t flip(const char *from, const char *to, const char *open, const char *truth,
                   size_t stride)
{
    char *bytes = NULL;
    size_t size, bad = 0;
    struct pm_tensor_file *want = opened(truth), *f = NULL;

    assert_int_equal(pm_file_read(from, &bytes, &size), 0);
    for (size_t at = 0; at < size; at += stride)
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (char)(1 << bit);
            put(to, bytes, size);
            bytes[at] ^= (char)(1 << bit);
            const int err = pm_tensor_file_open(open, &f);
            if (err < 0) {
                assert_int_equal(err, PM_EDATA);
                continue;
            }
            size_t wrong = 0;
            for (size_t i = 0; i < pm_tensor_file_count(f); i++)
                wrong += !good(f, pm_tensor_file_get(f, i), want);
            assert_true(wrong <= 1);
            bad += wrong;
            pm_tensor_file_close(&f);
        }
    put(to, bytes, size);
    pm_free(bytes);
    pm_tensor_file_close(&want);
    return bad;
}

static void flipped(void **state)
{
    size_t size;
    char *data = NULL;

    (void)state;
    copy(golden("plain/model.ckpt-7.data-00000-of-00001"), in("f.data-00000-of-00001"));
    assert_int_equal(flip(golden("plain/model.ckpt-7.index"), in("f.index"), in("f"),
                          golden("plain"), 1),
                     0);
    assert_int_equal(pm_file_read(golden("plain/model.ckpt-7.data-00000-of-00001"), &data, &size),
                     0);
    assert_int_equal(flip(golden("plain/model.ckpt-7.data-00000-of-00001"),
                          in("f.data-00000-of-00001"), in("f"), golden("plain"), 1),
                     8 * size);
    pm_free(data);
    assert_int_equal(flip(golden("v1/model.ckpt-7"), in("f1"), in("f1"), golden("v1"), 3), 0);
    /* A checkpoint with slices. */
    copy(golden("v2_shards/model.ckpt-7.index"), in("s.index"));
    for (int i = 0; i < 3; i++)
        copy(golden(text("v2_shards/model.ckpt-7.data-0000%d-of-00003", i)),
             in(text("s.data-0000%d-of-00003", i)));
    assert_true(flip(golden("v2_shards/model.ckpt-7.data-00001-of-00003"),
                     in("s.data-00001-of-00003"), in("s"), golden("v2_shards"), 5) > 100);
}

/* ---- V2: impossible entries -------------------------------------------------------------- */

struct claim {
    int dtype, rank, shard, slices; /* slices: their number in `slice`, or 0 */
    int64_t dim[10], offset, size;
    int64_t start[3], length[3]; /* of slices in the first dimension */
    const char *key;             /* NULL: "w" */
};

static void pack(struct pm_tf_table_writer *w, const char *key, size_t key_size,
                 const ProtobufCMessage *m)
{
    uint8_t bytes[1024];

    assert_true(protobuf_c_message_get_packed_size(m) <= sizeof bytes);
    pm_tf_table_add(w, key, key_size, bytes, protobuf_c_message_pack(m, bytes));
}

/* The range of a slice in the first of `rank` dimensions. */
struct extents {
    Pm__Tf__Slice slice;
    Pm__Tf__Extent extent[4], *list[4];
};

static Pm__Tf__Slice *slice_of(struct extents *e, int rank, int64_t start, int64_t length)
{
    pm__tf__slice__init(&e->slice);
    for (int i = 0; i < rank; i++) {
        pm__tf__extent__init(&e->extent[i]);
        e->list[i] = &e->extent[i];
    }
    if (rank) {
        e->extent[0].start = start;
        e->extent[0].has_length_case = PM__TF__EXTENT__HAS_LENGTH_LENGTH;
        e->extent[0].length = length;
    }
    e->slice.extent = e->list;
    e->slice.n_extent = (size_t)rank;
    return &e->slice;
}

struct dims {
    Pm__Tf__Shape shape;
    Pm__Tf__Dim dim[10], *list[10];
};

static Pm__Tf__Shape *shape_of(struct dims *d, int rank, const int64_t *dim)
{
    pm__tf__shape__init(&d->shape);
    for (int i = 0; i < rank; i++) {
        pm__tf__dim__init(&d->dim[i]);
        d->dim[i].size = dim[i];
        d->list[i] = &d->dim[i];
    }
    d->shape.dim = d->list;
    d->shape.n_dim = (size_t)rank;
    return &d->shape;
}

static void add_claim(struct pm_tf_table_writer *w, const struct claim *c, const char *key,
                      size_t key_size)
{
    Pm__Tf__BundleEntry e = PM__TF__BUNDLE_ENTRY__INIT;
    struct dims dims;
    struct extents extents[3];
    Pm__Tf__Slice *slices[3];

    for (int i = 0; i < c->slices; i++)
        slices[i] = slice_of(&extents[i], c->rank, c->start[i], c->length[i]);
    e.dtype = c->dtype;
    e.shape = shape_of(&dims, c->rank, c->dim);
    e.shard_id = c->shard;
    e.offset = c->offset;
    e.size = c->size;
    e.slices = slices;
    e.n_slices = (size_t)c->slices;
    pack(w, key, key_size, &e.base);
}

static void add_head(struct pm_tf_table_writer *w, int shards, int endianness, int min_consumer)
{
    Pm__Tf__BundleHeader h = PM__TF__BUNDLE_HEADER__INIT;
    Pm__Tf__Version version = PM__TF__VERSION__INIT;

    version.producer = 1;
    version.min_consumer = min_consumer;
    h.num_shards = shards;
    h.endianness = endianness;
    h.version = &version;
    pack(w, "", 0, &h.base);
}

/* Writes the table; for V2 also a shard of 64 zeros beside it. */
static void finish(struct pm_tf_table_writer *w, const char *path)
{
    static const uint8_t zeros[64];

    put(in("t.data-00000-of-00001"), zeros, sizeof zeros);
    pm_tf_table_finish(w);
    put(path, w->out.text, w->out.length);
    pm_tf_table_free(w);
}

static void v2_claims(void **state)
{
    static const struct {
        struct claim c;
        const char *why; /* the expected reason; NULL: it can be opened */
    } cases[] = {
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64 }, NULL },
        { { .dtype = 7, .rank = 1, .dim = { VAST }, .size = 64 }, NULL }, /* as many strings as it
                                                                           * says */
        { { .dtype = 1, .rank = 1, .dim = { VAST }, .size = 64 }, "does not fit its 64 bytes" },
        { { .dtype = 1, .rank = 1, .dim = { VAST / 4 }, .size = VAST },
          "do not lie in the file's 64" },
        { { .dtype = 1, .rank = 2, .dim = { VAST, VAST }, .size = 64 }, "larger than any file" },
        { { .dtype = 2, .rank = 1, .dim = { VAST * 4 }, .size = 64 }, "larger than any file" },
        { { .dtype = 1, .rank = 1, .dim = { -16 }, .size = 64 }, "larger than any file" },
        { { .dtype = 1, .rank = 9, .dim = { 1 }, .size = 4 }, "more than 8 dimensions" },
        { { .dtype = 1, .rank = 1, .dim = { 15 }, .size = 64 }, "does not fit its 64 bytes" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64, .offset = 1 },
          "do not lie in the file's 64" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64, .offset = -1 }, "do not lie in" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = -64 }, "do not lie in" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64, .shard = 1 },
          "lies in shard 1 of 1" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64, .shard = -1 },
          "lies in shard -1 of 1" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 1, .length = { 16 } }, "has no entry" },
        { { .dtype = 1, .rank = 1, .dim = { VAST }, .slices = 1, .length = { VAST } },
          "larger than all shards" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 1, .start = { 8 }, .length = { 9 } },
          "goes beyond its shape" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 1, .start = { -1 }, .length = { 9 } },
          "goes beyond its shape" },
        { { .dtype = 1,
            .rank = 1,
            .dim = { 16 },
            .slices = 1,
            .start = { VAST },
            .length = { VAST } },
          "goes beyond its shape" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 1, .length = { -9 } },
          "goes beyond its shape" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_tf_table_writer w = { 0 };
        add_head(&w, 1, 0, 0);
        add_claim(&w, &cases[i].c, "w", 1);
        finish(&w, in("t.index"));
        if (cases[i].why) {
            refused(in("t"), cases[i].why);
            continue;
        }
        struct pm_tensor_file *f = opened(in("t"));
        pm_tensor_file_close(&f);
    }
}

static void v2_headers(void **state)
{
    static const struct {
        int shards, endianness, min_consumer;
        const char *why;
    } cases[] = {
        { 2, 0, 0, "t.data-00000-of-00002: cannot be opened" },
        { 0, 0, 0, "names 0 shards" },
        { -1, 0, 0, "names -1 shards" },
        { INT32_MAX, 0, 0, "names 2147483647 shards" },
        { 1, 1, 0, "big-endian machine" },
        { 1, 0, 2, "requires a reader of version 2" },
    };
    const struct claim c = { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_tf_table_writer w = { 0 };
        add_head(&w, cases[i].shards, cases[i].endianness, cases[i].min_consumer);
        add_claim(&w, &c, "w", 1);
        finish(&w, in("t.index"));
        refused(in("t"), cases[i].why);
    }
    struct pm_tf_table_writer w = { 0 };
    add_claim(&w, &c, "w", 1);
    finish(&w, in("t.index"));
    refused(in("t"), "no header");
    w = (struct pm_tf_table_writer){ 0 };
    add_head(&w, 1, 0, 0);
    pm_tf_table_add(&w, "w", 1, "\xff\xff", 2);
    finish(&w, in("t.index"));
    refused(in("t"), "the entry of 'w' is damaged");
    w = (struct pm_tf_table_writer){ 0 };
    add_head(&w, 1, 0, 0);
    add_claim(&w, &c, "w\0x", 3);
    finish(&w, in("t.index"));
    refused(in("t"), "holds a zero byte");
    /* TensorFlow 2's suffix makes two names equal. */
    w = (struct pm_tf_table_writer){ 0 };
    add_head(&w, 1, 0, 0);
    add_claim(&w, &c, "w", 1);
    add_claim(&w, &c, "w/.ATTRIBUTES/VARIABLE_VALUE", 28);
    finish(&w, in("t.index"));
    refused(in("t"), "occurs twice");
}

/* A variable of 16 floats in two slices, with correct and incorrect entries. */
static void v2_slices(void **state)
{
    static const struct {
        int64_t start[2], length[2], size;
        int dtype;
        const char *why;
    } cases[] = {
        { { 0, 8 }, { 8, 8 }, 32, 1, NULL },
        { { 0, 7 }, { 8, 8 }, 32, 1, "two of its slices overlap" },
        { { 0, 9 }, { 8, 7 }, 32, 1, "a slice has another dtype or size" },
        { { 0, 8 }, { 8, 8 }, 32, 3, "a slice has another dtype or size" },
        { { 0, 8 }, { 8, 0 }, 32, 1, "a slice has another dtype or size" },
        { { 0, 8 }, { 8, 8 }, 28, 1, "does not fit its 28 bytes" },
    };
    struct pm_str key = { 0 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_tf_table_writer w = { 0 };
        struct claim whole = { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 2 };
        add_head(&w, 1, 0, 0);
        for (int k = 0; k < 2; k++) {
            const struct pm_tf_slice s = { .start = { cases[i].start[k] },
                                           .length = { cases[i].length[k] } };
            const struct claim part = { .dtype = cases[i].dtype, .rank = 1, .dim = { 8 },
                                        .size = cases[i].size, .offset = 32 * k };
            whole.start[k] = cases[i].start[k];
            whole.length[k] = cases[i].length[k];
            pm_tf_slice_key("w", 1, &s, &key);
            add_claim(&w, &part, key.text, key.length);
        }
        add_claim(&w, &whole, "w", 1);
        finish(&w, in("t.index"));
        if (cases[i].why) {
            refused(in("t"), cases[i].why);
            continue;
        }
        /* The table is opened. Reading fails, because the data's checksum is 0 here. */
        struct pm_tensor_file *f = opened(in("t"));
        double v;
        assert_int_equal(pm_tensor_file_doubles(f, pm_tensor_file_get(f, 0), 9, 1, &v), PM_EDATA);
        assert_non_null(strstr(pm_error_text(), "its checksum is"));
        pm_tensor_file_close(&f);
    }
    pm_str_free(&key);
}

/* ---- V1: impossible entries -------------------------------------------------------------- */

/* A V1 checkpoint of one variable "w": its shape and slices, and the number of values of its
 * single entry and that entry's name. NULL: no entry. */
static void v1_file(const char *path, int dtype, int64_t dim, int slices, size_t values,
                    const char *name)
{
    struct pm_tf_table_writer w = { 0 };
    Pm__Tf__SavedSlices top = PM__TF__SAVED_SLICES__INIT, entry = PM__TF__SAVED_SLICES__INIT;
    Pm__Tf__SlicesMeta metas = PM__TF__SLICES_META__INIT;
    Pm__Tf__SliceMeta meta = PM__TF__SLICE_META__INIT, *list[] = { &meta };
    Pm__Tf__SliceData data = PM__TF__SLICE_DATA__INIT;
    Pm__Tf__Values v = PM__TF__VALUES__INIT;
    struct pm_str key = { 0 };
    struct dims dims;
    struct extents all, one;
    Pm__Tf__Slice *s[] = { slice_of(&all, 1, 0, dim), slice_of(&one, 1, 0, dim) };
    const struct pm_tf_slice whole = { .length = { dim } };
    float floats[16] = { 0 };

    meta.name = "w";
    meta.type = dtype;
    meta.shape = shape_of(&dims, 1, &dim);
    meta.slice = s;
    meta.n_slice = (size_t)slices;
    metas.tensor = list;
    metas.n_tensor = 1;
    top.meta = &metas;
    pack(&w, "", 0, &top.base);
    v.float_val = floats;
    v.n_float_val = values;
    data.data = &v;
    data.name = (char *)name;
    data.slice = s[0];
    entry.data = &data;
    pm_tf_slice_key("w", 1, &whole, &key);
    if (name)
        pack(&w, key.text, key.length, &entry.base);
    pm_str_free(&key);
    finish(&w, path);
}

static void v1_claims(void **state)
{
    static const struct {
        int dtype, slices;
        int64_t dim;
        size_t values;
        const char *name, *open, *read; /* the reason why it is not opened or not read */
    } cases[] = {
        { 1, 1, 16, 16, "w", NULL, NULL },
        { 1, 1, VAST, 16, "w", "larger than its files can hold", NULL },
        { 1, 1, VAST * 4, 16, "w", "larger than any file", NULL },
        { 1, 1, -1, 16, "w", "larger than any file", NULL },
        { 1, 0, 16, 16, "w", "its slices are not all there", NULL },
        { 1, 2, 16, 16, "w", "two of its slices overlap", NULL },
        { 1, 1, 16, 1, "w", NULL, "a slice of 16 elements has 1 values" },
        { 2, 1, 16, 16, "w", NULL, "a slice of 16 elements has 0 values" },
        { 23, 1, 16, 16, "w", NULL, "a slice of 16 elements has 0 values" },
        { 1, 1, 16, 16, "v", NULL, "the entry of one of its slices is damaged" },
        { 1, 1, 16, 16, NULL, NULL, "no entry for a key" },
    };
    double v[16];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        v1_file(in("t1"), cases[i].dtype, cases[i].dim, cases[i].slices, cases[i].values,
                cases[i].name);
        if (cases[i].open) {
            refused(in("t1"), cases[i].open);
            continue;
        }
        struct pm_tensor_file *f = opened(in("t1"));
        const int err = pm_tensor_file_doubles(f, pm_tensor_file_get(f, 0), 0, 16, v);
        assert_int_equal(err, cases[i].read ? PM_EDATA : 0);
        if (cases[i].read && !strstr(pm_error_text(), cases[i].read))
            fail_msg("'%s' does not say '%s'", pm_error_text(), cases[i].read);
        pm_tensor_file_close(&f);
    }
    copy(golden("plain/model.ckpt-7.index"), in("t1")); /* a V2 index under another name */
    refused(in("t1"), "not a V1 checkpoint, or damaged (the index of a V2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_short), cmocka_unit_test(flipped),   cmocka_unit_test(v2_claims),
        cmocka_unit_test(v2_headers), cmocka_unit_test(v2_slices), cmocka_unit_test(v1_claims),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
