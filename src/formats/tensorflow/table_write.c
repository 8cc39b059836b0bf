/* tf_table, writing (table.c describes the format). The table is built in memory, because it holds
 * only names and positions. The bytes equal those that TensorFlow writes: uncompressed data blocks
 * of 256 KiB, a full key every 16 entries, and in the index the shortest key that separates two
 * blocks. */
#include "formats/tensorflow/table.h"
#include "formats/wire.h"

#include <pumice/formats.h>
#include <string.h>

enum { BLOCK = 256 << 10, EVERY = 16 };

static const uint8_t magic[8] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };

static void add_u32(struct pm_str *s, uint32_t v)
{
    const uint8_t bytes[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                               (uint8_t)(v >> 24) };

    pm_str_bytes(s, bytes, 4);
}

/* ---- a block --------------------------------------------------------------------------- */

static void block_add(struct pm_tf_block_writer *b, const char *key, size_t key_size,
                      const void *value, size_t value_size)
{
    size_t shared = 0;

    if (b->count++ % b->every == 0)
        add_u32(&b->restarts, (uint32_t)b->entries.length);
    else
        while (shared < key_size && shared < b->last.length && key[shared] == b->last.text[shared])
            shared++;
    pm_wire_add_varint(&b->entries, shared);
    pm_wire_add_varint(&b->entries, key_size - shared);
    pm_wire_add_varint(&b->entries, value_size);
    pm_str_bytes(&b->entries, key + shared, key_size - shared);
    pm_str_bytes(&b->entries, value, value_size);
    b->last.length = 0;
    pm_str_bytes(&b->last, key, key_size);
}

/* Appends the block to the table, empties it, and returns its position as a handle. */
static void block_end(struct pm_tf_table_writer *w, struct pm_tf_block_writer *b,
                      struct pm_str *handle)
{
    const size_t start = w->out.length;
    size_t size;

    if (b->restarts.length == 0)
        add_u32(&b->restarts, 0);
    pm_str_bytes(&w->out, b->entries.text, b->entries.length);
    pm_str_bytes(&w->out, b->restarts.text, b->restarts.length);
    add_u32(&w->out, (uint32_t)(b->restarts.length / 4));
    size = w->out.length - start;
    pm_str_bytes(&w->out, "\0", 1); /* not packed */
    add_u32(&w->out, pm_crc32c_masked(w->out.text + start, size + 1));
    handle->length = 0;
    pm_wire_add_varint(handle, start);
    pm_wire_add_varint(handle, size);
    b->entries.length = b->restarts.length = b->last.length = 0;
    b->count = 0;
}

static void block_free(struct pm_tf_block_writer *b)
{
    pm_str_free(&b->entries);
    pm_str_free(&b->restarts);
    pm_str_free(&b->last);
}

/* ---- the table ------------------------------------------------------------------------- */

/* Shortens a block's last key to the shortest key that is still less than the next block's first
 * key. */
static void part(struct pm_str *last, const char *next, size_t next_size)
{
    const size_t least = last->length < next_size ? last->length : next_size;
    size_t same = 0;

    while (same < least && last->text[same] == next[same])
        same++;
    if (same == least)
        return;
    const uint8_t byte = (uint8_t)last->text[same];
    if (byte < 255 && byte + 1 < (uint8_t)next[same]) {
        last->text[same] = (char)(byte + 1);
        last->length = same + 1;
    }
}

/* The same for the last block. */
static void part_end(struct pm_str *last)
{
    for (size_t i = 0; i < last->length; i++)
        if ((uint8_t)last->text[i] != 255) {
            last->text[i]++;
            last->length = i + 1;
            return;
        }
}

static void data_end(struct pm_tf_table_writer *w)
{
    w->last.length = 0;
    pm_str_bytes(&w->last, w->data.last.text, w->data.last.length);
    block_end(w, &w->data, &w->handle);
    w->pending = true;
}

static void index_add(struct pm_tf_table_writer *w)
{
    block_add(&w->index, w->last.text, w->last.length, w->handle.text, w->handle.length);
    w->pending = false;
}

void pm_tf_table_add(struct pm_tf_table_writer *w, const char *key, size_t key_size,
                     const void *value, size_t value_size)
{
    w->data.every = EVERY;
    w->index.every = 1;
    if (w->pending) {
        part(&w->last, key, key_size);
        index_add(w);
    }
    block_add(&w->data, key, key_size, value, value_size);
    if (w->data.entries.length + w->data.restarts.length + 4 >= BLOCK)
        data_end(w);
}

void pm_tf_table_finish(struct pm_tf_table_writer *w)
{
    struct pm_tf_block_writer nothing = { .every = 1 };
    struct pm_str footer = { 0 }, index = { 0 };

    if (w->data.count)
        data_end(w);
    block_end(w, &nothing, &footer);
    if (w->pending) {
        part_end(&w->last);
        index_add(w);
    }
    block_end(w, &w->index, &index);
    pm_str_bytes(&footer, index.text, index.length);
    while (footer.length < PM_TF_FOOTER - sizeof magic)
        pm_str_bytes(&footer, "\0", 1);
    pm_str_bytes(&w->out, footer.text, footer.length);
    pm_str_bytes(&w->out, magic, sizeof magic);
    block_free(&nothing);
    pm_str_free(&footer);
    pm_str_free(&index);
}

void pm_tf_table_free(struct pm_tf_table_writer *w)
{
    block_free(&w->data);
    block_free(&w->index);
    pm_str_free(&w->out);
    pm_str_free(&w->last);
    pm_str_free(&w->handle);
}
