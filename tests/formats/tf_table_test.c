/* Tables of TensorFlow checkpoints: each kind of invalid block is refused with the reason, and
 * compressed blocks are read. */
#include <pumice/formats.h>
#include <snappy-c.h>

#include "formats/tensorflow/tf_checkpoint.h"
#include "formats/tf_files.h"

#define VAST (INT64_C(1) << 60)

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

/* Appends the contents as a block with type and checksum. */
static struct place add_block(struct pm_str *file, const void *contents, size_t size, int type)
{
    const struct place p = { file->length, size };

    pm_str_bytes(file, contents, size);
    pm_str_bytes(file, &(uint8_t){ (uint8_t)type }, 1);
    add_u32(file, pm_crc32c_masked(file->text + p.offset, size + 1));
    return p;
}

/* Appends entries with their restarts; packed: compressed by snappy. Frees the entries. */
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

    /* A valid table; the other cases vary it. */
    add_entry(&data, 0, "", 0, header, 2);
    p = add_entries(&file, &data, false);
    add_place(&index, "a", p);
    add_footer(&file, add_entries(&file, &index, false), in("t.index"));
    struct pm_tensor_file *f = opened(in("t"));
    assert_int_equal(pm_tensor_file_count(f), 0);
    pm_tensor_file_close(&f);

    /* A key that shares more bytes with the last key than that key has. */
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

    /* The same data block listed twice, and a data block that is the index itself. */
    add_entry(&data, 0, "", 0, header, 2);
    p = add_entries(&file, &data, false);
    add_place(&index, "a", p);
    add_place(&index, "b", p);
    add_footer(&file, add_entries(&file, &index, false), in("t.index"));
    refused(in("t"), "lies within one before");
    add_place(&index, "", (struct place){ 0, 13 }); /* the size of the block itself: 3 + 2 + 8 */
    p = add_entries(&file, &index, false);
    assert_int_equal(p.size, 13);
    add_footer(&file, p, in("t.index"));
    refused(in("t"), "the header names 0 shards");

    /* Blocks beyond the end of the file, and entries beyond the end of their block. */
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
    refused(in("t"), "not a block handle");

    /* Invalid restarts, types and compression. */
    add_footer(&file, add_block(&file, "\xff\xff\xff\xff", 4, 0), in("t.index"));
    refused(in("t"), "4294967295 restarts do not fit");
    add_footer(&file, add_block(&file, "ab", 2, 0), in("t.index"));
    refused(in("t"), "do not fit its 2 bytes");
    add_footer(&file, add_block(&file, "\0\0\0\0", 4, 2), in("t.index"));
    refused(in("t"), "known are 0 (none) and 1 (snappy)");
    add_footer(&file, add_block(&file, "\xff\xff\xff\xff\x0f" "abc", 8, 1), in("t.index"));
    refused(in("t"), "no snappy data"); /* claims 4 GiB */
    add_footer(&file, add_block(&file, "\x08" "abcdef", 7, 1), in("t.index"));
    refused(in("t"), "cannot be unpacked");

    /* Names that unpack to far more than the file: one of 4,000 bytes, then many that are a byte
     * longer. */
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

/* ---- compressed blocks ------------------------------------------------------------------- */

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

/* Writes three entries to a block. */
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(blocks), cmocka_unit_test(packed) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
