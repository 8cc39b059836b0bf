/* HEIC and AVIF through libheif: the primary picture of a file, as 8-bit colours without alpha.
 * libheif applies the rotation, mirroring and clipping that the file asks for, so the EXIF data,
 * which repeat them, are not used. Samples of 10 and 12 bits become 8 bits.
 *
 * libheif is loaded when the first such picture is read. It decodes in the calling thread. */
#include "data/picture.h"

#ifdef PUMICE_HEIF
#include <libheif/heif.h>
#include <string.h>

#include "data/library.h"

static struct {
    __typeof__(&heif_context_alloc) create;
    __typeof__(&heif_context_free) release;
    __typeof__(&heif_context_set_max_decoding_threads) threads;
    __typeof__(&heif_context_read_from_memory_without_copy) read;
    __typeof__(&heif_context_get_primary_image_handle) primary;
    __typeof__(&heif_image_handle_release) release_handle;
    __typeof__(&heif_image_handle_get_width) width;
    __typeof__(&heif_image_handle_get_height) height;
    __typeof__(&heif_decoding_options_alloc) options;
    __typeof__(&heif_decoding_options_free) free_options;
    __typeof__(&heif_decode_image) decode;
    __typeof__(&heif_image_get_plane_readonly) plane;
    __typeof__(&heif_image_get_width) image_width;
    __typeof__(&heif_image_get_height) image_height;
    __typeof__(&heif_image_release) release_image;
} heif;

#define ENTRY(member, function) { #function, offsetof(__typeof__(heif), member) }
static const struct pm_library_entry entries[] = {
    ENTRY(create, heif_context_alloc),
    ENTRY(release, heif_context_free),
    ENTRY(threads, heif_context_set_max_decoding_threads),
    ENTRY(read, heif_context_read_from_memory_without_copy),
    ENTRY(primary, heif_context_get_primary_image_handle),
    ENTRY(release_handle, heif_image_handle_release),
    ENTRY(width, heif_image_handle_get_width),
    ENTRY(height, heif_image_handle_get_height),
    ENTRY(options, heif_decoding_options_alloc),
    ENTRY(free_options, heif_decoding_options_free),
    ENTRY(decode, heif_decode_image),
    ENTRY(plane, heif_image_get_plane_readonly),
    ENTRY(image_width, heif_image_get_width),
    ENTRY(image_height, heif_image_get_height),
    ENTRY(release_image, heif_image_release),
};
static const char *const names[] = { "libheif.so.1", NULL };
static struct pm_library library = PM_LIBRARY(names, "libheif1", entries, &heif);

/* Reports libheif's error. A missing decoder is not the file's fault. */
static int failed(const struct pm_picture_file *f, struct heif_error e)
{
    const bool avif = !strcmp(f->kind, "AVIF");

    if (e.subcode == heif_suberror_Unsupported_codec)
        return pm_fail(PM_EFAIL, "%s: the installed libheif has no decoder for %s: install the "
                       "package %s, or save the picture as JPEG or PNG", f->where, f->kind,
                       avif ? "libheif-plugin-dav1d" : "libheif-plugin-libde265");
    if (e.code == heif_error_Unsupported_feature)
        return pm_picture_unsupported(f, e.message);
    return pm_picture_damaged(f, e.message);
}

struct reader {
    struct heif_context *context;
    struct heif_image_handle *handle;
    struct heif_image *image;
    struct heif_decoding_options *options;
};

static void close_reader(struct reader *r)
{
    if (r->options)
        heif.free_options(r->options);
    if (r->image)
        heif.release_image(r->image);
    if (r->handle)
        heif.release_handle(r->handle);
    if (r->context)
        heif.release(r->context);
}

static int open_file(const struct pm_picture_file *f, struct reader *r)
{
    struct heif_error e;
    int err = PM_OK;

    PM_TRY(pm_library_load(&library, f->where));
    r->context = heif.create();
    if (!r->context)
        return pm_picture_damaged(f, "libheif has no memory");
    heif.threads(r->context, 0);
    e = heif.read(r->context, f->data, f->size, NULL);
    if (e.code == heif_error_Ok)
        e = heif.primary(r->context, &r->handle);
    if (e.code != heif_error_Ok)
        return failed(f, e);
out:
    return err;
}

int pm_picture_measure_heif(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    struct reader r = { 0 };
    int err = PM_OK;

    PM_TRY(open_file(f, &r));
    *height = heif.height(r.handle);
    *width = heif.width(r.handle);
out:
    close_reader(&r);
    return err;
}

static int copy(const struct pm_picture_file *f, const struct heif_image *image,
                struct pm_image8 *out)
{
    const int height = heif.image_height(image, heif_channel_interleaved);
    const int width = heif.image_width(image, heif_channel_interleaved);
    const size_t row = (size_t)width * 3;
    int stride = 0, err = PM_OK;
    const uint8_t *from = heif.plane(image, heif_channel_interleaved, &stride);
    uint8_t *pixels;

    PM_TRY(pm_picture_size(f, width, height));
    if (!from)
        return pm_picture_damaged(f, "libheif gives no pixels");
    pixels = pm_try_realloc(NULL, (size_t)height * row);
    if (!pixels)
        return pm_picture_no_memory(f, width, height);
    for (int y = 0; y < height; y++)
        memcpy(pixels + (size_t)y * row, from + (ptrdiff_t)y * stride, row);
    *out = (struct pm_image8){ height, width, 3, pixels };
out:
    return err;
}

int pm_picture_heif(const struct pm_picture_file *f, struct pm_image8 *out)
{
    struct reader r = { 0 };
    struct heif_error e;
    int err = PM_OK;

    PM_TRY(open_file(f, &r));
    PM_TRY(pm_picture_size(f, heif.width(r.handle), heif.height(r.handle)));
    r.options = heif.options();
    if (!r.options)
        PM_TRY(pm_picture_damaged(f, "libheif has no memory"));
    /* The installed library may be older than the headers: then its struct has fewer members. */
    if (r.options->version >= 2)
        r.options->convert_hdr_to_8bit = 1;
    if (r.options->version >= 3)
        r.options->strict_decoding = 1;
    e = heif.decode(r.handle, &r.image, heif_colorspace_RGB, heif_chroma_interleaved_RGB,
                    r.options);
    if (e.code != heif_error_Ok)
        PM_TRY(failed(f, e));
    PM_TRY(copy(f, r.image, out));
out:
    close_reader(&r);
    return err;
}
#else
int pm_picture_heif(const struct pm_picture_file *f, struct pm_image8 *out)
{
    (void)out;
    return pm_picture_not_built(f, "libheif-dev");
}

int pm_picture_measure_heif(const struct pm_picture_file *f, int64_t *height, int64_t *width)
{
    (void)height, (void)width;
    return pm_picture_not_built(f, "libheif-dev");
}
#endif
