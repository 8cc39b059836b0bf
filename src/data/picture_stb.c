/* Pictures through stb_image: BMP, GIF (first picture), binary PGM and PPM, TGA, PSD (RGB) and
 * Radiance HDR; and JPEG in a build without libjpeg-turbo.
 *
 * stb_image is too lenient for training data: at the end of a file it reads zeros, sometimes for
 * ever. So it reads through callbacks, which leave it with a longjmp if a file ends too early. Its
 * JPEG decoder trusts tables in the file and invents the missing part of a truncated one. So the
 * container of a JPEG is checked first.
 *
 * HDR samples are light intensities in floating point. They become 8 bits as 255 * v^(1/2.2),
 * rounded and limited to 0..255, which is stb_image's default. */
#include <limits.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "data/picture.h"

/* Blocks that stb_image has allocated while it reads a file in this thread; NULL: not tracked. */
struct blocks {
    void *p[16]; /* stb_image holds three or four at once */
    int count;
};
static _Thread_local struct blocks *held;

static void forget(const void *p)
{
    for (int i = 0; held && p && i < held->count; i++)
        if (held->p[i] == p) {
            held->p[i] = held->p[--held->count];
            return;
        }
}

static void *resize(void *p, size_t size)
{
    if (held && held->count == PM_COUNT(held->p))
        return NULL;
    void *grown = pm_try_realloc(p, size);
    if (grown && held) {
        forget(p);
        held->p[held->count++] = grown;
    }
    return grown;
}

/* Allocates zeroed memory. With a damaged JPEG, stb_image uses tables that were never defined.
 * Zeros are harmless there; old memory contents are not. */
static void *zeroed(size_t size)
{
    void *p = resize(NULL, size);

    return p ? memset(p, 0, size) : NULL;
}

static void release(void *p)
{
    forget(p);
    pm_free(p);
}

#define STBI_MALLOC(size) zeroed(size)
#define STBI_REALLOC(p, size) resize(p, size)
#define STBI_FREE(p) release(p)
#define STBI_NO_PNG
#define STBI_NO_PIC
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS (1 << 20)
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#pragma GCC diagnostic ignored "-Wunused-function" /* applies until the file's end, so it is not
                                                    * popped */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpointer-arith"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

/* ---- reading ------------------------------------------------------------------------------- */

struct source {
    const uint8_t *data;
    size_t size, at;
    stbi__context context;
    struct blocks blocks;
    jmp_buf too_short;
    int width, height, channels;
};

/* Read callback. stb_image fills its buffer with up to 128 bytes, or reads a whole block directly
 * into its destination. */
static int take(void *user, char *to, int size)
{
    struct source *s = user;
    const size_t left = s->size - s->at;
    const size_t n = (size_t)size < left ? (size_t)size : left;

    if (size > 0 && (n == 0 || (n < (size_t)size && to != (char *)s->context.buffer_start)))
        longjmp(s->too_short, 1);
    memcpy(to, s->data + s->at, n);
    s->at += n;
    return (int)n;
}

static void skip(void *user, int count)
{
    struct source *s = user;
    const size_t left = s->size - s->at;

    if (count > 0)
        s->at += (size_t)count < left ? (size_t)count : left;
}

static int at_end(void *user)
{
    const struct source *s = user;

    return s->at == s->size;
}

static int failed(const struct pm_picture_file *f)
{
    return pm_picture_damaged(f, stbi_failure_reason() ? stbi_failure_reason() : "no reason");
}

/* Reads the file from its start: the size; if pixels is not NULL, also the pixels, which the caller
 * frees. */
static int read_file(struct source *s, const struct pm_picture_file *f, uint8_t **pixels)
{
    stbi_io_callbacks calls = { take, skip, at_end };
    bool good = false;

    *s = (struct source){ .data = f->data, .size = f->size };
    held = &s->blocks;
    if (setjmp(s->too_short)) {
        while (s->blocks.count > 0)
            pm_free(s->blocks.p[--s->blocks.count]);
        held = NULL;
        return pm_fail(PM_EDATA,
                       "%s: the %s is cut short: %zu bytes are too few for its pixels. Fetch or "
                       "export it again, or remove it",
                       f->where, f->kind, f->size);
    }
    stbi__start_callbacks(&s->context, &calls, s);
    if (pixels)
        good = (*pixels = stbi__load_and_postprocess_8bit(&s->context, &s->width, &s->height,
                                                          &s->channels, 0)) != NULL;
    else
        good = stbi__info_main(&s->context, &s->width, &s->height, &s->channels);
    held = NULL;
    return good ? PM_OK : failed(f);
}

int pm_picture_measure_stb(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    struct source *s = pm_malloc(sizeof *s);
    const int err = read_file(s, f, NULL);

    /* A BMP with negative height stores its first row first. */
    *height = s->height < 0 ? -(int64_t)s->height : s->height;
    *width = s->width;
    pm_free(s);
    return err;
}

int pm_picture_stb(const struct pm_picture_file *f, struct pm_image8 *out)
{
    struct source *s = pm_malloc(sizeof *s);
    uint8_t *pixels = NULL;
    int64_t height = 0, width = 0;
    int err = PM_OK;

    PM_TRY(pm_picture_measure_stb(f, &height, &width));
    PM_TRY(pm_picture_size(f, width, height));
    PM_TRY(read_file(s, f, &pixels));
    *out = (struct pm_image8){ s->height, s->width, s->channels, pixels };
out:
    pm_free(s);
    return err;
}

/* ---- PSD, PNM, TGA --------------------------------------------------------------------------- */

/* Returns the number at *at, after white space and comments; -1 if there is none. */
static long pnm_number(const struct pm_picture_file *f, size_t *at)
{
    long v = -1;

    while (*at < f->size && (strchr(" \t\n\v\f\r", f->data[*at]) || f->data[*at] == '#')) {
        if (f->data[*at] == '#')
            while (*at < f->size && f->data[*at] != '\n' && f->data[*at] != '\r')
                ++*at;
        else
            ++*at;
    }
    for (; *at < f->size && f->data[*at] >= '0' && f->data[*at] <= '9'; ++*at)
        v = (v < 0 ? 0 : v) * 10 + f->data[*at] - '0', v = v > INT_MAX ? INT_MAX : v;
    return v;
}

int pm_picture_pnm(const struct pm_picture_file *f, struct pm_image8 *out)
{
    size_t at = 2;
    const long width = pnm_number(f, &at), height = pnm_number(f, &at), most = pnm_number(f, &at);

    if (width < 0 || height < 0 || most < 0)
        return pm_picture_damaged(f, "its header lacks width, height or largest value");
    if (most != 255) /* stb_image neither scales other ranges nor swaps 16-bit bytes */
        return pm_fail(PM_EDATA,
                       "%s: the PNM has samples of 0..%ld; only 0..255 is supported. Save it with "
                       "8 bits per sample, or as PNG",
                       f->where, most);
    return pm_picture_stb(f, out);
}

/* Checks the number of channels, which is at byte 12. stb_image takes a fourth channel for
 * transparency and changes the colours by it. If the channel is something else, colours leave
 * 0..255. */
int pm_picture_psd(const struct pm_picture_file *f, struct pm_image8 *out)
{
    const int channels = f->data[12] << 8 | f->data[13];

    if (channels != 3)
        return pm_fail(PM_EDATA,
                       "%s: the PSD has %d channels; only 3 (RGB) are supported. Save it without "
                       "alpha channels, or as PNG",
                       f->where, channels);
    return pm_picture_stb(f, out);
}

static size_t le16(const uint8_t *p)
{
    return (size_t)p[0] | (size_t)p[1] << 8;
}

/* Offsets of the header's fields: 0 length of the text after the header, 1 whether there is a
 * palette, 2 type, 5 and 7 number and bits of palette entries, 12 width, 14 height, 16 bits per
 * pixel, 17 flags. */
bool pm_picture_is_tga(const uint8_t *p, size_t size)
{
    if (size < 18 || p[1] > 1 || p[17] & 0xc0 || (p[17] & 15) > 8)
        return false;
    const int type = p[2] & ~8, bits = p[16], entry_bits = p[7];
    const size_t entries = le16(p + 5), pixels = le16(p + 12) * le16(p + 14);
    const bool packed = p[2] & 8;
    bool good = false;

    if (p[1])
        good = type == 1 && bits == 8 && entries > 0 &&
               (entry_bits == 15 || entry_bits == 16 || entry_bits == 24 || entry_bits == 32);
    else if (!entries && !entry_bits)
        good = type == 3 ? bits == 8 || bits == 16
                         : type == 2 && (bits == 15 || bits == 16 || bits == 24 || bits == 32);
    if (!good || pixels == 0)
        return false;
    const size_t before = 18u + p[0] + entries * (size_t)((entry_bits + 7) / 8);
    const size_t each = (size_t)(bits + 7) / 8;
    /* A packet of a compressed picture holds at most 128 pixels. */
    return size >= before + (packed ? (pixels + 127) / 128 * (1 + each) : pixels * each);
}

/* ---- JPEG ---------------------------------------------------------------------------------- */

/* Checks a segment's Huffman tables. Its length is at `at`. Reads them as stb_image does: table by
 * table until the length is used up, zeros beyond the end. stb_image trusts the sixteen counts of
 * each table, and writes beyond its arrays if they sum to more than 256 codes. defined: receives
 * bit 4 * class + number of each table (class 0 is DC, 1 is AC). */
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

/* Checks the first scan's header: number of components, then each component's name and table
 * numbers. Progressive files begin with DC only. */
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

/* Checks the markers up to the first scan, then searches for the end marker. Four components are
 * accepted as CMYK or YCCK only with an Adobe marker. Precision other than 8, lossless coding and
 * arithmetic coding are reported here, because stb_image's messages are terse. */
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
                return pm_fail(PM_EDATA,
                               "%s: the JPEG has %d bits per sample; only 8 are supported", where,
                               length < 8 ? 0 : body[0]);
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
    /* Inside and between scans, 0xff occurs only before a marker. Further tables may follow. */
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

int pm_picture_jpeg_stb(const struct pm_picture_file *f, struct pm_image8 *out)
{
    int err = PM_OK, width = 0, height = 0, stored = 0;
    const int size = (int)f->size;

    PM_TRY(check_jpeg(f->data, f->size, f->where));
    if (!stbi_info_from_memory(f->data, size, &width, &height, &stored))
        PM_TRY(failed(f));
    PM_TRY(pm_picture_size(f, width, height));
    uint8_t *pixels =
        stbi_load_from_memory(f->data, size, &width, &height, &stored, f->grey ? 1 : 0);
    if (!pixels)
        PM_TRY(failed(f));
    *out = (struct pm_image8){ height, width, f->grey ? 1 : stored, pixels };
out:
    return err;
}
