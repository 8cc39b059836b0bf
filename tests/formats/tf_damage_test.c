/* Damaged and odd checkpoints of TensorFlow's: a file that is cut short or has one bit flipped is
 * refused or has its right values; composed tables with correct checksums but impossible contents are
 * refused with the reason, without allocating what they claim; packed blocks are read; the text file
 * `checkpoint` leads where it should. */
#include <pumice/formats.h>

#include "formats/tf_checkpoint.h"

#include <setjmp.h>
#include <snappy-c.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define VAST (INT64_C(1) << 60)

static char folder[] = "/tmp/pumice-tf-damage-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return pm_remove_tree(folder);
}

/* In one of 64 static buffers. */
static const char *text(const char *fmt, ...) PM_PRINTF(1, 2);
static const char *text(const char *fmt, ...)
{
    static char buf[64][512];
    static int next;
    va_list args;

    next = (next + 1) % 64;
    va_start(args, fmt);
    vsnprintf(buf[next], sizeof buf[next], fmt, args);
    va_end(args);
    return buf[next];
}

static const char *golden(const char *name)
{
    const char *source = getenv("PUMICE_SOURCE");

    return text("%s/tests/golden/tf_checkpoint/%s", source ? source : ".", name);
}

static const char *in(const char *name)
{
    return text("%s/%s", folder, name);
}

/* Without the syncs of pm_file_write. */
static void put(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void refused(const char *path, const char *why)
{
    struct pm_tensor_file *f = NULL;

    assert_int_equal(pm_tensor_file_open(path, &f), PM_EDATA);
    assert_null(f);
    if (!strstr(pm_error_text(), why))
        fail_msg("'%s' does not say '%s'", pm_error_text(), why);
}

static struct pm_tensor_file *opened(const char *path)
{
    struct pm_tensor_file *f = NULL;

    if (pm_tensor_file_open(path, &f) < 0)
        fail_msg("%s", pm_error_text());
    return f;
}

/* Whether a tensor can be read, whole and in part alike; its values are then those of `want`. */
static bool good(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                 const struct pm_tensor_file *want)
{
    uint8_t a[16384], b[16384];
    const struct pm_file_tensor *w = pm_tensor_file_find(want, t->name);
    const int err = pm_tensor_file_bytes(f, t, 0, (size_t)t->bytes, a);

    assert_non_null(w);
    assert_true(t->bytes <= sizeof a && w->bytes == t->bytes && w->type == t->type);
    if (t->bytes > 1)
        assert_int_equal(pm_tensor_file_bytes(f, t, 1, (size_t)t->bytes - 1, b), err);
    if (err < 0) {
        assert_int_equal(err, PM_EDATA);
        return false;
    }
    assert_int_equal(pm_tensor_file_bytes(want, w, 0, (size_t)t->bytes, b), 0);
    assert_memory_equal(a, b, t->bytes);
    return true;
}

/* ---- cut short, flipped ------------------------------------------------------------------ */

static void cut(const char *from, const char *to, const char *open)
{
    char *bytes = NULL;
    size_t size;

    assert_int_equal(pm_file_read(from, &bytes, &size), 0);
    for (size_t n = 0; n < size; n++) {
        struct pm_tensor_file *f = NULL;
        put(to, bytes, n);
        assert_int_equal(pm_tensor_file_open(open, &f), PM_EDATA);
    }
    put(to, bytes, size);
    struct pm_tensor_file *f = opened(open);
    pm_tensor_file_close(&f);
    pm_free(bytes);
}

static void copy(const char *from, const char *to)
{
    char *bytes = NULL;
    size_t size;

    assert_int_equal(pm_file_read(from, &bytes, &size), 0);
    put(to, bytes, size);
    pm_free(bytes);
}

static void cut_short(void **state)
{
    (void)state;
    copy(golden("plain/model.ckpt-7.data-00000-of-00001"), in("c.data-00000-of-00001"));
    cut(golden("plain/model.ckpt-7.index"), in("c.index"), in("c"));
    cut(golden("plain/model.ckpt-7.data-00000-of-00001"), in("c.data-00000-of-00001"), in("c"));
    cut(golden("v1/model.ckpt-7"), in("c1"), in("c1"));
}

/* Flips each bit of every `stride`-th byte; how many opened files had a tensor that cannot be read. */
static size_t flip(const char *from, const char *to, const char *open, const char *truth, size_t stride)
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
    assert_int_equal(flip(golden("plain/model.ckpt-7.index"), in("f.index"), in("f"), golden("plain"), 1),
                     0);
    assert_int_equal(pm_file_read(golden("plain/model.ckpt-7.data-00000-of-00001"), &data, &size), 0);
    assert_int_equal(flip(golden("plain/model.ckpt-7.data-00000-of-00001"), in("f.data-00000-of-00001"),
                          in("f"), golden("plain"), 1),
                     8 * size);
    pm_free(data);
    assert_int_equal(flip(golden("v1/model.ckpt-7"), in("f1"), in("f1"), golden("v1"), 3), 0);
    /* Slices. */
    copy(golden("v2_shards/model.ckpt-7.index"), in("s.index"));
    for (int i = 0; i < 3; i++)
        copy(golden(text("v2_shards/model.ckpt-7.data-0000%d-of-00003", i)),
             in(text("s.data-0000%d-of-00003", i)));
    assert_true(flip(golden("v2_shards/model.ckpt-7.data-00001-of-00003"),
                     in("s.data-00001-of-00003"), in("s"), golden("v2_shards"), 5) > 100);
}

/* ---- tables, from blocks ----------------------------------------------------------------- */

static void add_varint(struct pm_str *s, uint64_t v)
{
    for (; v > 127; v >>= 7)
        pm_str_bytes(s, &(uint8_t){ (uint8_t)(v | 128) }, 1);
    pm_str_bytes(s, &(uint8_t){ (uint8_t)v }, 1);
}

static void add_u32(struct pm_str *s, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        pm_str_bytes(s, &(uint8_t){ (uint8_t)(v >> 8 * i) }, 1);
}

static void add_entry(struct pm_str *s, size_t shared, const char *key, size_t key_size,
                      const void *value, size_t size)
{
    add_varint(s, shared);
    add_varint(s, key_size);
    add_varint(s, size);
    pm_str_bytes(s, key, key_size);
    pm_str_bytes(s, value, size);
}

struct place {
    uint64_t offset, size;
};

/* Appends contents as they are, with type and checksum. */
static struct place add_block(struct pm_str *file, const void *contents, size_t size, int type)
{
    const struct place p = { file->length, size };

    pm_str_bytes(file, contents, size);
    pm_str_bytes(file, &(uint8_t){ (uint8_t)type }, 1);
    add_u32(file, pm_crc32c_masked(file->text + p.offset, size + 1));
    return p;
}

/* The same with the restarts after the entries; packed: by snappy. Frees them. */
static struct place add_entries(struct pm_str *file, struct pm_str *entries, bool packed)
{
    struct place p;

    add_u32(entries, 0);
    add_u32(entries, 1);
    if (packed) {
        size_t n = snappy_max_compressed_length(entries->length);
        char *out = pm_malloc(n);
        assert_int_equal(snappy_compress(entries->text, entries->length, out, &n), SNAPPY_OK);
        p = add_block(file, out, n, 1);
        pm_free(out);
    } else {
        p = add_block(file, entries->text, entries->length, 0);
    }
    pm_str_free(entries);
    return p;
}

static void add_place(struct pm_str *index, const char *key, struct place p)
{
    struct pm_str value = { 0 };

    add_varint(&value, p.offset);
    add_varint(&value, p.size);
    add_entry(index, 0, key, strlen(key), value.text, value.length);
    pm_str_free(&value);
}

/* Writes the file and frees it. */
static void add_footer(struct pm_str *file, struct place index, const char *path)
{
    const size_t end = file->length + 40;

    add_varint(file, 0);
    add_varint(file, 0);
    add_varint(file, index.offset);
    add_varint(file, index.size);
    while (file->length < end)
        pm_str_bytes(file, "\0", 1);
    pm_str_bytes(file, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
    put(path, file->text, file->length);
    pm_str_free(file);
}

static const char header[] = "\x08\x01"; /* num_shards 1 */

static void blocks(void **state)
{
    struct pm_str file = { 0 }, data = { 0 }, index = { 0 };
    struct place p;
    uint8_t bytes[64] = { 0 };

    (void)state;
    put(in("t.data-00000-of-00001"), bytes, sizeof bytes);

    /* What the others are variations of. */
    add_entry(&data, 0, "", 0, header, 2);
    p = add_entries(&file, &data, false);
    add_place(&index, "a", p);
    add_footer(&file, add_entries(&file, &index, false), in("t.index"));
    struct pm_tensor_file *f = opened(in("t"));
    assert_int_equal(pm_tensor_file_count(f), 0);
    pm_tensor_file_close(&f);

    /* A key that shares more than there is. */
    add_entry(&data, 0, "", 0, header, 2);
    add_entry(&data, 1, "b", 1, "", 0);
    p = add_entries(&file, &data, false);
    add_place(&index, "b", p);
    add_footer(&file, add_entries(&file, &index, false), in("t.index"));
    refused(in("t"), "shares 1 bytes with a key of 0");
    add_entry(&data, VAST, "b", 1, "", 0);
    p = add_entries(&file, &data, false);
    add_footer(&file, p, in("t.index"));
    refused(in("t"), "with a key of 0");

    /* Keys in the wrong order, or twice. */
    for (int i = 0; i < 2; i++) {
        add_entry(&data, 0, "", 0, header, 2);
        add_entry(&data, 0, "x", 1, "", 0);
        add_entry(&data, 0, i ? "x" : "w", 1, "", 0);
        p = add_entries(&file, &data, false);
        add_place(&index, "x", p);
        add_footer(&file, add_entries(&file, &index, false), in("t.index"));
        refused(in("t"), "does not follow 'x'");
    }

    /* The same data block twice; a data block that is the index. */
    add_entry(&data, 0, "", 0, header, 2);
    p = add_entries(&file, &data, false);
    add_place(&index, "a", p);
    add_place(&index, "b", p);
    add_footer(&file, add_entries(&file, &index, false), in("t.index"));
    refused(in("t"), "lies within one before");
    add_place(&index, "", (struct place){ 0, 13 }); /* its own size: 3 + 2 + 8 */
    p = add_entries(&file, &index, false);
    assert_int_equal(p.size, 13);
    add_footer(&file, p, in("t.index"));
    refused(in("t"), "the header names 0 shards");

    /* Blocks beyond the end, entries beyond theirs. */
    add_footer(&file, (struct place){ 0, VAST }, in("t.index"));
    refused(in("t"), "goes beyond the blocks' end");
    add_footer(&file, (struct place){ UINT64_MAX - 3, 8 }, in("t.index"));
    refused(in("t"), "goes beyond the blocks' end");
    add_place(&index, "a", (struct place){ 1 << 20, 10 });
    add_footer(&file, add_entries(&file, &index, false), in("t.index"));
    refused(in("t"), "goes beyond the blocks' end");
    for (int i = 0; i < 3; i++) {
        add_varint(&index, 0);
        add_varint(&index, i == 0 ? VAST : 0);
        add_varint(&index, i == 1 ? UINT64_MAX : i == 2 ? 20 : 0);
        add_footer(&file, add_entries(&file, &index, false), in("t.index"));
        refused(in("t"), "its entry at 0 goes beyond its end");
    }
    add_entry(&index, 0, "a", 1, "\xff\xff", 2);
    add_footer(&file, add_entries(&file, &index, false), in("t.index"));
    refused(in("t"), "something else than blocks' places");

    /* Restarts, types, packing. */
    add_footer(&file, add_block(&file, "\xff\xff\xff\xff", 4, 0), in("t.index"));
    refused(in("t"), "4294967295 restarts do not fit");
    add_footer(&file, add_block(&file, "ab", 2, 0), in("t.index"));
    refused(in("t"), "do not fit its 2 bytes");
    add_footer(&file, add_block(&file, "\0\0\0\0", 4, 2), in("t.index"));
    refused(in("t"), "known are 0, none, and 1, snappy");
    add_footer(&file, add_block(&file, "\xff\xff\xff\xff\x0f" "abc", 8, 1), in("t.index"));
    refused(in("t"), "no snappy data"); /* says 4 GiB */
    add_footer(&file, add_block(&file, "\x08" "abcdef", 7, 1), in("t.index"));
    refused(in("t"), "cannot be unpacked");

    /* Names that unpack to far more than the file: 4,000 bytes, then again and again one more. */
    char *name = pm_malloc(4000);
    memset(name, 'n', 4000);
    add_entry(&data, 0, "", 0, header, 2);
    add_entry(&data, 0, name, 4000, "", 0);
    for (size_t i = 0; i < 4000; i++)
        add_entry(&data, 4000 + i, "x", 1, "", 0);
    pm_free(name);
    p = add_entries(&file, &data, false);
    add_place(&index, "~", p);
    add_footer(&file, add_entries(&file, &index, false), in("t.index"));
    refused(in("t"), "come to more than 64 times the file");
}

/* ---- V2: impossible entries -------------------------------------------------------------- */

struct claim {
    int dtype, rank, shard, slices; /* slices: 0, or how many of `slice` */
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

/* Extents of a slice along the first of `rank` dimensions. */
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

static void finish(struct pm_tf_table_writer *w, const char *path)
{
    pm_tf_table_finish(w);
    put(path, w->out.text, w->out.length);
    pm_tf_table_free(w);
}

static void v2_claims(void **state)
{
    static const struct {
        struct claim c;
        const char *why; /* NULL: it can be opened */
    } cases[] = {
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64 }, NULL },
        { { .dtype = 7, .rank = 1, .dim = { VAST }, .size = 64 }, NULL }, /* strings are as many as it says */
        { { .dtype = 1, .rank = 1, .dim = { VAST }, .size = 64 }, "does not fit its 64 bytes" },
        { { .dtype = 1, .rank = 1, .dim = { VAST / 4 }, .size = VAST }, "do not lie in the file's 64" },
        { { .dtype = 1, .rank = 2, .dim = { VAST, VAST }, .size = 64 }, "larger than any file" },
        { { .dtype = 2, .rank = 1, .dim = { VAST * 4 }, .size = 64 }, "larger than any file" },
        { { .dtype = 1, .rank = 1, .dim = { -16 }, .size = 64 }, "larger than any file" },
        { { .dtype = 1, .rank = 9, .dim = { 1 }, .size = 4 }, "more than 8 dimensions" },
        { { .dtype = 1, .rank = 1, .dim = { 15 }, .size = 64 }, "does not fit its 64 bytes" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64, .offset = 1 }, "do not lie in the file's 64" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64, .offset = -1 }, "do not lie in" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = -64 }, "do not lie in" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64, .shard = 1 }, "lies in shard 1 of 1" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .size = 64, .shard = -1 }, "lies in shard -1 of 1" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 1, .length = { 16 } }, "has no entry" },
        { { .dtype = 1, .rank = 1, .dim = { VAST }, .slices = 1, .length = { VAST } },
          "larger than all shards" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 1, .start = { 8 }, .length = { 9 } },
          "goes beyond its shape" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 1, .start = { -1 }, .length = { 9 } },
          "goes beyond its shape" },
        { { .dtype = 1, .rank = 1, .dim = { 16 }, .slices = 1, .start = { VAST }, .length = { VAST } },
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
        { 2, 0, 0, "t.data-00000-of-00002: cannot open" }, { 0, 0, 0, "names 0 shards" },
        { -1, 0, 0, "names -1 shards" },                   { INT32_MAX, 0, 0, "names 2147483647 shards" },
        { 1, 1, 0, "largest byte first" },                 { 1, 0, 2, "wants a reader of version 2" },
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
    /* TensorFlow 2's suffix makes two names one. */
    w = (struct pm_tf_table_writer){ 0 };
    add_head(&w, 1, 0, 0);
    add_claim(&w, &c, "w", 1);
    add_claim(&w, &c, "w/.ATTRIBUTES/VARIABLE_VALUE", 28);
    finish(&w, in("t.index"));
    refused(in("t"), "occurs twice");
}

/* A variable of 16 floats in two slices, whose entries say what they should, or not. */
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
        /* Opened, and the data's checksum, which is 0 here, is missed when it is read. */
        struct pm_tensor_file *f = opened(in("t"));
        double v;
        assert_int_equal(pm_tensor_file_doubles(f, pm_tensor_file_get(f, 0), 9, 1, &v), PM_EDATA);
        assert_non_null(strstr(pm_error_text(), "its checksum is"));
        pm_tensor_file_close(&f);
    }
    pm_str_free(&key);
}

/* ---- V1: impossible entries -------------------------------------------------------------- */

/* A checkpoint of one variable "w": its claimed shape and slices, and how many values its one entry
 * has under which name. NULL: no entry. */
static void v1_file(const char *path, int dtype, int64_t dim, int slices, size_t values, const char *name)
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
        const char *name, *open, *read; /* why it is not opened or not read */
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
        v1_file(in("t1"), cases[i].dtype, cases[i].dim, cases[i].slices, cases[i].values, cases[i].name);
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
    refused(in("t1"), "no V1 checkpoint (the index of a V2 one");
}

/* ---- packed blocks ----------------------------------------------------------------------- */

struct repack {
    struct pm_str file, index, data;
    int count;
    struct pm_str last;
};

static void end_block(struct repack *r)
{
    struct pm_str value = { 0 };
    const struct place p = add_entries(&r->file, &r->data, true);

    add_varint(&value, p.offset);
    add_varint(&value, p.size);
    add_entry(&r->index, 0, r->last.text, r->last.length, value.text, value.length);
    pm_str_free(&value);
}

/* Three entries to a block. */
static int repack_entry(void *ctx, const struct pm_tf_entry *e)
{
    struct repack *r = ctx;

    add_entry(&r->data, 0, e->key, e->key_size, e->value, e->value_size);
    r->last.length = 0;
    pm_str_bytes(&r->last, e->key, e->key_size);
    if (++r->count % 3 == 0)
        end_block(r);
    return PM_OK;
}

static void repack(const char *from, const char *to)
{
    static const struct pm_tensor_format none = { .name = "none" };
    struct pm_tensor_file *f = pm_tensor_file_make(from, &none);
    struct pm_tf_table t;
    struct repack r = { 0 };

    assert_int_equal(pm_tensor_file_source(f, from, NULL), 0);
    assert_int_equal(pm_tf_table_open(f, 0, &t), 0);
    assert_int_equal(pm_tf_table_walk(&t, repack_entry, &r), 0);
    if (r.count % 3)
        end_block(&r);
    add_footer(&r.file, add_entries(&r.file, &r.index, true), to);
    pm_str_free(&r.last);
    pm_tf_table_close(&t);
    pm_tensor_file_close(&f);
}

static void packed(void **state)
{
    struct pm_tensor_file *f, *want;

    (void)state;
    repack(golden("plain/model.ckpt-7.index"), in("p.index"));
    copy(golden("plain/model.ckpt-7.data-00000-of-00001"), in("p.data-00000-of-00001"));
    repack(golden("v1/model.ckpt-7"), in("p1"));
    for (int i = 0; i < 2; i++) {
        f = opened(in(i ? "p1" : "p"));
        want = opened(golden(i ? "v1" : "plain"));
        assert_int_equal(pm_tensor_file_count(f), pm_tensor_file_count(want));
        for (size_t k = 0; k < pm_tensor_file_count(f); k++)
            assert_true(good(f, pm_tensor_file_get(f, k), want));
        pm_tensor_file_close(&f);
        pm_tensor_file_close(&want);
    }
}

/* ---- paths ------------------------------------------------------------------------------- */

static void state_file(const char *to, const char *contents)
{
    put(text("%s/checkpoint", to), contents, strlen(contents));
}

static void places(void **state)
{
    const char *d = in("places"), *e = in("more");
    struct pm_tensor_file *f;

    (void)state;
    assert_int_equal(pm_make_folders(d), 0);
    assert_int_equal(pm_make_folders(e), 0);
    refused(d, "no format of tensors that this program knows");
    refused(in("nothing"), "no such file");
    copy(golden("plain/model.ckpt-7.index"), text("%s/a\"b.index", d));
    refused(d, "data-00000-of-00001: cannot open"); /* one .index */
    copy(golden("plain/model.ckpt-7.data-00000-of-00001"), text("%s/a\"b.data-00000-of-00001", d));
    f = opened(d);
    pm_tensor_file_close(&f);
    copy(golden("plain/model.ckpt-7.index"), text("%s/z.index", d));
    refused(d, "more than one checkpoint (a\"b.index, z.index)");
    /* Escapes; a comment; a path that was elsewhere once; from another folder; nowhere. */
    state_file(d, "# written by hand\nmodel_checkpoint_path: \"a\\\"b\"\n");
    f = opened(d);
    assert_int_equal(pm_tensor_file_count(f), 17);
    pm_tensor_file_close(&f);
    state_file(d, "  model_checkpoint_path : '/no/such/folder/a\\042b'");
    f = opened(d);
    pm_tensor_file_close(&f);
    state_file(e, text("model_checkpoint_path: \"%s/a\\\"b\"\n", d));
    f = opened(e);
    pm_tensor_file_close(&f);
    state_file(e, "model_checkpoint_path: \"../places/a\\\"b\"\n");
    f = opened(text("%s/checkpoint", e));
    pm_tensor_file_close(&f);
    state_file(d, "all_model_checkpoint_paths: \"a\\\"b\"\nmodel_checkpoint_path: \"gone\"\n");
    refused(d, "names ");
    refused(text("%s/checkpoint", d), "which is not there");
    state_file(d, "something else");
    refused(d, "more than one checkpoint");
    refused(text("%s/checkpoint", d), "no format of tensors");

    /* SavedModel without values; a shard without its index; one shard of a set missing; two sets. */
    put(text("%s/saved_model.pb", d), "x", 1);
    refused(text("%s/saved_model.pb", d), "give its folder");
    assert_int_equal(unlink(text("%s/checkpoint", d)), 0);
    assert_int_equal(unlink(text("%s/z.index", d)), 0);
    assert_int_equal(unlink(text("%s/a\"b.index", d)), 0);
    refused(d, "variables/variables.index: cannot open");
    refused(text("%s/a\"b.data-00000-of-00001", d), "of which ");
    copy(golden("v1_shards/model.ckpt-7-00001-of-00003"), text("%s/m-00001-of-00003", d));
    refused(text("%s/m", d), "m-00000-of-00003: cannot open");
    copy(golden("v1_shards/model.ckpt-7-00000-of-00003"), text("%s/m-00000-of-00003", d));
    copy(golden("v1_shards/model.ckpt-7-00002-of-00003"), text("%s/m-00002-of-00003", d));
    f = opened(text("%s/m", d));
    assert_int_equal(pm_tensor_file_count(f), 16);
    pm_tensor_file_close(&f);
    copy(golden("v1_shards/model.ckpt-7-00002-of-00003"), text("%s/m-00000-of-00001", d));
    refused(text("%s/m", d), "sets of different sizes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_short),  cmocka_unit_test(flipped),   cmocka_unit_test(blocks),
        cmocka_unit_test(v2_claims),  cmocka_unit_test(v2_headers), cmocka_unit_test(v2_slices),
        cmocka_unit_test(v1_claims),  cmocka_unit_test(packed),    cmocka_unit_test(places),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
