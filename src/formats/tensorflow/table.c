/* tf_table, reading: the last 48 bytes are two handles (offset and size as varints) of an unused
 * block and of the index, then zeros, then the magic number. The index has one entry per data
 * block: a key not less than the block's last key, and the block's handle.
 *
 * A block is its contents, a type byte (0 plain, 1 snappy), and a masked crc32c of both. Its
 * contents are entries {varint shared, varint non_shared, varint size, rest of the key, value},
 * shared is the length of the common prefix with the previous key. The u32 offsets of entries
 * without a shared prefix and their number follow; the reader does not need them.
 *
 * A small malicious file cannot expand without bound: data blocks must not overlap, keys must
 * increase, and unpacked blocks and names are limited to a multiple of the file size. */
#include "formats/little.h"
#include "formats/tensorflow/table.h"

#include <fcntl.h>
#include <pumice/formats.h>
#include <snappy-c.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

enum {
    SNAPPY_MOST = 32,    /* its 3-byte copies make 64 bytes: 22 times */
    NAMES_MOST = 64,     /* writers begin anew every 16 keys, so 16 times */
    KEPT = 4 << 20,      /* a block of the usual 256 KiB, not one that a large variable fills */
};

static const uint8_t magic[8] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };

int pm_tf_table_bad(const struct pm_tf_table *t, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return pm_fail(PM_EDATA, "%s: %s", t->f->sources[t->source].path, text);
}

/* ---- numbers --------------------------------------------------------------------------- */

/* A varint at *at, before end; false when it goes beyond it or 64 bits. */
static bool get_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t byte = *(*at)++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

struct handle {
    uint64_t offset, size;
};

static bool get_handle(const uint8_t **at, const uint8_t *end, struct handle *h)
{
    return get_varint(at, end, &h->offset) && get_varint(at, end, &h->size);
}

/* The first bytes of a V1 checkpoint: an empty key, the size of its value, and the list of
 * variables in it. They identify a truncated file, which has no footer. */
static bool begins_v1(const uint8_t *p, const uint8_t *end)
{
    uint64_t value, list;

    if (end - p < 3 || p[0] != 0 || p[1] != 0)
        return false;
    p += 2;
    return get_varint(&p, end, &value) && p < end && *p++ == 0x0a && get_varint(&p, end, &list) &&
           list > 0 && list < value;
}

bool pm_tf_is_table(const char *path)
{
    uint8_t first[16], last[sizeof magic];
    uint64_t size;
    int fd;

    if (!pm_file_exists(path) || pm_file_open(path, &fd, &size) < 0)
        return false;
    const ssize_t n = pread(fd, first, sizeof first, 0);
    const bool ends = size >= PM_TF_FOOTER &&
                      pread(fd, last, sizeof last, (off_t)(size - sizeof last)) == sizeof last &&
                      memcmp(last, magic, sizeof magic) == 0;

    close(fd);
    return ends || (n > 0 && begins_v1(first, first + n));
}

/* ---- blocks ---------------------------------------------------------------------------- */

static void block_free(struct pm_tf_block *b)
{
    pm_free(b->data);
    *b = (struct pm_tf_block){ 0 };
}

/* data, size: the block as stored in the file. On success b owns a copy of its contents. */
static int unpack(const struct pm_tf_table *t, uint8_t **data, size_t *size, uint64_t offset)
{
    size_t length = 0;
    uint8_t *plain;

    if (snappy_uncompressed_length((const char *)*data, *size, &length) != SNAPPY_OK ||
        length / SNAPPY_MOST > *size)
        return pm_tf_table_bad(t, "the block at offset %llu is damaged: no snappy data",
                               (unsigned long long)offset);
    plain = pm_malloc(length + 1);
    if (snappy_uncompress((const char *)*data, *size, (char *)plain, &length) != SNAPPY_OK) {
        pm_free(plain);
        return pm_tf_table_bad(t, "the block at offset %llu is damaged: it cannot be unpacked",
                               (unsigned long long)offset);
    }
    pm_free(*data);
    *data = plain;
    *size = length;
    return PM_OK;
}

/* Cuts off what follows the entries. */
static int find_end(const struct pm_tf_table *t, struct pm_tf_block *b)
{
    const uint64_t restarts = b->size < 4 ? 0 : pm_little(b->data + b->size - 4, 4);

    if (b->size < 4 || 4 * restarts + 4 > b->size)
        return pm_tf_table_bad(
            t, "the block at offset %llu: %llu restarts do not fit its %zu bytes",
            (unsigned long long)b->offset, (unsigned long long)restarts, b->size);
    b->size -= (size_t)(4 * restarts + 4);
    return PM_OK;
}

static int block_read(const struct pm_tf_table *t, struct handle h, struct pm_tf_block *b)
{
    int err = PM_OK;
    uint32_t stored, found;

    *b = (struct pm_tf_block){ .offset = h.offset };
    if (h.offset > t->end || t->end - h.offset < PM_TF_BLOCK_TAIL ||
        h.size > t->end - h.offset - PM_TF_BLOCK_TAIL)
        PM_TRY(pm_tf_table_bad(t, "a block of %llu bytes at offset %llu goes beyond the blocks' "
                                  "end at %llu: damaged",
                               (unsigned long long)h.size, (unsigned long long)h.offset,
                               (unsigned long long)t->end));
    b->size = (size_t)h.size;
    b->data = pm_malloc(b->size + PM_TF_BLOCK_TAIL);
    PM_TRY(pm_tensor_file_read(t->f, t->source, h.offset, b->size + PM_TF_BLOCK_TAIL, b->data));
    stored = (uint32_t)pm_little(b->data + b->size + 1, 4);
    found = pm_crc32c_masked(b->data, b->size + 1);
    if (stored != found)
        PM_TRY(pm_tf_table_bad(t, "the block at offset %llu (%zu bytes): its checksum is %08x, the "
                                  "file says %08x: damaged",
                               (unsigned long long)h.offset, b->size, found, stored));
    if (b->data[b->size] > 1)
        PM_TRY(pm_tf_table_bad(t, "the block at offset %llu has an unknown compression type "
                                  "(%d); known are 0 (none) and 1 (snappy)",
                               (unsigned long long)h.offset, b->data[b->size]));
    if (b->data[b->size] == 1)
        PM_TRY(unpack(t, &b->data, &b->size, h.offset));
    PM_TRY(find_end(t, b));
out:
    if (err < 0)
        block_free(b);
    return err;
}

/* ---- entries --------------------------------------------------------------------------- */

struct cursor {
    const struct pm_tf_table *t;
    const struct pm_tf_block *block;
    size_t at;
    struct pm_str key; /* owned */
};

/* 1 and the next entry, 0 at the end of the block, negative when it is damaged. */
static int next_entry(struct cursor *c, struct pm_tf_entry *e)
{
    const uint8_t *start = c->block->data + c->at, *end = c->block->data + c->block->size,
                  *p = start;
    uint64_t shared, rest, value;

    if (p == end)
        return 0;
    if (!get_varint(&p, end, &shared) || !get_varint(&p, end, &rest) ||
        !get_varint(&p, end, &value) || rest > (uint64_t)(end - p) ||
        value > (uint64_t)(end - p) - rest)
        return pm_tf_table_bad(c->t, "the block at offset %llu: its entry at %zu goes beyond its "
                                     "end: damaged",
                               (unsigned long long)c->block->offset, c->at);
    if (shared > c->key.length)
        return pm_tf_table_bad(c->t,
                               "the block at offset %llu: its entry at %zu shares %llu bytes "
                               "with a key of %zu: damaged",
                               (unsigned long long)c->block->offset, c->at,
                               (unsigned long long)shared, c->key.length);
    c->key.length = (size_t)shared;
    pm_str_bytes(&c->key, p, (size_t)rest);
    *e = (struct pm_tf_entry){ c->key.text, c->key.length, p + rest, (size_t)value };
    c->at = (size_t)(p + rest + value - c->block->data);
    return 1;
}

static int compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    const size_t n = a_size < b_size ? a_size : b_size;
    const int order = n ? memcmp(a, b, n) : 0;

    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int data_handle(const struct pm_tf_table *t, const struct pm_tf_entry *e, struct handle *h)
{
    const uint8_t *p = e->value;

    if (!get_handle(&p, p + e->value_size, h))
        return pm_tf_table_bad(t,
                               "the index at offset %llu holds an entry that is not a block handle",
                               (unsigned long long)t->index.offset);
    return PM_OK;
}

/* ---- the table ------------------------------------------------------------------------- */

int pm_tf_table_open(const struct pm_tensor_file *f, int source, struct pm_tf_table *out)
{
    int err = PM_OK;
    uint8_t footer[PM_TF_FOOTER];
    const uint8_t *p = footer, *end = footer + PM_TF_FOOTER - sizeof magic;
    struct handle unused, index = { 0 };
    const uint64_t size = f->sources[source].size;

    *out = (struct pm_tf_table){ .f = f, .source = source, .end = size - PM_TF_FOOTER };
    if (size < PM_TF_FOOTER)
        PM_TRY(pm_tf_table_bad(out,
                               "%llu bytes are too few for a TensorFlow table (cut short?)",
                               (unsigned long long)size));
    PM_TRY(pm_tensor_file_read(f, source, out->end, sizeof footer, footer));
    if (memcmp(end, magic, sizeof magic) != 0)
        PM_TRY(pm_tf_table_bad(
            out,
            "does not end like a TensorFlow table: not a checkpoint, or cut short at %llu bytes",
            (unsigned long long)size));
    if (!get_handle(&p, end, &unused) || !get_handle(&p, end, &index))
        PM_TRY(pm_tf_table_bad(out, "the footer at offset %llu is damaged",
                               (unsigned long long)out->end));
    PM_TRY(block_read(out, index, &out->index));
out:
    return err;
}

void pm_tf_table_close(struct pm_tf_table *t)
{
    block_free(&t->index);
    block_free(&t->last);
}

/* State of a walk over all blocks. */
struct walk {
    pm_tf_use *use;
    void *ctx;
    struct pm_str last;   /* the key before */
    bool any;
    uint64_t names, from; /* bytes of all keys so far; where the next block may begin */
};

static int walk_block(const struct pm_tf_table *t, struct handle h, struct walk *w)
{
    int err = PM_OK, got;
    struct pm_tf_block b = { 0 };
    struct cursor c = { .t = t, .block = &b };
    struct pm_tf_entry e;

    if (h.offset < w->from)
        PM_TRY(pm_tf_table_bad(t, "the block at offset %llu lies within one before: damaged",
                               (unsigned long long)h.offset));
    PM_TRY(block_read(t, h, &b));
    w->from = h.offset + h.size;
    while ((got = next_entry(&c, &e)) > 0) {
        if (w->any && compare(e.key, e.key_size, w->last.text, w->last.length) <= 0)
            PM_TRY(pm_tf_table_bad(t, "the block at offset %llu: key '%.200s' does not follow "
                                      "'%.200s': damaged",
                                   (unsigned long long)b.offset, e.key, w->last.text));
        w->names += e.key_size;
        if (w->names / NAMES_MOST > t->end)
            PM_TRY(pm_tf_table_bad(t, "its names come to more than %d times the file: damaged",
                                   NAMES_MOST));
        PM_TRY(w->use(w->ctx, &e));
        w->any = true;
        w->last.length = 0;
        pm_str_bytes(&w->last, e.key, e.key_size);
    }
    PM_TRY(got);
out:
    pm_str_free(&c.key);
    block_free(&b);
    return err;
}

int pm_tf_table_walk(const struct pm_tf_table *t, pm_tf_use *use, void *ctx)
{
    int err = PM_OK, got;
    struct walk w = { .use = use, .ctx = ctx };
    struct cursor c = { .t = t, .block = &t->index };
    struct pm_tf_entry e;
    struct handle h = { 0 };

    while ((got = next_entry(&c, &e)) > 0) {
        PM_TRY(data_handle(t, &e, &h));
        PM_TRY(walk_block(t, h, &w));
    }
    PM_TRY(got);
out:
    pm_str_free(&c.key);
    pm_str_free(&w.last);
    return err;
}

/* The first entry at or after the key; 0 when there is none. */
static int seek(struct cursor *c, const char *key, size_t key_size, struct pm_tf_entry *e)
{
    int got;

    while ((got = next_entry(c, e)) > 0)
        if (compare(e->key, e->key_size, key, key_size) >= 0)
            break;
    return got;
}

int pm_tf_table_find(struct pm_tf_table *t, const char *key, size_t key_size, pm_tf_use *use,
                     void *ctx)
{
    int err = PM_OK, got;
    struct cursor index = { .t = t, .block = &t->index }, c = { .t = t, .block = &t->last };
    struct pm_tf_entry e;
    struct handle h = { 0 };

    PM_TRY(got = seek(&index, key, key_size, &e));
    if (got > 0) {
        PM_TRY(data_handle(t, &e, &h));
        if (!t->last.data || t->last.offset != h.offset) {
            block_free(&t->last);
            PM_TRY(block_read(t, h, &t->last));
        }
        PM_TRY(got = seek(&c, key, key_size, &e));
    }
    if (got == 0 || compare(e.key, e.key_size, key, key_size) != 0)
        PM_TRY(pm_tf_table_bad(t, "the table has no entry for a key that it should have: damaged"));
    PM_TRY(use(ctx, &e));
out:
    pm_str_free(&index.key);
    pm_str_free(&c.key);
    if (t->last.size > KEPT)
        block_free(&t->last);
    return err;
}
