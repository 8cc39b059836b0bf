/* Images to bytes: PNG and JPEG, through stb_image_write. */
#include <zlib.h>

#include <pumice/data.h>

#define STBIW_MALLOC(size) pm_try_realloc(NULL, size)
#define STBIW_REALLOC(p, size) pm_try_realloc(p, size)
#define STBIW_FREE(p) pm_free(p)
#define STB_IMAGE_WRITE_STATIC
#ifndef __clang_analyzer__ /* hides a leak in stb_image_write when memory runs out; not our code */
#define STB_IMAGE_WRITE_IMPLEMENTATION
#endif
#define STBI_WRITE_NO_STDIO
#define STBIW_ZLIB_COMPRESS deflate_bytes
static unsigned char *deflate_bytes(unsigned char *data, int size, int *out_size, int quality);
#pragma GCC diagnostic ignored "-Wunused-function" /* applies until the file's end, so it is not
                                                    * popped */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpointer-arith"
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
