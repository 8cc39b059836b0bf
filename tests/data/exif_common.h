/* EXIF data with an orientation, inserted into JPEG and PNG files. */
#ifndef PUMICE_TESTS_EXIF_COMMON_H
#define PUMICE_TESTS_EXIF_COMMON_H

#include <string.h>
#include <zlib.h>

#include <pumice/data.h>

/* A copy of the bytes with others inserted at a place; free with pm_free. */
static inline uint8_t *with_bytes(const uint8_t *data, size_t size, size_t at, const void *more,
                                  size_t count)
{
    uint8_t *out = pm_malloc(size + count);

    memcpy(out, data, at);
    memcpy(out + at, more, count);
    memcpy(out + at + count, data + at, size - at);
    return out;
}

enum { EXIF_SIZE = 26 };
/* Number of bytes that exif_jpeg and exif_png insert for a body of EXIF_SIZE. */
enum { EXIF_JPEG_MORE = 10 + EXIF_SIZE, EXIF_PNG_MORE = 12 + EXIF_SIZE };

/* EXIF data with the orientation as its only entry; big: big-endian. */
static inline void exif_body(bool big, int orientation, uint8_t out[EXIF_SIZE])
{
    static const uint8_t large[EXIF_SIZE] = { 'M', 'M', 0,    42, 0, 0, 0, 8, 0,
                                              1,   1,   0x12, 0,  3, 0, 0, 0, 1 };
    static const uint8_t little[EXIF_SIZE] = { 'I', 'I', 42,   0, 8, 0, 0, 0,
                                               1,   0,   0x12, 1, 3, 0, 1, 0 };

    memcpy(out, big ? large : little, EXIF_SIZE);
    out[big ? 19 : 18] = (uint8_t)orientation;
}

/* The JPEG with a segment of this body after its first marker; free with pm_free. */
static inline uint8_t *exif_jpeg(const uint8_t *jpeg, size_t size, const uint8_t *body,
                                 size_t length)
{
    uint8_t segment[64] = { 0xff, 0xe1, 0, (uint8_t)(8 + length), 'E', 'x', 'i', 'f' };

    memcpy(segment + 10, body, length);
    return with_bytes(jpeg, size, 2, segment, 10 + length);
}

/* The PNG with a chunk eXIf of this body after its header; free with pm_free. */
static inline uint8_t *exif_png(const uint8_t *png, size_t size, const uint8_t *body, size_t length)
{
    uint8_t chunk[64] = { 0, 0, 0, (uint8_t)length, 'e', 'X', 'I', 'f' };

    memcpy(chunk + 8, body, length);
    const uint32_t crc = (uint32_t)crc32(0, chunk + 4, (uInt)length + 4);
    for (int i = 0; i < 4; i++)
        chunk[8 + length + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    return with_bytes(png, size, 33, chunk, 12 + length);
}

#endif
