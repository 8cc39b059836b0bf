/* preprocess, inside data/: what the preprocessings share. Images are float
 * [height][width][channels], NHWC without N; TensorFlow's legacy rules throughout (spec section 6.0
 * of the originals): no half-pixel centres, no clipping unless stated. */
#ifndef PUMICE_DATA_PREPROCESS_H
#define PUMICE_DATA_PREPROCESS_H

#include <pumice/data.h>

enum pm_resize { PM_RESIZE_BILINEAR, PM_RESIZE_NEAREST, PM_RESIZE_BICUBIC, PM_RESIZE_AREA };

/* A rectangle of an 8-bit image, read where it lies. */
struct pm_view8 {
    const uint8_t *pixels; /* of the rectangle's first pixel */
    int height, width, channels;
    size_t stride; /* bytes from row to row */
};
struct pm_view8 pm_view8_of(const struct pm_image8 *im);
struct pm_view8 pm_view_crop(struct pm_view8 v, int y, int x, int height, int width);

/* out[height][width][channels] = scale * resized. Same size copies. */
void pm_resize(struct pm_view8 in, enum pm_resize method, float scale, int height, int width,
               float *out);
/* Only the window [y, y+rows) x [x, x+cols) of the picture resized bilinearly to height x width. */
void pm_resize_window(struct pm_view8 in, int height, int width, int y, int x, int rows, int cols,
                      float *out);
/* Central crop or zero padding to the size, each way by itself: offsets floor(difference / 2). */
void pm_crop_or_pad(struct pm_view8 in, int height, int width, float *out);
void pm_flip(float *x, int height, int width, int channels);

/* Colour. count pixels. hue and saturation want 3 channels. */
void pm_add_all(float *x, size_t values, float delta);
/* (x - mean of the channel) * factor + mean; the mean is summed in double. */
void pm_contrast(float *x, size_t count, int channels, float factor);
void pm_saturation(float *x, size_t count, float factor);
void pm_hue(float *x, size_t count, float delta);
/* (x - mean) / max(std, 1 / sqrt(values)) over all values. */
void pm_standardise(float *x, size_t values);

/* One row a preprocessing, in preprocessings.def. */
#define PM_PREPROCESSING(name) extern const struct pm_preprocessing pm_preprocessing_##name;
#include "preprocessings.def"
#undef PM_PREPROCESSING

#endif
