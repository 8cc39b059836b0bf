/* Archives for tests: tar (with any names and types, valid or not), gzip, and zip without
 * compression. */
#ifndef ARCHIVES_H
#define ARCHIVES_H

#include <zlib.h>

static inline void tar_add(struct pm_str *tar, const char *name, char type, const char *link,
                           const void *data, size_t size, const char *said_size)
{
    static const char zeros[512];
    char head[512] = { 0 };
    unsigned sum = 0;

    snprintf(head, 100, "%s", name);
    strcpy(head + 100, "0000644");
    strcpy(head + 108, "0000000");
    strcpy(head + 116, "0000000");
    if (said_size)
        snprintf(head + 124, 12, "%s", said_size);
    else
        snprintf(head + 124, 12, "%011zo", size);
    strcpy(head + 136, "00000000000");
    memset(head + 148, ' ', 8);
    head[156] = type;
    if (link)
        snprintf(head + 157, 100, "%s", link);
    memcpy(head + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    pm_str_bytes(tar, head, 512);
    if (size) {
        pm_str_bytes(tar, data, size);
        pm_str_bytes(tar, zeros, (512 - size % 512) % 512);
    }
}

static inline void tar_file(struct pm_str *tar, const char *name, const void *data, size_t size)
{
    tar_add(tar, name, '0', NULL, data, size, NULL);
}

static inline void tar_end(struct pm_str *tar)
{
    static const char zeros[1024];
    pm_str_bytes(tar, zeros, sizeof zeros);
}

/* The text compressed by gzip; frees the text. */
static inline struct pm_str gzipped(struct pm_str *text)
{
    struct pm_str out = { 0 };
    z_stream z = { 0 };
    const size_t most = text->length + text->length / 100 + 256;
    char *buf = pm_malloc(most);

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)text->text;
    z.avail_in = (uInt)text->length;
    z.next_out = (Bytef *)buf;
    z.avail_out = (uInt)most;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    pm_str_bytes(&out, buf, z.total_out);
    deflateEnd(&z);
    pm_free(buf);
    pm_str_free(text);
    return out;
}

static inline void put_le(struct pm_str *s, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        pm_str_bytes(s, &(char){ (char)(v & 255) }, 1);
}

/* Adds a stored file; mode: a Unix mode, such as 0120777 for a symbolic link. */
static inline void zip_one(struct pm_str *zip, const char *name, const char *data, uint32_t mode)
{
    const uint32_t size = (uint32_t)strlen(data),
                   crc = (uint32_t)crc32(0, (const Bytef *)data, size);
    const uint32_t start = (uint32_t)zip->length, n = (uint32_t)strlen(name);
    struct pm_str common = { 0 };

    put_le(&common, 20, 2), put_le(&common, 0, 2), put_le(&common, 0, 2), put_le(&common, 0, 4);
    put_le(&common, crc, 4), put_le(&common, size, 4), put_le(&common, size, 4);
    put_le(&common, n, 2), put_le(&common, 0, 2);
    put_le(zip, 0x04034b50, 4);
    pm_str_bytes(zip, common.text, common.length);
    pm_str_bytes(zip, name, n);
    pm_str_bytes(zip, data, size);
    const uint32_t directory = (uint32_t)zip->length;
    put_le(zip, 0x02014b50, 4), put_le(zip, 0x0314, 2);
    pm_str_bytes(zip, common.text, common.length);
    put_le(zip, 0, 2), put_le(zip, 0, 2), put_le(zip, 0, 2), put_le(zip, mode << 16, 4);
    put_le(zip, start, 4);
    pm_str_bytes(zip, name, n);
    const uint32_t end = (uint32_t)zip->length;
    put_le(zip, 0x06054b50, 4), put_le(zip, 0, 4), put_le(zip, 1, 2), put_le(zip, 1, 2);
    put_le(zip, end - directory, 4), put_le(zip, directory, 4), put_le(zip, 0, 2);
    pm_str_free(&common);
}

#endif
