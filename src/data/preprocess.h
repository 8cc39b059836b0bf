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

/* Between the elements at offsets lo and hi, f of the way. Element i of a resized row lies at i * step
 * of the row of `in` elements, `stride` apart. */
struct pm_lerp {
    int lo, hi;
    float f;
};
struct pm_lerp pm_lerp_at(int i, float step, int in, int stride);
/* The step where corners are aligned. */
float pm_aligned_step(int in, int out);

/* out[height][width][channels] = scale * resized. Same size copies. */
void pm_resize(struct pm_view8 in, enum pm_resize method, float scale, int height, int width,
               float *out);
/* Only the window [y, y+rows) x [x, x+cols) of the picture resized bilinearly to height x width. */
void pm_resize_window(struct pm_view8 in, int height, int width, int y, int x, int rows, int cols,
                      float *out);
/* Central crop or zero padding to the size, each way by itself: offsets floor(difference / 2). */
void pm_crop_or_pad(struct pm_view8 in, int height, int width, float *out);
/* Where the wanted picture is grey and the given one is not, the work is done in colour: pm_work
 * gives the place for it (else out itself), pm_grey_settle turns it grey into out and frees it. */
float *pm_work(const struct pm_image8 *in, int channels, size_t count, float *out);
void pm_grey_settle(float *work, size_t count, float *out);
void pm_flip(float *x, int height, int width, int channels);

/* Colour. count pixels. hue and saturation want 3 channels. */
void pm_add_all(float *x, size_t values, float delta);
/* (x - mean of the channel) * factor + mean; the mean is summed in double. */
void pm_contrast(float *x, size_t count, int channels, float factor);
void pm_saturation(float *x, size_t count, float factor);
void pm_hue(float *x, size_t count, float delta);
/* (x - mean) / max(std, 1 / sqrt(values)) over all values. */
void pm_standardise(float *x, size_t values);
/* x = (pixel - half) / half: to -1..1. */
int pm_normal_half(float half, const char *fit, const char *interpolation, struct pm_normal *out);

/* ---- the Inception preprocessings' parts (preprocess_box.c, preprocessing_inception.c) ---- */

/* TensorFlow's sample_distorted_bounding_box: areas in parts of the picture's, aspects width /
 * height. */
struct pm_box_rule {
    float area_min, area_max, aspect_min, aspect_max, min_object_covered;
};
#define PM_OPTS_BOX_RULE(tag)                                                                      \
    PM_FLOAT(tag, area_min, 0.05, 1e-6, 1, "least area of the box, of the picture's"),             \
        PM_FLOAT(tag, area_max, 1, 1e-6, 1, "most area of the box, of the picture's"),             \
        PM_FLOAT(tag, aspect_min, 0.75, 0.01, 100, "least width / height of the box"),             \
        PM_FLOAT(tag, aspect_max, 1.33, 0.01, 100, "most width / height of the box"),              \
        PM_FLOAT(tag, min_object_covered, 0.1, 0, 1, "part of an object that the box holds")
/* box: y, x, height, width. */
void pm_sample_box(const struct pm_box_rule *rule, struct pm_rng *r, const struct pm_sight *s,
                   int box[4]);

enum pm_distortion { PM_BRIGHTNESS, PM_SATURATION, PM_HUE, PM_CONTRAST };
struct pm_inception_way {
    enum pm_resize resize; /* in training */
    const uint8_t *order;  /* [distortions] of enum pm_distortion */
    int distortions;
    float central_fraction; /* of each side kept in eval */
};
/* Train: the draws' box resized to 0..1, flip, distortions, clip. Eval: central crop, bilinear.
 * Then (x - 0.5) * 2. */
void pm_inception_apply(const struct pm_inception_way *way, const struct pm_image8 *in, bool train,
                        const struct pm_draws *d, int height, int width, int channels, float *out);
int pm_inception_normal(const void *cfg, int channels, struct pm_normal *out);

/* One row a preprocessing, in preprocessings.def. */
#define PM_PREPROCESSING(name) extern const struct pm_preprocessing pm_preprocessing_##name;
#include "preprocessings.def"
#undef PM_PREPROCESSING

#endif
