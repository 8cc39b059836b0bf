/* png_file.h has the contract. */
#include <string.h>

#include "data/png_file.h"

static void take(png_structp png, png_bytep out, size_t count)
{
    struct pm_png *p = png_get_io_ptr(png);

    if (count > p->file->size - p->at)
        png_error(png, "it is cut short");
    memcpy(out, p->file->data + p->at, count);
    p->at += count;
}

static void fail(png_structp png, png_const_charp text)
{
    struct pm_png *p = png_get_error_ptr(png);

    pm_picture_damaged(p->file, text);
    longjmp(p->jump, 1);
}

static void pass_over(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void *get(png_structp png, size_t size)
{
    (void)png;
    return pm_try_realloc(NULL, size);
}

static void give_back(png_structp png, void *memory)
{
    (void)png;
    pm_free(memory);
}

/* Checks the header after the signature: length and name of the first chunk, width, height, bits
 * per sample, colour type. libpng checks these too, but its messages have no numbers. */
static int check_header(const struct pm_picture_file *f)
{
    static const int depths[7] = {
        1 | 2 | 4 | 8 | 16, 0, 8 | 16, 1 | 2 | 4 | 8, 8 | 16, 0, 8 | 16
    };
    const uint8_t *p = f->data;

    if (f->size < 33)
        return pm_picture_damaged(f, "it is cut short");
    if (memcmp(p + 12, "IHDR", 4))
        return pm_picture_damaged(f, "it does not start with the chunk IHDR");
    const int depth = p[24], type = p[25];
    if (pm_picture_size(f, png_get_uint_32(p + 16), png_get_uint_32(p + 20)) < 0)
        return PM_EDATA;
    if (type > 6 || !(depths[type] & depth) || (depth & (depth - 1)))
        return pm_fail(PM_EDATA,
                       "%s: the %s's header has %d bits per sample with colour type %d, which PNG "
                       "does not allow. Fetch or export it again, or remove it",
                       f->where, f->kind, depth, type);
    return PM_OK;
}

/* Checks that the pixel chunks (IDAT) are consecutive. libpng drops chunks after a gap with a
 * warning. Truncated files are left to libpng. */
static int check_order(const struct pm_picture_file *f)
{
    bool begun = false, over = false;

    for (size_t at = 8; f->size - at >= 12;) {
        const uint8_t *p = f->data + at;
        const size_t length = png_get_uint_32(p);
        const bool pixels = !memcmp(p + 4, "IDAT", 4);
        if (pixels && over && length > 0)
            return pm_fail(PM_EDATA,
                           "%s: the %s is damaged: byte %zu has pixels (IDAT) after another chunk. "
                           "Fetch or export it again, or remove it",
                           f->where, f->kind, at);
        over |= begun && !pixels;
        begun |= pixels;
        if (length > f->size - at - 12)
            break;
        at += 12 + length;
    }
    return PM_OK;
}

static int read_header(struct pm_png *p, void (*want)(png_structp, png_infop))
{
    if (setjmp(p->jump))
        return PM_EDATA;
    p->info = png_create_info_struct(p->png);
    if (!p->info)
        png_error(p->png, "no memory");
    png_set_read_fn(p->png, p, take);
    png_set_user_limits(p->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* see pm_picture_size */
    png_set_check_for_invalid_index(p->png, 0); /* picture_png.c checks palette indices */
    /* Texts, profiles and similar chunks are skipped. Otherwise libpng allocates the length they
     * claim. */
    png_set_keep_unknown_chunks(p->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_chunk_malloc_max(p->png, 0);
    png_read_info(p->png, p->info);
    want(p->png, p->info);
    png_set_interlace_handling(p->png);
    png_read_update_info(p->png, p->info);
    p->height = (int)png_get_image_height(p->png, p->info);
    p->width = (int)png_get_image_width(p->png, p->info);
    p->channels = png_get_channels(p->png, p->info);
    p->depth = png_get_bit_depth(p->png, p->info);
    return PM_OK;
}

static int read_rows(struct pm_png *p)
{
    if (setjmp(p->jump))
        return PM_EDATA;
    png_read_image(p->png, p->rows);
    png_read_end(p->png, NULL);
    return PM_OK;
}

int pm_png_read(struct pm_png *p, const struct pm_picture_file *f,
                void (*want)(png_structp png, png_infop info))
{
    int err = PM_OK;

    *p = (struct pm_png){ .file = f };
    PM_TRY(check_header(f));
    PM_TRY(check_order(f));
    p->png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, p, fail, pass_over, NULL, get, give_back);
    if (!p->png)
        PM_TRY(pm_fail(PM_EFAIL, "%s: libpng cannot be used: it is not version %s", f->where,
                       PNG_LIBPNG_VER_STRING));
    PM_TRY(read_header(p, want));
    const size_t height = (size_t)p->height, row_size = png_get_rowbytes(p->png, p->info);
    p->pixels = pm_try_realloc(NULL, height * row_size);
    p->rows = pm_try_realloc(NULL, height * sizeof *p->rows);
    if (!p->pixels || !p->rows)
        PM_TRY(pm_picture_no_memory(f, p->width, p->height));
    for (size_t y = 0; y < height; y++)
        p->rows[y] = p->pixels + y * row_size;
    PM_TRY(read_rows(p));
out:
    return err;
}

void pm_png_close(struct pm_png *p)
{
    png_destroy_read_struct(&p->png, &p->info, NULL);
    pm_free(p->pixels);
    pm_free(p->rows);
}
