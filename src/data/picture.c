/* Shared by all picture decoders: error messages, and turning pixels upright. */
#include <string.h>

#include "data/picture.h"

/* ---- messages ------------------------------------------------------------------------------ */

int pm_picture_size(const struct pm_picture_file *f, int64_t width, int64_t height)
{
    if (width < 1 || height < 1)
        return pm_fail(PM_EDATA,
                       "%s: the %s is %lld x %lld pixels (width x height) by its header; each side "
                       "must be at least 1. Fetch or export it again, or remove it",
                       f->where, f->kind, (long long)width, (long long)height);
    if ((uint64_t)width > f->max_pixels / (uint64_t)height)
        return pm_fail(PM_EDATA,
                       "%s: the %s is %lld x %lld pixels (width x height) by its header; "
                       "1..%zu pixels in all are allowed. Scale it down, or remove it",
                       f->where, f->kind, (long long)width, (long long)height, f->max_pixels);
    return PM_OK;
}

int pm_picture_damaged(const struct pm_picture_file *f, const char *text)
{
    return pm_fail(PM_EDATA, "%s: the %s is damaged: %s. Fetch or export it again, or remove it",
                   f->where, f->kind, text);
}

int pm_picture_unsupported(const struct pm_picture_file *f, const char *text)
{
    return pm_fail(
        PM_EDATA, "%s: this kind of %s is not supported: %s. Save it as an ordinary JPEG or as PNG",
        f->where, f->kind, text);
}

int pm_picture_not_built(const struct pm_picture_file *f, const char *package)
{
    return pm_fail(PM_EFAIL,
                   "%s: this build of Pumice does not read %s: install the package %s and build "
                   "again, or save the picture as JPEG or PNG",
                   f->where, f->kind, package);
}

int pm_picture_no_memory(const struct pm_picture_file *f, int64_t width, int64_t height)
{
    return pm_fail(PM_EDATA,
                   "%s: the memory for a %s of %lld x %lld pixels is not available. Scale the "
                   "picture down, or free memory",
                   f->where, f->kind, (long long)width, (long long)height);
}

/* ---- sizes --------------------------------------------------------------------------------- */

static int64_t be(const uint8_t *p, int bytes)
{
    int64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

int pm_picture_measure_png(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    if (f->size < 24 || memcmp(f->data + 12, "IHDR", 4))
        return pm_picture_damaged(f, "its header lacks width and height");
    *width = be(f->data + 16, 4);
    *height = be(f->data + 20, 4);
    return PM_OK;
}

/* Goes from marker to marker up to the first frame header. */
int pm_picture_measure_jpeg(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    const uint8_t *p = f->data;
    size_t at = 2;

    while (at + 4 <= f->size) {
        const uint8_t marker = p[at + 1];

        if (p[at] != 0xff || marker == 0xff || marker == 0 || marker == 1 ||
            (marker >= 0xd0 && marker <= 0xd8)) {
            at += p[at] == 0xff && marker != 0xff ? 2 : 1;
            continue;
        }
        if (marker == 0xd9 || marker == 0xda)
            break;
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
            marker != 0xcc && at + 9 <= f->size) {
            *height = be(p + at + 5, 2);
            *width = be(p + at + 7, 2);
            return PM_OK;
        }
        at += 2 + (size_t)be(p + at + 2, 2);
    }
    return pm_picture_damaged(f, "its header lacks width and height");
}

/* ---- turning ------------------------------------------------------------------------------- */

enum { STRIP = 32 }; /* columns per strip, so that source rows stay in the cache */

int pm_picture_turn(const struct pm_picture_file *f, struct pm_image8 *im, int orientation)
{
    const bool across = orientation >= 5;
    const ptrdiff_t height = im->height, width = im->width, n = im->channels, row = width * n;
    const ptrdiff_t rows = across ? width : height, columns = across ? height : width;
    /* Place of the first stored pixel in the upright picture, and the steps from there. */
    const bool right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool bottom =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const ptrdiff_t along = right ? -n : n, down = bottom ? -row : row;
    const uint8_t *first = im->pixels + (right ? row - n : 0) + (bottom ? (height - 1) * row : 0);
    const ptrdiff_t step_x = across ? down : along, step_y = across ? along : down;

    if (orientation == 1)
        return PM_OK;
    uint8_t *out = pm_try_realloc(NULL, (size_t)(height * row));
    if (!out)
        return pm_picture_no_memory(f, im->width, im->height);
    for (ptrdiff_t begin = 0; begin < columns; begin += STRIP)
        for (ptrdiff_t y = 0; y < rows; y++) {
            const ptrdiff_t end = begin + STRIP < columns ? begin + STRIP : columns;
            for (ptrdiff_t x = begin; x < end; x++)
                memcpy(out + (y * columns + x) * n, first + y * step_y + x * step_x, (size_t)n);
        }
    pm_free(im->pixels);
    *im = (struct pm_image8){ (int)rows, (int)columns, im->channels, out };
    return PM_OK;
}
