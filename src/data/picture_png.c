/* PNG to pixels. Grey of 1, 2 and 4 bits is scaled to 0..255. 16-bit samples keep their upper 8
 * bits, as in TensorFlow. A palette becomes its colours. A transparent colour (tRNS) becomes alpha.
 * Gamma and colour profiles are ignored.
 *
 * The palette is looked up here, not by libpng, because libpng turns an index beyond the palette
 * into black. Such a file is damaged and refused. */
#include "data/png_file.h"

static void as_pixels(png_structp png, png_infop info)
{
    const bool palette = png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE;

    png_set_packing(png);
    if (palette)
        return;
    png_set_expand(png);
    png_set_strip_16(png);
}

/* Converts one-byte indices to RGB, or to RGBA if the file has alpha for some colours. */
static int look_up(const struct pm_png *p, struct pm_image8 *out)
{
    png_colorp colors = NULL;
    png_bytep alpha = NULL;
    int count = 0, alphas = 0;

    png_get_PLTE(p->png, p->info, &colors, &count);
    if (!png_get_tRNS(p->png, p->info, &alpha, &alphas, NULL))
        alphas = 0;
    const int channels = alphas > 0 ? 4 : 3;
    const size_t pixels = (size_t)p->height * (size_t)p->width;
    uint8_t *to = pm_try_realloc(NULL, pixels * (size_t)channels);
    if (!to)
        return pm_picture_no_memory(p->file, p->width, p->height);
    *out = (struct pm_image8){ p->height, p->width, channels, to };
    for (size_t i = 0; i < pixels; i++, to += channels) {
        const int k = p->pixels[i];
        if (k >= count) {
            pm_image_free(out);
            return pm_fail(PM_EDATA,
                           "%s: the PNG is damaged: row %zu, column %zu has colour %d of a palette "
                           "of %d. Export it again, or remove it",
                           p->file->where, i / (size_t)p->width, i % (size_t)p->width, k, count);
        }
        to[0] = colors[k].red, to[1] = colors[k].green, to[2] = colors[k].blue;
        if (channels == 4)
            to[3] = k < alphas ? alpha[k] : 255;
    }
    return PM_OK;
}

int pm_picture_png(const struct pm_picture_file *f, struct pm_image8 *out)
{
    struct pm_png p = { .at = 0 };
    int err = PM_OK;

    PM_TRY(pm_png_read(&p, f, as_pixels));
    if (png_get_color_type(p.png, p.info) == PNG_COLOR_TYPE_PALETTE) {
        PM_TRY(look_up(&p, out));
    } else {
        *out = (struct pm_image8){ p.height, p.width, p.channels, p.pixels };
        p.pixels = NULL;
    }
out:
    pm_png_close(&p);
    return err;
}
