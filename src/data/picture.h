/* The decoders behind pm_image_decode, one function per file format. decode.c recognises the
 * format, calls the decoder, and then converts orientation and channels as requested. */
#ifndef PUMICE_DATA_PICTURE_H
#define PUMICE_DATA_PICTURE_H

#include <pumice/data.h>

/* Limit in pixels if the caller sets none. */
#define PM_PICTURE_PIXELS ((size_t)1 << 28)

/* A picture file in memory. All pointers are borrowed. */
struct pm_picture_file {
    const uint8_t *data;
    size_t size;       /* bytes, 1 to INT_MAX */
    size_t max_pixels; /* limit; larger pictures are refused */
    const char *where; /* the file's name, for messages */
    const char *kind;  /* "JPEG" and so on, for messages */
    bool grey;         /* the caller wants one channel; a JPEG then gives its own luma */
    int shrink;        /* 2, 4, 8: decode at that fraction of the size, if the format can */
};

/* Each decodes the first picture of a file, as stored: 1 to 4 channels of 8 bits, not turned.
 * Returns PM_OK and out, which the caller frees with pm_image_free, or PM_EDATA for a file that is
 * damaged, too large or of an unsupported kind, or PM_EFAIL if the library that reads this format
 * is missing; out then holds no pixels. Thread-safe. */
int pm_picture_png(const struct pm_picture_file *f, struct pm_image8 *out);
/* Through libjpeg-turbo, or through stb_image in a build without it (PUMICE_TURBO). */
int pm_picture_jpeg(const struct pm_picture_file *f, struct pm_image8 *out);
/* Through stb_image, in every build: the fallback of pm_picture_jpeg. */
int pm_picture_jpeg_stb(const struct pm_picture_file *f, struct pm_image8 *out);
/* BMP, GIF, TGA and HDR through stb_image. */
int pm_picture_stb(const struct pm_picture_file *f, struct pm_image8 *out);
/* PSD of three channels through stb_image; f->size is at least 26. */
int pm_picture_psd(const struct pm_picture_file *f, struct pm_image8 *out);
/* Binary PGM and PPM through stb_image; samples of 0..255 only. */
int pm_picture_pnm(const struct pm_picture_file *f, struct pm_image8 *out);
/* WebP through libwebp; of an animation the first picture, on its canvas. */
int pm_picture_webp(const struct pm_picture_file *f, struct pm_image8 *out);
/* TIFF through libtiff: 1 channel if the file is grey, else 3. */
int pm_picture_tiff(const struct pm_picture_file *f, struct pm_image8 *out);
/* HEIC and AVIF through libheif: 3 channels, turned as the file asks for. */
int pm_picture_heif(const struct pm_picture_file *f, struct pm_image8 *out);
/* Each reads the stored size from the header, not turned (HEIC and AVIF: turned). PM_EDATA if the
 * header lacks it, PM_EFAIL as above. measure_stb is for the formats that stb_image reads. */
int pm_picture_measure_png(const struct pm_picture_file *f, int64_t *height, int64_t *width);
int pm_picture_measure_jpeg(const struct pm_picture_file *f, int64_t *height, int64_t *width);
int pm_picture_measure_stb(const struct pm_picture_file *f, int64_t *height, int64_t *width);
int pm_picture_measure_webp(const struct pm_picture_file *f, int64_t *height, int64_t *width);
int pm_picture_measure_tiff(const struct pm_picture_file *f, int64_t *height, int64_t *width);
int pm_picture_measure_heif(const struct pm_picture_file *f, int64_t *height, int64_t *width);
/* true if the bytes are a whole TGA file. The format has no signature of its own, so all fields of
 * the header are checked, and the size where it follows from them. */
bool pm_picture_is_tga(const uint8_t *p, size_t size);

/* PM_OK if a picture of this size is allowed, else PM_EDATA with the size and the limit. */
int pm_picture_size(const struct pm_picture_file *f, int64_t width, int64_t height);
/* PM_EDATA with the decoder's own message about a damaged or unsupported file. */
int pm_picture_damaged(const struct pm_picture_file *f, const char *text);
int pm_picture_unsupported(const struct pm_picture_file *f, const char *text);
/* PM_EFAIL: Pumice was built without the headers of this Debian package. */
int pm_picture_not_built(const struct pm_picture_file *f, const char *package);
/* PM_EDATA: memory for a picture of this size is not available. */
int pm_picture_no_memory(const struct pm_picture_file *f, int64_t width, int64_t height);

/* Returns the orientation in a whole file's EXIF data: 1 (upright or missing) to 8. */
int pm_exif_of_jpeg(const uint8_t *p, size_t size);
int pm_exif_of_png(const uint8_t *p, size_t size);
int pm_exif_of_webp(const uint8_t *p, size_t size);
int pm_exif_of_tiff(const uint8_t *p, size_t size);

/* Turns and mirrors the pixels upright. orientation: 1 (no change) to 8, as in EXIF. PM_EDATA if
 * memory is not available; im is then unchanged. */
int pm_picture_turn(const struct pm_picture_file *f, struct pm_image8 *im, int orientation);

#endif
