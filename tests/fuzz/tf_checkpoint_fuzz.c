/* TensorFlow checkpoints. The first byte chooses the form (modulo 4); bit 2 selects V1 instead
 * of V2, bit 3 blocks compressed by snappy:
 *   0 a whole table file;
 *   1 entries {u8 key size, u16 value size, key, value}, from which a table is made;
 *   2 the contents of a data block, and in the last 64 bytes those of the index block; types,
 *     checksums and footer are filled in, so that the fuzzer need not guess them;
 *   3 the text file `checkpoint` of a folder that holds the V2 file b.
 * The only shard of V2 has 256 bytes; each byte is its offset. */
#include "fuzz.h"
#include "fuzz_tensors.h"
#include "fuzz_tf.h"

#include <pumice/formats.h>

static void add_u32(struct pm_str *s, uint32_t v)
{
    const uint8_t bytes[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                               (uint8_t)(v >> 24) };

    pm_str_bytes(s, bytes, 4);
}

static void add_block(struct pm_str *s, const uint8_t *data, size_t size, char type)
{
    const size_t start = s->length;

    pm_str_bytes(s, data, size);
    pm_str_bytes(s, &type, 1);
    add_u32(s, pm_crc32c_masked(s->text + start, size + 1));
}

static size_t add_varint(uint8_t *out, uint64_t v)
{
    size_t n = 0;

    for (; v > 127; v >>= 7)
        out[n++] = (uint8_t)(v | 128);
    out[n++] = (uint8_t)v;
    return n;
}

static void blocks(struct pm_str *out, const uint8_t *data, size_t size, char type)
{
    const size_t index = size < 64 ? size : 64, first = size - index;
    uint8_t footer[48] = { 0 };
    size_t n = 2;

    add_block(out, data, first, type);
    n += add_varint(footer + n, out->length);
    add_varint(footer + n, index);
    add_block(out, data + first, index, 0);
    memcpy(footer + 40, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
    pm_str_bytes(out, footer, sizeof footer);
}

static void begin(void)
{
    uint8_t shard[256];

    if (!fuzz_begin())
        return;
    for (int i = 0; i < 256; i++)
        shard[i] = (uint8_t)i;
    fuzz_write(fuzz_path("b.data-00000-of-00001"), shard, sizeof shard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_str table = { 0 };

    begin();
    if (size == 0)
        return 0;
    const uint8_t kind = *data++;
    size--;
    if (kind % 4 == 0)
        pm_str_bytes(&table, data, size);
    else if (kind % 4 == 1)
        fuzz_tf_table(&table, data, size);
    else if (kind % 4 == 2)
        blocks(&table, data, size, kind >> 3 & 1);
    if (kind % 4 == 3) {
        fuzz_write(fuzz_path("checkpoint"), data, size);
        fuzz_tf_read(fuzz_folder);
        remove(fuzz_path("checkpoint"));
    } else if (kind & 4) {
        fuzz_write(fuzz_path("v"), table.text, table.length);
        fuzz_tf_read(fuzz_path("v"));
    } else {
        fuzz_write(fuzz_path("b.index"), table.text, table.length);
        fuzz_tf_read(fuzz_path("b"));
    }
    pm_str_free(&table);
    return 0;
}
