/* TIFF through libtiff: the first picture of a file, by its conversion to 8-bit colours. It knows
 * 1 to 16 bits, palettes, CMYK, YCbCr, CIE L*a*b*, tiles, and all compressions of the installed
 * libtiff. 16-bit samples are rounded to 8 bits; parts that alpha makes transparent become black.
 * Sensors of 10 to 13 bits fill a small part of 16: such a picture would be nearly black, which is
 * reported.
 *
 * libtiff is loaded when the first TIFF is read. It reads the file through callbacks, and reports
 * errors to a handler of this file object: its usual handlers print. */
#include "data/picture.h"

#ifdef PUMICE_TIFF
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <tiffio.h>

#include "data/library.h"

static struct {
    __typeof__(&TIFFClientOpenExt) open;
    __typeof__(&TIFFClose) close;
    __typeof__(&TIFFGetField) field;
    __typeof__(&TIFFRGBAImageOK) known;
    __typeof__(&TIFFRGBAImageBegin) begin;
    __typeof__(&TIFFRGBAImageGet) get;
    __typeof__(&TIFFRGBAImageEnd) end;
    __typeof__(&TIFFOpenOptionsAlloc) options;
    __typeof__(&TIFFOpenOptionsFree) free_options;
    __typeof__(&TIFFOpenOptionsSetErrorHandlerExtR) on_error;
    __typeof__(&TIFFOpenOptionsSetWarningHandlerExtR) on_warning;
    __typeof__(&TIFFOpenOptionsSetMaxSingleMemAlloc) most_memory;
} tiff;

#define ENTRY(member, function) { #function, offsetof(__typeof__(tiff), member) }
static const struct pm_library_entry entries[] = {
    ENTRY(open, TIFFClientOpenExt),
    ENTRY(close, TIFFClose),
    ENTRY(field, TIFFGetField),
    ENTRY(known, TIFFRGBAImageOK),
    ENTRY(begin, TIFFRGBAImageBegin),
    ENTRY(get, TIFFRGBAImageGet),
    ENTRY(end, TIFFRGBAImageEnd),
    ENTRY(options, TIFFOpenOptionsAlloc),
    ENTRY(free_options, TIFFOpenOptionsFree),
    ENTRY(on_error, TIFFOpenOptionsSetErrorHandlerExtR),
    ENTRY(on_warning, TIFFOpenOptionsSetWarningHandlerExtR),
    ENTRY(most_memory, TIFFOpenOptionsSetMaxSingleMemAlloc),
};
static const char *const names[] = { "libtiff.so.6", NULL };
static struct pm_library library = PM_LIBRARY(names, "libtiff6", entries, &tiff);

/* ---- the file in memory ---------------------------------------------------------------------- */

enum { LEAST_MEMORY = 1 << 24 }; /* bytes */

struct reader {
    const struct pm_picture_file *file;
    uint64_t at;
    TIFF *open;
    char error[256]; /* libtiff's first message; "" if there is none */
};

static tmsize_t take(thandle_t user, void *to, tmsize_t size)
{
    struct reader *r = user;
    const uint64_t left = r->at < r->file->size ? r->file->size - r->at : 0;
    const size_t n = (uint64_t)size < left ? (size_t)size : (size_t)left;

    memcpy(to, r->file->data + (n ? r->at : 0), n);
    r->at += n;
    return (tmsize_t)n;
}

static tmsize_t refuse(thandle_t user, void *from, tmsize_t size)
{
    (void)user, (void)from, (void)size;
    return 0;
}

static toff_t seek(thandle_t user, toff_t to, int whence)
{
    struct reader *r = user;

    r->at = to + (whence == SEEK_CUR ? r->at : whence == SEEK_END ? r->file->size : 0);
    return r->at;
}

static int leave(thandle_t user)
{
    (void)user;
    return 0;
}

static toff_t size_of(thandle_t user)
{
    return ((struct reader *)user)->file->size;
}

/* Returns 1, so that libtiff's own handler does not print. */
static int PM_PRINTF(4, 0) keep(TIFF *t, void *user, const char *module, const char *fmt,
                                va_list args)
{
    struct reader *r = user;

    (void)t, (void)module;
    if (!r->error[0])
        vsnprintf(r->error, sizeof r->error, fmt, args);
    return 1;
}

static int PM_PRINTF(4, 0) ignore(TIFF *t, void *user, const char *module, const char *fmt,
                                  va_list args)
{
    (void)t, (void)user, (void)module, (void)fmt, (void)args;
    return 1;
}

static int damaged(const struct reader *r)
{
    return pm_picture_damaged(r->file, r->error[0] ? r->error : "libtiff gives no reason");
}

static int open_file(struct reader *r)
{
    TIFFOpenOptions *options;
    int err = PM_OK;

    PM_TRY(pm_library_load(&library, r->file->where));
    options = tiff.options();
    if (options) {
        tiff.on_error(options, keep, r);
        tiff.on_warning(options, ignore, r);
        /* A tile may be as large as the largest picture, with 4 samples of 16 bits. Tables need
         * less than LEAST_MEMORY. */
        tiff.most_memory(options, (tmsize_t)(LEAST_MEMORY + r->file->max_pixels * 8));
        r->open = tiff.open(r->file->where, "rm", r, take, refuse, seek, leave, size_of, NULL, NULL,
                            options);
        tiff.free_options(options);
    }
    if (!r->open)
        return damaged(r);
out:
    return err;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static int measure(struct reader *r, int64_t *height, int64_t *width)
{
    uint32_t rows = 0, columns = 0;

    if (!tiff.field(r->open, TIFFTAG_IMAGELENGTH, &rows) ||
        !tiff.field(r->open, TIFFTAG_IMAGEWIDTH, &columns))
        return damaged(r);
    *height = rows;
    *width = columns;
    return PM_OK;
}

/* Keeps the first channels of each pixel, in place. */
static void pack(uint8_t *pixels, size_t count, int channels)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t v;

        memcpy(&v, pixels + 4 * i, sizeof v);
        for (int c = 0; c < channels; c++)
            pixels[i * (size_t)channels + (size_t)c] = (uint8_t)(v >> 8 * c);
    }
}

/* Reads the pixels in the order in which they are stored: pm_picture_turn turns them. */
static int read_pixels(struct reader *r, int64_t height, int64_t width, struct pm_image8 *out)
{
    const size_t count = (size_t)(height * width);
    uint8_t *pixels = pm_try_realloc(NULL, 4 * count);
    TIFFRGBAImage image;
    char text[1024] = "";
    int err = PM_OK;

    if (!pixels)
        return pm_picture_no_memory(r->file, width, height);
    if (!tiff.known(r->open, text) || !tiff.begin(&image, r->open, 1, text))
        PM_TRY(r->error[0] ? damaged(r) : pm_picture_unsupported(r->file, text));
    image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;
    const bool grey = image.photometric == PHOTOMETRIC_MINISBLACK ||
                      image.photometric == PHOTOMETRIC_MINISWHITE;
    const bool whole = tiff.get(&image, (uint32_t *)(void *)pixels, (uint32_t)width,
                                (uint32_t)height);
    tiff.end(&image);
    if (!whole || r->error[0])
        PM_TRY(damaged(r));
    pack(pixels, count, grey ? 1 : 3);
    *out = (struct pm_image8){ (int)height, (int)width, grey ? 1 : 3, pixels };
    pixels = NULL;
out:
    pm_free(pixels);
    return err;
}

/* Once per process: a picture of 16 bits whose samples are below an eighth of what they can be. */
static void report_dark(const struct reader *r, const struct pm_image8 *im)
{
    enum { DARK = 32 };
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    const size_t count = (size_t)im->height * (size_t)im->width * (size_t)im->channels;
    uint16_t bits = 1;
    int most = 0;

    tiff.field(r->open, TIFFTAG_BITSPERSAMPLE, &bits);
    for (size_t i = 0; bits == 16 && i < count && most < DARK; i++)
        most = im->pixels[i] > most ? im->pixels[i] : most;
    if (most > 0 && most < DARK && !atomic_flag_test_and_set(&warned))
        PM_WARN("data", "%s: samples of 16 bits become 8 bits, and the largest becomes %d of 255. "
                "The file does not state the sensor's range: scale the samples of all such "
                "pictures to 0..65535", r->file->where, most);
}

int pm_picture_tiff(const struct pm_picture_file *f, struct pm_image8 *out)
{
    struct reader r = { .file = f };
    int64_t height = 0, width = 0;
    int err = PM_OK;

    PM_TRY(open_file(&r));
    PM_TRY(measure(&r, &height, &width));
    PM_TRY(pm_picture_size(f, width, height));
    PM_TRY(read_pixels(&r, height, width, out));
    report_dark(&r, out);
out:
    if (r.open)
        tiff.close(r.open);
    return err;
}

int pm_picture_measure_tiff(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    struct reader r = { .file = f };
    int err = PM_OK;

    PM_TRY(open_file(&r));
    PM_TRY(measure(&r, height, width));
out:
    if (r.open)
        tiff.close(r.open);
    return err;
}
#else
int pm_picture_tiff(const struct pm_picture_file *f, struct pm_image8 *out)
{
    (void)out;
    return pm_picture_not_built(f, "libtiff-dev");
}

int pm_picture_measure_tiff(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    (void)height, (void)width;
    return pm_picture_not_built(f, "libtiff-dev");
}
#endif
