/* Images: bytes to pixels and back, by stb_image and stb_image_write.
 *
 * stb_image is lenient where training data should not be: it checks no PNG checksum and paints what
 * a truncated JPEG lacks. So the container is walked first, and refused when libpng and libjpeg
 * (what TensorFlow's decoders stand on, with recovery off) would refuse it. Sizes are checked
 * before a pixel is decoded. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <pumice/data.h>

/* stb_image decodes with tables that a damaged JPEG has not defined: zeros do no harm there, what the
 * memory held before does. */
static void *zeroed(size_t size)
{
    void *p = pm_try_realloc(NULL, size);

    return p ? memset(p, 0, size) : NULL;
}

#define STBI_MALLOC(size) zeroed(size)
#define STBI_REALLOC(p, size) pm_try_realloc(p, size)
#define STBI_FREE(p) pm_free(p)
#define STBIW_MALLOC(size) pm_try_realloc(NULL, size)
#define STBIW_REALLOC(p, size) pm_try_realloc(p, size)
#define STBIW_FREE(p) pm_free(p)
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_GIF
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS (1 << 20)
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#ifndef __clang_analyzer__ /* finds a leak in it where memory is gone; not ours to mend */
#define STB_IMAGE_WRITE_IMPLEMENTATION
#endif
#define STBI_WRITE_NO_STDIO
#define STBIW_ZLIB_COMPRESS deflate_bytes
static unsigned char *deflate_bytes(unsigned char *data, int size, int *out_size, int quality);
#pragma GCC diagnostic ignored "-Wunused-function" /* judged at the file's end, so not popped */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpointer-arith"
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

/* zlib's deflate is faster and smaller than the writer's own. */
static unsigned char *deflate_bytes(unsigned char *data, int size, int *out_size, int quality)
{
    uLongf room = compressBound((uLong)size);
    unsigned char *out = pm_try_realloc(NULL, room);

    if (!out || compress2(out, &room, data, (uLong)size, quality) != Z_OK) {
        pm_free(out);
        return NULL;
    }
    *out_size = (int)room;
    return out;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- containers ---------------------------------------------------------------------------- */

/* Critical chunks (upper-case first letter) must have good checksums; a bad ancillary one is passed
 * over by every reader. */
static int check_png(const uint8_t *p, size_t size, const char *where)
{
    bool data = false;

    for (size_t at = 8; at < size;) {
        if (size - at < 12 || be32(p + at) > size - at - 12)
            return pm_fail(PM_EDATA, "%s: the PNG is cut short at byte %zu of %zu", where, at,
                           size);
        const size_t length = be32(p + at);
        const uint8_t *type = p + at + 4;
        const uint32_t found = (uint32_t)crc32(0, type, (uInt)length + 4);
        if (!(type[0] & 0x20) && found != be32(type + 4 + length))
            return pm_fail(PM_EDATA, "%s: the PNG's chunk %.4s at byte %zu has a wrong checksum",
                           where, (const char *)type, at);
        if (at == 8 && memcmp(type, "IHDR", 4))
            return pm_fail(PM_EDATA, "%s: the PNG starts with chunk %.4s, not with IHDR", where,
                           (const char *)type);
        data |= !memcmp(type, "IDAT", 4);
        if (!memcmp(type, "IEND", 4))
            return data ? PM_OK : pm_fail(PM_EDATA, "%s: the PNG holds no pixels (IDAT)", where);
        at += 12 + length;
    }
    return pm_fail(PM_EDATA, "%s: the PNG is cut short: it has no end chunk", where);
}

/* The Huffman tables of the segment whose length stands at `at`, read as stb_image does: table by
 * table until the length is used up, zeros beyond the end. It trusts the sixteen counts of each,
 * and writes beyond its own tables when they add up to more than 256 codes. defined: gets bit
 * 4 * class + number of each table (class 0 is DC, 1 AC). */
static int check_huffman(const uint8_t *p, size_t size, size_t at, const char *where,
                         unsigned *defined)
{
    int64_t left = (int64_t)(p[at] << 8 | p[at + 1]) - 2;

    for (at += 2; left > 0;) {
        size_t codes = 0;
        for (size_t k = at + 1; k <= at + 16 && k < size; k++)
            codes += p[k];
        if (codes > 256)
            return pm_fail(PM_EDATA,
                           "%s: the JPEG's Huffman table at byte %zu has %zu codes, at "
                           "most 256 are possible",
                           where, at, codes);
        if (at < size)
            *defined |= 1u << (4 * (p[at] >> 4 & 1) + (p[at] & 3));
        at += 17 + codes;
        left -= 17 + (int64_t)codes;
    }
    return PM_OK;
}

/* The first scan's header: number of components, then of each its name and its tables' numbers.
 * Progressive files begin with DC alone. */
static int check_scan(const uint8_t *body, size_t length, unsigned defined, bool progressive,
                      const char *where)
{
    for (size_t i = 0; i < body[0] && 2 * i + 4 < length; i++) {
        const unsigned dc = body[2 * i + 2] >> 4 & 3, ac = body[2 * i + 2] & 3;

        if (!(defined >> dc & 1) || (!progressive && !(defined >> (4 + ac) & 1)))
            return pm_fail(PM_EDATA, "%s: the JPEG's first scan uses a Huffman table that the file "
                           "does not define", where);
    }
    return PM_OK;
}

/* Walks the markers up to the first scan, then looks for the end marker behind it. Four components
 * mean CMYK or YCCK only where an Adobe marker says so; precision other than 8, lossless and
 * arithmetic coding are named here, since the decoder's own words are terse. */
static int check_jpeg(const uint8_t *p, size_t size, const char *where)
{
    bool adobe = false, scan = false, progressive = false;
    unsigned defined = 0;
    int components = 0;
    size_t at = 2;

    while (!scan) {
        while (at < size && p[at] != 0xff)
            at++;
        while (at < size && p[at] == 0xff)
            at++;
        if (at >= size)
            return pm_fail(PM_EDATA, "%s: the JPEG is cut short in its header", where);
        const uint8_t marker = p[at++];
        if (marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8))
            continue;
        if (marker == 0xd9)
            return pm_fail(PM_EDATA, "%s: the JPEG ends without pixels", where);
        if (size - at < 2)
            return pm_fail(PM_EDATA, "%s: the JPEG is cut short in its header", where);
        const size_t length = (size_t)p[at] << 8 | p[at + 1];
        if (length < 2 || length > size - at)
            return pm_fail(PM_EDATA, "%s: the JPEG's segment %02x at byte %zu has a length of %zu",
                           where, marker, at, length);
        const uint8_t *body = p + at + 2;
        if (marker == 0xee && length >= 14 && !memcmp(body, "Adobe", 5))
            adobe = true;
        if (marker == 0xda)
            scan = true;
        if (scan && length > 2 && check_scan(body, length, defined, progressive, where) < 0)
            return PM_EDATA;
        if (marker == 0xc4 && check_huffman(p, size, at, where, &defined) < 0)
            return PM_EDATA;
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
            marker != 0xcc) {
            if (marker > 0xc2)
                return pm_fail(PM_EDATA,
                               "%s: the JPEG's coding SOF%d is not supported (baseline and "
                               "progressive are): convert it",
                               where, marker - 0xc0);
            if (length < 8 || body[0] != 8)
                return pm_fail(PM_EDATA, "%s: the JPEG has %d bits a sample, 8 are supported",
                               where, length < 8 ? 0 : body[0]);
            components = body[5];
            progressive = marker == 0xc2;
        }
        at += length;
    }
    if (components == 4 && !adobe)
        return pm_fail(PM_EDATA,
                       "%s: the JPEG has four components and no Adobe marker, so its colours are "
                       "unknown: convert it to RGB",
                       where);
    /* In and between scans 0xff stands only before a marker: further tables. */
    for (size_t i = at; i + 3 < size; i++)
        if (p[i] == 0xff && p[i + 1] == 0xc4 && check_huffman(p, size, i + 2, where,
                                                                     &defined) < 0)
            return PM_EDATA;
    for (size_t i = size - 1; i > at; i--)
        if (p[i] == 0xd9 && p[i - 1] == 0xff)
            return PM_OK;
    return pm_fail(PM_EDATA, "%s: the JPEG is cut short: %zu bytes without an end marker", where,
                   size);
}

enum kind { KIND_UNKNOWN, KIND_JPEG, KIND_PNG, KIND_GIF, KIND_BMP };

static enum kind sniff(const uint8_t *p, size_t size)
{
    if (size >= 4 && p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff)
        return KIND_JPEG;
    if (size >= 8 && !memcmp(p, "\x89PNG\r\n\x1a\n", 8))
        return KIND_PNG;
    if (size >= 6 && (!memcmp(p, "GIF87a", 6) || !memcmp(p, "GIF89a", 6)))
        return KIND_GIF;
    if (size >= 26 && !memcmp(p, "BM", 2))
        return KIND_BMP;
    return KIND_UNKNOWN;
}

const char *pm_image_format(const void *data, size_t size)
{
    static const char *const names[] = { NULL, "jpeg", "png", "gif", "bmp" };

    return names[sniff(data, size)];
}

/* ---- channels ------------------------------------------------------------------------------ */

/* Luma of the weights 0.2989, 0.5870, 0.1140 in 1/16384ths, which sum to one so that white stays
 * white; rounded. */
static uint8_t luma(const uint8_t *p)
{
    return (uint8_t)((4899 * p[0] + 9617 * p[1] + 1868 * p[2] + 8192) >> 14);
}

/* In place or not: out may be in where it gets smaller. */
static void convert(const uint8_t *in, int from, uint8_t *out, int to, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++, in += from, out += to) {
        if (to == 1) {
            out[0] = from >= 3 ? luma(in) : in[0];
        } else {
            const uint8_t r = in[0], g = from >= 3 ? in[1] : r, b = from >= 3 ? in[2] : r;
            out[0] = r, out[1] = g, out[2] = b;
        }
    }
}

int pm_image_decode(const void *data, size_t size, int channels, size_t max_pixels,
                    const char *where, struct pm_image8 *out)
{
    int err = PM_OK, width = 0, height = 0, stored = 0;
    uint8_t *pixels = NULL;
    const enum kind kind = sniff(data, size);

    *out = (struct pm_image8){ 0 };
    if (size == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: an image of no bytes", where));
    if (kind == KIND_UNKNOWN)
        PM_TRY(pm_fail(PM_EDATA, "%s: %zu bytes that are no JPEG, PNG, GIF or BMP", where, size));
    if (size > INT_MAX)
        PM_TRY(
            pm_fail(PM_EDATA, "%s: an image of %zu bytes; below 2 GiB are supported", where, size));
    if (kind == KIND_PNG)
        PM_TRY(check_png(data, size, where));
    if (kind == KIND_JPEG)
        PM_TRY(check_jpeg(data, size, where));
    if (!stbi_info_from_memory(data, (int)size, &width, &height, &stored))
        PM_TRY(pm_fail(PM_EDATA, "%s: not decodable: %s", where, stbi_failure_reason()));
    const size_t most = max_pixels ? max_pixels : (size_t)1 << 28;
    if (width < 1 || height < 1 || (size_t)width > most / (size_t)height)
        PM_TRY(pm_fail(PM_EDATA, "%s: an image of %d x %d pixels; 1..%zu pixels are allowed", where,
                       width, height, most));
    /* A JPEG's own luma plane is its grey; other kinds are converted from RGB below. */
    const int ask = kind == KIND_JPEG && channels == 1 ? 1 : 0;
    pixels = stbi_load_from_memory(data, (int)size, &width, &height, &stored, ask);
    if (!pixels)
        PM_TRY(pm_fail(PM_EDATA, "%s: not decodable: %s", where, stbi_failure_reason()));
    if (ask)
        stored = ask;
    if (channels == PM_GREY_OR_COLOR)
        channels = stored <= 2 ? 1 : 3;
    if (channels && stored != channels) {
        const size_t count = (size_t)width * (size_t)height;
        uint8_t *converted = stored > channels ? pixels : pm_malloc(count * (size_t)channels);
        convert(pixels, stored, converted, channels, count);
        if (converted != pixels)
            pm_free(pixels);
        pixels = converted;
        stored = channels;
    }
    *out = (struct pm_image8){ height, width, stored, pixels };
out:
    return err;
}

void pm_image_free(struct pm_image8 *im)
{
    pm_free(im->pixels);
    *im = (struct pm_image8){ 0 };
}

/* ---- writing ------------------------------------------------------------------------------- */

int pm_image_encode_png(const struct pm_image8 *im, uint8_t **out, size_t *size)
{
    int length = 0;
    unsigned char *png = stbi_write_png_to_mem(im->pixels, im->width * im->channels, im->width,
                                               im->height, im->channels, &length);
    if (!png)
        return pm_fail(PM_EFAIL, "an image of %d x %d x %d could not be written as PNG", im->height,
                       im->width, im->channels);
    *out = png;
    *size = (size_t)length;
    return PM_OK;
}

static void append(void *ctx, void *data, int size)
{
    pm_str_bytes(ctx, data, (size_t)size);
}

int pm_image_encode_jpeg(const struct pm_image8 *im, int quality, uint8_t **out, size_t *size)
{
    struct pm_str text = { 0 };

    if (!stbi_write_jpg_to_func(append, &text, im->width, im->height, im->channels, im->pixels,
                                quality)) {
        pm_str_free(&text);
        return pm_fail(PM_EFAIL, "an image of %d x %d x %d could not be written as JPEG",
                       im->height, im->width, im->channels);
    }
    *out = (uint8_t *)text.text;
    *size = text.length;
    return PM_OK;
}
