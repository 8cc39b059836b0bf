/* TFRecord files: u64 length | u32 masked crc of those 8 bytes | data | u32 masked crc of data, all
 * little-endian, records back to back. crc is Castagnoli's (reflected 0x82F63B78, all ones before
 * and after); mask(c) = rotate_right(c, 15) + 0xa282ead8, because the crc of data that contain crcs
 * would be a weak check. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/little.h"
#include "formats/tfrecord.h"

/* ---- crc32c ------------------------------------------------------------------------------ */

/* table[k][b]: crc of byte b followed by k zero bytes, so eight bytes cost eight look-ups. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
        table[0][b] = c;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
}

static uint32_t crc_plain(uint32_t c, const uint8_t *p, size_t n)
{
    pthread_once(&table_once, fill_table);
    for (; n >= 8; p += 8, n -= 8) {
        const uint32_t lo = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                                 (uint32_t)p[3] << 24);
        c = table[7][lo & 255] ^ table[6][lo >> 8 & 255] ^ table[5][lo >> 16 & 255] ^
            table[4][lo >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (; n; p++, n--)
        c = c >> 8 ^ table[0][(c ^ *p) & 255];
    return c;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t c, const uint8_t *p, size_t n)
{
    uint64_t wide = c;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        wide = __builtin_ia32_crc32di(wide, v);
    }
    c = (uint32_t)wide;
    for (; n; p++, n--)
        c = __builtin_ia32_crc32qi(c, *p);
    return c;
}
#endif

uint32_t pm_crc32c_more(uint32_t crc, const void *data, size_t size)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_sse42(~crc, data, size);
#endif
    return ~crc_plain(~crc, data, size);
}

uint32_t pm_crc32c(const void *data, size_t size)
{
    return pm_crc32c_more(0, data, size);
}

uint32_t pm_crc32c_portable(const void *data, size_t size)
{
    return ~crc_plain(~0u, data, size);
}

uint32_t pm_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

uint32_t pm_crc32c_masked(const void *data, size_t size)
{
    return pm_crc32c_mask(pm_crc32c(data, size));
}

/* ---- reading ----------------------------------------------------------------------------- */

static void put_le(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        p[i] = (uint8_t)v;
}

int pm_read_at(int fd, void *buf, size_t size, uint64_t offset, const char *path)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = pread(fd, (char *)buf + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return pm_fail(PM_EFAIL, "%s: cannot read %zu bytes at offset %" PRIu64 ": %s", path,
                           size - done, offset + done, strerror(errno));
        if (n == 0)
            return pm_fail(PM_EDATA, "%s: ends at offset %" PRIu64 ", %zu bytes short", path,
                           offset + done, size - done);
        done += (size_t)n;
    }
    return PM_OK;
}

/* A file that is compressed as a whole has no record boundaries to seek to. */
static const char *compressed_kind(const uint8_t *head)
{
    if (head[0] == 0x1f && head[1] == 0x8b)
        return "gzip";
    if (head[0] == 0x78 && (head[0] << 8 | head[1]) % 31 == 0)
        return "zlib";
    return NULL;
}

int pm_tfrecord_length(int fd, uint64_t file_size, struct pm_record_place at, uint64_t *length)
{
    uint8_t head[PM_TFRECORD_HEAD];
    const uint64_t left = file_size - at.offset;

    if (left < sizeof head)
        return pm_fail(PM_EDATA,
                       "%s: record %" PRIu64 " (offset %" PRIu64 "): the file ends %" PRIu64
                       " bytes into a header of %zu: it is cut short; copy or make it again",
                       at.path, at.number, at.offset, left, sizeof head);
    const int err = pm_read_at(fd, head, sizeof head, at.offset, at.path);
    if (err < 0)
        return err;
    const uint32_t stored = (uint32_t)pm_little(head + 8, 4), found = pm_crc32c_masked(head, 8);
    if (stored != found) {
        const char *kind = at.offset == 0 ? compressed_kind(head) : NULL;
        if (kind)
            return pm_fail(PM_EDATA,
                           "%s: a TFRecord file compressed as a whole (%s): decompress it first "
                           "(gunzip, zlib-flate -uncompress)",
                           at.path, kind);
        return pm_fail(PM_EDATA,
                       "%s: record %" PRIu64 " (offset %" PRIu64
                       "): the length's checksum is %08x, the file says %08x: %s",
                       at.path, at.number, at.offset, found, stored,
                       at.offset == 0 ? "not a TFRecord file, or damaged" : "damaged here");
    }
    *length = pm_little(head, 8);
    if (*length > left - sizeof head || left - sizeof head - *length < PM_TFRECORD_TAIL)
        return pm_fail(PM_EDATA,
                       "%s: record %" PRIu64 " (offset %" PRIu64 ") of %" PRIu64
                       " bytes goes beyond the file's end at %" PRIu64
                       ": it is cut short; copy or make it again",
                       at.path, at.number, at.offset, *length, file_size);
    return PM_OK;
}

int pm_tfrecord_data(int fd, struct pm_record_place at, uint8_t *buf, uint64_t length)
{
    const int err =
        pm_read_at(fd, buf, length + PM_TFRECORD_TAIL, at.offset + PM_TFRECORD_HEAD, at.path);
    if (err < 0)
        return err;
    const uint32_t stored = (uint32_t)pm_little(buf + length, 4),
                   found = pm_crc32c_masked(buf, length);
    if (stored != found)
        return pm_fail(PM_ECORRUPT,
                       "%s: record %" PRIu64 " (offset %" PRIu64 ", %" PRIu64
                       " bytes): the data's checksum is %08x, the file says %08x: damaged",
                       at.path, at.number, at.offset, length, found, stored);
    return PM_OK;
}

/* ---- writing ----------------------------------------------------------------------------- */

enum { BUFFER = 1 << 16 };

struct pm_tfrecord_writer {
    char *path; /* owned */
    struct pm_new_file file;
    struct pm_str buffer; /* bytes to write */
};

int pm_tfrecord_create(const char *path, struct pm_tfrecord_writer **out)
{
    struct pm_tfrecord_writer *w = pm_calloc(1, sizeof *w);

    w->path = pm_strdup(path);
    const int err = pm_new_file_open(&w->file, w->path);
    if (err < 0)
        pm_tfrecord_destroy(&w);
    *out = w;
    return err;
}

void pm_tfrecord_frame(const void *data, size_t size, uint8_t head[PM_TFRECORD_HEAD],
                       uint8_t tail[PM_TFRECORD_TAIL])
{
    put_le(head, size, 8);
    put_le(head + 8, pm_crc32c_masked(head, 8), 4);
    put_le(tail, pm_crc32c_masked(data, size), 4);
}

static int flush(struct pm_tfrecord_writer *w)
{
    const int err = pm_new_file_add(&w->file, w->buffer.text, w->buffer.length);

    w->buffer.length = 0;
    return err;
}

static int put(struct pm_tfrecord_writer *w, const void *data, size_t size)
{
    int err = PM_OK;

    if (w->buffer.length + size > BUFFER)
        PM_TRY(flush(w));
    if (size > BUFFER)
        PM_TRY(pm_new_file_add(&w->file, data, size));
    else
        pm_str_bytes(&w->buffer, data, size);
out:
    return err;
}

int pm_tfrecord_write(struct pm_tfrecord_writer *w, const void *data, size_t size)
{
    uint8_t head[PM_TFRECORD_HEAD], tail[PM_TFRECORD_TAIL];
    int err = PM_OK;

    pm_tfrecord_frame(data, size, head, tail);
    PM_TRY(put(w, head, sizeof head));
    PM_TRY(put(w, data, size));
    PM_TRY(put(w, tail, sizeof tail));
out:
    return err;
}

int pm_tfrecord_finish(struct pm_tfrecord_writer *w)
{
    int err = PM_OK;

    PM_TRY(flush(w));
    PM_TRY(pm_new_file_commit(&w->file));
out:
    return err;
}

void pm_tfrecord_destroy(struct pm_tfrecord_writer **w)
{
    if (!*w)
        return;
    pm_new_file_abandon(&(*w)->file);
    pm_str_free(&(*w)->buffer);
    pm_free((*w)->path);
    pm_free(*w);
    *w = NULL;
}
