/* WebP through libwebp: lossy and lossless, with and without alpha. The first picture of an
 * animation is drawn on its canvas, as a viewer shows it. libwebp is loaded when the first WebP is
 * read. */
#include "data/picture.h"

#ifdef PUMICE_WEBP
#include <webp/decode.h>
#include <webp/demux.h>
#include <string.h>

#include "data/library.h"

static struct {
    __typeof__(&WebPGetFeaturesInternal) features;
    __typeof__(&WebPDecodeRGBInto) rgb;
    __typeof__(&WebPDecodeRGBAInto) rgba;
} webp;
static struct {
    __typeof__(&WebPAnimDecoderOptionsInitInternal) options;
    __typeof__(&WebPAnimDecoderNewInternal) create;
    __typeof__(&WebPAnimDecoderGetNext) next;
    __typeof__(&WebPAnimDecoderDelete) release;
} demux;

#define ENTRY(object, member, function) { #function, offsetof(__typeof__(object), member) }
static const struct pm_library_entry webp_entries[] = {
    ENTRY(webp, features, WebPGetFeaturesInternal), ENTRY(webp, rgb, WebPDecodeRGBInto),
    ENTRY(webp, rgba, WebPDecodeRGBAInto),
};
static const struct pm_library_entry demux_entries[] = {
    ENTRY(demux, options, WebPAnimDecoderOptionsInitInternal),
    ENTRY(demux, create, WebPAnimDecoderNewInternal), ENTRY(demux, next, WebPAnimDecoderGetNext),
    ENTRY(demux, release, WebPAnimDecoderDelete),
};
static const char *const webp_names[] = { "libwebp.so.7", NULL };
static const char *const demux_names[] = { "libwebpdemux.so.2", NULL };
static struct pm_library webp_library = PM_LIBRARY(webp_names, "libwebp7", webp_entries, &webp);
static struct pm_library demux_library = PM_LIBRARY(demux_names, "libwebpdemux2", demux_entries,
                                                    &demux);

static int read_header(const struct pm_picture_file *f, WebPBitstreamFeatures *out)
{
    int err = PM_OK;

    PM_TRY(pm_library_load(&webp_library, f->where));
    switch (webp.features(f->data, f->size, out, WEBP_DECODER_ABI_VERSION)) {
    case VP8_STATUS_OK:
        break;
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return pm_picture_damaged(f, "it is cut short");
    default:
        return pm_picture_damaged(f, "its header cannot be read");
    }
out:
    return err;
}

int pm_picture_measure_webp(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    WebPBitstreamFeatures head;
    int err = PM_OK;

    PM_TRY(read_header(f, &head));
    *height = head.height;
    *width = head.width;
out:
    return err;
}

static int read_still(const struct pm_picture_file *f, const WebPBitstreamFeatures *head,
                      struct pm_image8 *im)
{
    const int row = im->width * im->channels;
    const size_t size = (size_t)im->height * (size_t)row;

    if (!(head->has_alpha ? webp.rgba : webp.rgb)(f->data, f->size, im->pixels, size, row))
        return pm_picture_damaged(f, "its pixels cannot be decoded, or are missing");
    return PM_OK;
}

static int read_first(const struct pm_picture_file *f, struct pm_image8 *im)
{
    const WebPData data = { f->data, f->size };
    WebPAnimDecoderOptions options;
    WebPAnimDecoder *decoder = NULL;
    uint8_t *canvas = NULL;
    int at = 0, err = PM_OK;

    PM_TRY(pm_library_load(&demux_library, f->where));
    if (demux.options(&options, WEBP_DEMUX_ABI_VERSION)) {
        options.use_threads = 0;
        decoder = demux.create(&data, &options, WEBP_DEMUX_ABI_VERSION);
    }
    if (!decoder || !demux.next(decoder, &canvas, &at))
        PM_TRY(pm_picture_damaged(f, "the first picture of the animation cannot be decoded"));
    memcpy(im->pixels, canvas, (size_t)im->height * (size_t)im->width * 4);
out:
    if (decoder)
        demux.release(decoder);
    return err;
}

int pm_picture_webp(const struct pm_picture_file *f, struct pm_image8 *out)
{
    WebPBitstreamFeatures head;
    struct pm_image8 im = { 0 };
    int err = PM_OK;

    PM_TRY(read_header(f, &head));
    PM_TRY(pm_picture_size(f, head.width, head.height));
    im = (struct pm_image8){ head.height, head.width, head.has_animation || head.has_alpha ? 4 : 3,
                             NULL };
    im.pixels = pm_try_realloc(NULL, (size_t)im.height * (size_t)im.width * (size_t)im.channels);
    if (!im.pixels)
        PM_TRY(pm_picture_no_memory(f, im.width, im.height));
    PM_TRY(head.has_animation ? read_first(f, &im) : read_still(f, &head, &im));
    *out = im;
    im.pixels = NULL;
out:
    pm_free(im.pixels);
    return err;
}
#else
int pm_picture_webp(const struct pm_picture_file *f, struct pm_image8 *out)
{
    (void)out;
    return pm_picture_not_built(f, "libwebp-dev");
}

int pm_picture_measure_webp(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    (void)height, (void)width;
    return pm_picture_not_built(f, "libwebp-dev");
}
#endif
