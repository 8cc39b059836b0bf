/* Shared by the tests of pictures and of label maps: writes PNGs of any depth and kind. */
#ifndef PUMICE_TESTS_PNG_COMMON_H
#define PUMICE_TESTS_PNG_COMMON_H

#include <zlib.h>

#include "data_common.h"

/* A PNG with one IDAT chunk, built by hand for any palette and depth. */
struct png {
    uint8_t bytes[4096];
    size_t size;
};

static inline void be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static inline void chunk(struct png *p, const char *type, const void *body, size_t size)
{
    uint8_t *at = p->bytes + p->size;

    be32(at, (uint32_t)size);
    memcpy(at + 4, type, 4);
    if (size)
        memcpy(at + 8, body, size);
    be32(at + 8 + size, (uint32_t)crc32(0, at + 4, (uInt)size + 4));
    p->size += size + 12;
}

/* rows: without filter bytes. color: 0 grey, 2 RGB, 3 palette with this many entries, 4 grey and
 * alpha. */
static inline struct png png_with(int height, int width, int depth, int color, size_t entries,
                                  const uint8_t *rows)
{
    static const int samples[] = { 1, 0, 3, 1, 2, 0, 4 };
    const size_t row = (size_t)(width * samples[color] * depth + 7) / 8;
    struct png p = { .size = 8 };
    uint8_t header[13] = { 0 }, raw[2048], packed[2048], palette[768];
    uLongf length = sizeof packed;

    memcpy(p.bytes, "\x89PNG\r\n\x1a\n", 8);
    be32(header, (uint32_t)width);
    be32(header + 4, (uint32_t)height);
    header[8] = (uint8_t)depth, header[9] = (uint8_t)color;
    chunk(&p, "IHDR", header, 13);
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)(37 * i + 5);
    if (color == 3)
        chunk(&p, "PLTE", palette, 3 * entries);
    for (size_t y = 0; y < (size_t)height; y++) {
        raw[y * (row + 1)] = 0;
        memcpy(raw + y * (row + 1) + 1, rows + y * row, row);
    }
    assert_int_equal(compress(packed, &length, raw, (row + 1) * (size_t)height), Z_OK);
    chunk(&p, "IDAT", packed, length);
    chunk(&p, "IEND", NULL, 0);
    return p;
}

static inline struct png png_of(int height, int width, int depth, int color, const uint8_t *rows)
{
    return png_with(height, width, depth, color, (size_t)1 << depth, rows);
}

#endif
