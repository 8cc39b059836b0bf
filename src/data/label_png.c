/* label_png: label maps, the class of each pixel, from and to PNG through libpng. A pixel's label
 * is the number that the file stores, never a colour derived from it. Grey samples of 1, 2, 4, 8 or
 * 16 bits are not scaled. Palette pictures give the index; alpha is dropped. Three channels are
 * accepted if they are equal everywhere, because some programs write grey pictures so. Other
 * pictures hold colours, not labels, and are refused. */
#include <string.h>

#include "data/png_file.h"

static void as_numbers(png_structp png, png_infop info)
{
    (void)info;
    png_set_packing(png);
    png_set_strip_alpha(png);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
}

/* Copies the rows' samples to labels. */
static int numbers(const struct pm_png *p, struct pm_label *out)
{
    const int channels = p->channels;
    const bool deep = p->depth == 16;

    for (int y = 0; y < out->height; y++) {
        uint16_t *to = out->values + (size_t)y * (size_t)out->width;
        const uint8_t *row = p->rows[y];
        if (deep && channels == 1)
            memcpy(to, row, (size_t)out->width * 2);
        else if (channels == 1)
            for (int x = 0; x < out->width; x++)
                to[x] = row[x];
        for (int x = 0; x < out->width && channels == 3; x++) {
            uint16_t v[3];
            for (int c = 0; c < 3; c++)
                if (deep)
                    memcpy(&v[c], row + (3 * x + c) * 2, 2);
                else
                    v[c] = row[3 * x + c];
            if (v[0] != v[1] || v[0] != v[2])
                return pm_fail(PM_EDATA,
                               "%s: the label map has colours (%d, %d, %d at row %d, column %d); a "
                               "label map must be a grey PNG or a PNG with a palette: convert "
                               "colours with 'pumice dataset convert pairs colours=FILE'",
                               p->file->where, v[0], v[1], v[2], y, x);
            to[x] = v[0];
        }
    }
    return PM_OK;
}

int pm_label_decode(const void *data, size_t size, size_t max_pixels, const char *where,
                    struct pm_label *out)
{
    const struct pm_picture_file f = {
        .data = data, .size = size, .max_pixels = max_pixels ? max_pixels : PM_PICTURE_PIXELS,
        .where = where, .kind = "map of labels",
    };
    int err = PM_OK;
    struct pm_png p = { .at = 0 };

    *out = (struct pm_label){ 0 };
    if (size < 8 || png_sig_cmp(data, 0, 8))
        return pm_fail(PM_EDATA, "%s: the label map, %zu bytes, is not a PNG. Save it as PNG",
                       where, size);
    PM_TRY(pm_png_read(&p, &f, as_numbers));
    *out = (struct pm_label){ p.height, p.width, NULL };
    out->values = pm_try_realloc(NULL, (size_t)p.height * (size_t)p.width * sizeof *out->values);
    if (!out->values)
        PM_TRY(pm_picture_no_memory(&f, p.width, p.height));
    PM_TRY(numbers(&p, out));
out:
    pm_png_close(&p);
    if (err < 0)
        pm_label_free(out);
    return err;
}

/* Offset 24 of the header that follows the signature: length, "IHDR", width, height, bits. */
int pm_label_bits(const void *data)
{
    return ((const uint8_t *)data)[24];
}

void pm_label_free(struct pm_label *l)
{
    pm_free(l->values);
    *l = (struct pm_label){ 0 };
}

size_t pm_label_stray(const struct pm_label *l, int classes, int ignore)
{
    const size_t count = (size_t)l->height * (size_t)l->width;
    size_t i = 0;

    while (i < count && (l->values[i] < classes || l->values[i] == ignore))
        i++;
    return i;
}

int pm_label_encode(const struct pm_label *l, const char *where, uint8_t **out, size_t *size)
{
    const size_t count = (size_t)l->height * (size_t)l->width;
    struct pm_image8 im = { l->height, l->width, 1, NULL };

    for (size_t i = 0; i < count; i++)
        if (l->values[i] > 255)
            return pm_fail(PM_EDATA, "%s: the label %d at row %zu, column %zu is outside 0..255",
                           where, l->values[i], i / (size_t)l->width, i % (size_t)l->width);
    im.pixels = pm_malloc(count);
    for (size_t i = 0; i < count; i++)
        im.pixels[i] = (uint8_t)l->values[i];
    const int err = pm_image_encode_png(&im, out, size);
    pm_image_free(&im);
    return err;
}

/* ---- 16 bits ------------------------------------------------------------------------------ */

static void pass_over(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

struct sink {
    struct pm_str png;
    jmp_buf jump;
    char text[160];
};

static void put(png_structp png, png_bytep data, size_t count)
{
    struct sink *s = png_get_io_ptr(png);
    pm_str_bytes(&s->png, data, count);
}

static void flush(png_structp png)
{
    (void)png;
}

static void fail_writing(png_structp png, png_const_charp text)
{
    struct sink *s = png_get_error_ptr(png);

    snprintf(s->text, sizeof s->text, "%s", text);
    longjmp(s->jump, 1);
}

static bool write_deep(struct sink *s, png_structp png, png_infop info, const struct pm_label *l)
{
    if (setjmp(s->jump))
        return false;
    png_set_write_fn(png, s, put, flush);
    png_set_IHDR(png, info, (png_uint_32)l->width, (png_uint_32)l->height, 16, PNG_COLOR_TYPE_GRAY,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(png, 0, PNG_FILTER_NONE); /* labels repeat; filters do not help */
    png_write_info(png, info);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
    for (int y = 0; y < l->height; y++)
        png_write_row(png, (png_const_bytep)(l->values + (size_t)y * (size_t)l->width));
    png_write_end(png, info);
    return true;
}

int pm_label_encode_deep(const struct pm_label *l, const char *where, uint8_t **out, size_t *size)
{
    int err = PM_OK;
    struct sink s = { .png = { 0 } };
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &s, fail_writing, pass_over);
    png_infop info = png ? png_create_info_struct(png) : NULL;

    if (!info)
        PM_TRY(pm_fail(PM_EFAIL, "%s: libpng cannot be used: it is not version %s", where,
                       PNG_LIBPNG_VER_STRING));
    if (!write_deep(&s, png, info, l))
        PM_TRY(pm_fail(PM_EFAIL, "%s: a map of %d x %d could not be written as PNG: %s", where,
                       l->height, l->width, s.text));
    *out = (uint8_t *)s.png.text;
    *size = s.png.length;
    s.png = (struct pm_str){ 0 };
out:
    png_destroy_write_struct(&png, &info);
    pm_str_free(&s.png);
    return err;
}
