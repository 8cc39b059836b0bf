/* Images: bytes to pixels. The first bytes of a file choose the decoder (picture.h). Orientation
 * and channels are converted here, in one place for all formats. */
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "data/picture.h"

/* ---- kinds --------------------------------------------------------------------------------- */

static bool is_jpeg(const uint8_t *p, size_t size)
{
    return size >= 4 && p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff;
}

static bool is_png(const uint8_t *p, size_t size)
{
    return size >= 8 && !memcmp(p, "\x89PNG\r\n\x1a\n", 8);
}

static bool is_gif(const uint8_t *p, size_t size)
{
    return size >= 6 && (!memcmp(p, "GIF87a", 6) || !memcmp(p, "GIF89a", 6));
}

static bool is_bmp(const uint8_t *p, size_t size)
{
    return size >= 26 && !memcmp(p, "BM", 2);
}

static bool is_pnm(const uint8_t *p, size_t size)
{
    return size >= 8 && p[0] == 'P' && (p[1] == '5' || p[1] == '6') && p[2] &&
           strchr("\t\n\r #", p[2]);
}

static bool is_psd(const uint8_t *p, size_t size)
{
    return size >= 26 && !memcmp(p, "8BPS\0\1", 6);
}

static bool is_hdr(const uint8_t *p, size_t size)
{
    return size >= 16 && (!memcmp(p, "#?RADIANCE\n", 11) || !memcmp(p, "#?RGBE\n", 7));
}

static bool is_webp(const uint8_t *p, size_t size)
{
    return size >= 16 && !memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WEBP", 4);
}

/* The last two are BigTIFF, with 64-bit offsets. */
static bool is_tiff(const uint8_t *p, size_t size)
{
    return size >= 8 && (!memcmp(p, "II*\0", 4) || !memcmp(p, "MM\0*", 4) ||
                         !memcmp(p, "II+\0", 4) || !memcmp(p, "MM\0+", 4));
}

/* Whether the first box, ftyp, names one of these brands, of four letters each, separated by
 * spaces. The box has its size, "ftyp", the main brand, a version, and more brands. */
static bool has_brand(const uint8_t *p, size_t size, const char *brands)
{
    if (size < 16 || memcmp(p + 4, "ftyp", 4))
        return false;
    const size_t box = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    const size_t end = box < size ? box : size;

    for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4)
        for (const char *b = brands; *b; b += b[4] ? 5 : 4)
            if (!memcmp(p + at, b, 4))
                return true;
    return false;
}

static bool is_avif(const uint8_t *p, size_t size)
{
    return has_brand(p, size, "avif avis");
}

static bool is_heic(const uint8_t *p, size_t size)
{
    return has_brand(p, size, "heic heix heim heis hevc hevx mif1 msf1");
}

/* TGA comes last, because it has no signature. AVIF files may also have HEIC's general brands. */
static const struct kind {
    const char *name, *label; /* pm_image_format's name; name in messages */
    bool (*is)(const uint8_t *p, size_t size);
    int (*read)(const struct pm_picture_file *f, struct pm_image8 *out);
    int (*measure)(const struct pm_picture_file *f, int64_t *height, int64_t *width);
    int (*orientation)(const uint8_t *p, size_t size); /* NULL: always upright */
} kinds[] = {
    { "jpeg", "JPEG", is_jpeg, pm_picture_jpeg, pm_picture_measure_jpeg, pm_exif_of_jpeg },
    { "png", "PNG", is_png, pm_picture_png, pm_picture_measure_png, pm_exif_of_png },
    { "gif", "GIF", is_gif, pm_picture_stb, pm_picture_measure_stb },
    { "bmp", "BMP", is_bmp, pm_picture_stb, pm_picture_measure_stb },
    { "pnm", "PNM", is_pnm, pm_picture_pnm, pm_picture_measure_stb },
    { "psd", "PSD", is_psd, pm_picture_psd, pm_picture_measure_stb },
    { "hdr", "HDR", is_hdr, pm_picture_stb, pm_picture_measure_stb },
    { "webp", "WebP", is_webp, pm_picture_webp, pm_picture_measure_webp, pm_exif_of_webp },
    { "tiff", "TIFF", is_tiff, pm_picture_tiff, pm_picture_measure_tiff, pm_exif_of_tiff },
    { "avif", "AVIF", is_avif, pm_picture_heif, pm_picture_measure_heif },
    { "heic", "HEIC", is_heic, pm_picture_heif, pm_picture_measure_heif },
    { "tga", "TGA", pm_picture_is_tga, pm_picture_stb, pm_picture_measure_stb },
};

static const struct kind *find_kind(const uint8_t *p, size_t size)
{
    for (size_t i = 0; i < PM_COUNT(kinds); i++)
        if (kinds[i].is(p, size))
            return &kinds[i];
    return NULL;
}

const char *pm_image_format(const void *data, size_t size)
{
    const struct kind *k = find_kind(data, size);

    return k ? k->name : NULL;
}

int pm_image_orientation(const void *data, size_t size)
{
    const struct kind *k = find_kind(data, size);

    return k && k->orientation ? k->orientation(data, size) : 1;
}

bool pm_image_named(const char *path)
{
    const char *dot = strrchr(path, '.');
    const size_t length = dot ? strlen(dot) : 0;

    for (const char *p = PM_IMAGE_ENDINGS; length > 1 && p; p = strchr(p, ' ')) {
        p += *p == ' ';
        if (!strncasecmp(p, dot, length) && (p[length] == ' ' || !p[length]))
            return true;
    }
    return false;
}

/* ---- channels ------------------------------------------------------------------------------ */

/* Luma with weights 0.2989, 0.5870, 0.1140 in 1/16384ths, rounded. The weights sum to one, so white
 * stays white. */
static uint8_t luma(const uint8_t *p)
{
    return (uint8_t)((4899 * p[0] + 9617 * p[1] + 1868 * p[2] + 8192) >> 14);
}

/* Converts the number of channels. out may be in if the result is not larger. */
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

static int to_channels(const struct pm_picture_file *f, struct pm_image8 *im, int channels)
{
    const size_t count = (size_t)im->height * (size_t)im->width;
    uint8_t *converted = im->pixels;

    if (channels == PM_GREY_OR_COLOR)
        channels = im->channels <= 2 ? 1 : 3;
    if (channels == 0 || channels == im->channels)
        return PM_OK;
    if (channels > im->channels)
        converted = pm_try_realloc(NULL, count * (size_t)channels);
    if (!converted)
        return pm_picture_no_memory(f, im->width, im->height);
    convert(im->pixels, im->channels, converted, channels, count);
    if (converted != im->pixels)
        pm_free(im->pixels);
    im->pixels = converted;
    im->channels = channels;
    return PM_OK;
}

/* Finds the format. PM_EDATA if it is unknown. */
static int open_file(const void *data, size_t size, size_t max_pixels, const char *where,
                     const struct kind **out, struct pm_picture_file *f)
{
    const struct kind *kind = find_kind(data, size);
    int err = PM_OK;

    *f = (struct pm_picture_file){
        .data = data, .size = size, .max_pixels = max_pixels ? max_pixels : PM_PICTURE_PIXELS,
        .where = where, .kind = kind ? kind->label : NULL, .shrink = 1,
    };
    *out = kind;
    if (size == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: the image is empty. Fetch or export it again, or remove it",
                       where));
    if (!kind)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the %zu bytes are not a JPEG, PNG, WebP, TIFF, HEIC, AVIF, GIF, BMP, "
                       "PNM, PSD, HDR or TGA. Save the picture as JPEG or PNG, or remove the file",
                       where, size));
    if (size > INT_MAX)
        PM_TRY(pm_fail(PM_EDATA, "%s: the image has %zu bytes; less than 2 GiB is supported", where,
                       size));
out:
    return err;
}

int pm_image_measure(const void *data, size_t size, size_t max_pixels, const char *where,
                     int *height, int *width)
{
    const struct kind *kind;
    struct pm_picture_file f;
    int64_t rows = 0, columns = 0;
    int err = PM_OK;

    PM_TRY(open_file(data, size, max_pixels, where, &kind, &f));
    PM_TRY(kind->measure(&f, &rows, &columns));
    PM_TRY(pm_picture_size(&f, columns, rows));
    const bool across = pm_image_orientation(data, size) >= 5;
    *height = (int)(across ? columns : rows);
    *width = (int)(across ? rows : columns);
out:
    return err;
}

int pm_image_decode_small(const void *data, size_t size, int channels, size_t max_pixels,
                          int shrink, const char *where, struct pm_image8 *out)
{
    const struct kind *kind;
    struct pm_picture_file f;
    struct pm_image8 im = { 0 };
    int err = PM_OK;

    *out = (struct pm_image8){ 0 };
    PM_TRY(open_file(data, size, max_pixels, where, &kind, &f));
    f.grey = channels == 1;
    f.shrink = shrink;
    PM_TRY(kind->read(&f, &im));
    PM_TRY(pm_picture_turn(&f, &im, pm_image_orientation(data, size)));
    PM_TRY(to_channels(&f, &im, channels));
    *out = im;
    im.pixels = NULL;
out:
    pm_free(im.pixels);
    return err;
}

int pm_image_decode(const void *data, size_t size, int channels, size_t max_pixels,
                    const char *where, struct pm_image8 *out)
{
    return pm_image_decode_small(data, size, channels, max_pixels, 1, where, out);
}

void pm_image_free(struct pm_image8 *im)
{
    pm_free(im->pixels);
    *im = (struct pm_image8){ 0 };
}
