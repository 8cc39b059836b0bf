/* augment, inside data/: declarations that the rows of augmentations and preprocessings share. */
#ifndef PM_AUGMENT_H
#define PM_AUGMENT_H

#include <pumice/sample.h>

/* The generator of the row at a place of input.augment. */
struct pm_rng pm_augment_rng(uint64_t seed, int place, uint32_t step, uint32_t example);
/* Adds a row and copies its options. At most PM_MAX_ROWS rows and PM_ROWS_ROOM bytes. */
void pm_augment_add(struct pm_augment_rows *s, const struct pm_augmentation *row, const void *cfg,
                    size_t size);
/* Adds a row, with options as initialisers: PM_ADD(s, random_flip, .probability = 0.5). */
#define PM_ADD(rows, row, ...)                                                                     \
    pm_augment_add(rows, &pm_augmentation_##row, &(struct row##_cfg){ __VA_ARGS__ },               \
                   sizeof(struct row##_cfg))

/* Transform points and boxes by moves begin..end - 1 only, like pm_geometry_points and
 * pm_geometry_boxes. */
void pm_moves_points(const struct pm_geometry *g, int begin, int end, float *points, size_t count);
void pm_moves_boxes(const struct pm_geometry *g, int begin, int end, float *boxes, size_t count);
/* The same for [count][5] rotated boxes (sample_rotated.c). */
void pm_moves_rotated(const struct pm_geometry *g, int begin, int end, float *boxes, size_t count);
/* The picture's size after the first `moves` moves. */
void pm_moves_size(const struct pm_geometry *g, int moves, int *height, int *width);
/* Composes moves begin..end - 1 to one map of continuous pixels, where pixel i spans i..i + 1:
 * y' = map[0][0] * y + map[0][1] * x + map[0][2], x' by map[1]. */
void pm_moves_map(const struct pm_geometry *g, int begin, int end, double map[2][3]);

/* The same moves for a picture of 1 / shrink of the size, height x width: windows and the moves
 * before the first resize are divided, and rounded to the nearest pixel; the others stay. */
void pm_geometry_shrink(const struct pm_geometry *g, int height, int width, int shrink,
                        struct pm_geometry *out);

/* ---- objects between rows (sample_objects.c) ----------------------------------------------- */

/* A window that repeats the picture has the object in this copy of it. */
struct pm_scene_copy {
    int move;      /* index in the geometry */
    int y, x;      /* number of the copy, from 0 */
    const struct pm_scene_copy *next; /* of an earlier move; or NULL */
};
struct pm_scene_object {
    size_t from;       /* index in the sample's lists */
    int moves;         /* box and points are in the frame after that many moves */
    float box[4];
    float rotated[5];  /* of a sample with rotated boxes; box is then made from it */
    float visible;     /* share of the box's area that clipping has left; of a rotated box, the
                        * smallest share that was inside */
    int32_t label;
    float weight;
    float *points, *scores; /* [points][2] and [score_count], or NULL; in the list's arena */
    bool dropped;      /* later removed from the list */
    const struct pm_scene_copy *copy; /* in the list's arena; NULL: in the first copies */
};
struct pm_scene_objects {
    const struct pm_sample *sample;
    const struct pm_geometry *geometry;
    int moves; /* of the geometry so far; functions below use the frame after them */
    struct pm_scene_object *list;
    size_t count, capacity;
    struct pm_arena *arena; /* owned */
};
/* Returns the pixels of a sample's mask i. pixels: of its picture. room [pixels]: receives the mask
 * if the sample has run lengths; otherwise it may be NULL. */
const uint8_t *pm_sample_mask(const struct pm_sample *s, size_t i, size_t pixels, uint8_t *room);
/* Starts with all objects of the sample, in its picture's frame. */
void pm_scene_open(struct pm_scene_objects *o, const struct pm_sample *sample,
                   const struct pm_geometry *g);
void pm_scene_close(struct pm_scene_objects *o);
/* Applies a row whose moves end at `moves`, and removes the objects that it dropped. */
void pm_scene_step(struct pm_scene_objects *o, const struct pm_augment_row *row);
/* Returns [count][4] boxes in the current frame, in the arena; NULL without objects. */
float *pm_scene_boxes(struct pm_scene_objects *o);
/* Brings an object's box and points to the current frame, for changes in place. */
struct pm_scene_object *pm_scene_settle(struct pm_scene_objects *o, size_t i);
/* After a row whose last move is pm_geometry_repeat: adds the objects of the further copies of the
 * picture, after all others. down, across: the number of copies. */
void pm_scene_repeat(struct pm_scene_objects *o, int down, int across);
/* Limits boxes to the picture; keypoints outside become NAN. Rotated boxes stay, here and below. */
void pm_scene_clip(struct pm_scene_objects *o);
/* TensorFlow's rule after a crop: drops boxes outside the picture (a common border is outside) and
 * those with a share of less than `overlap` inside. clip: limits the others to the picture;
 * keypoints outside become NAN. */
void pm_scene_retain(struct pm_scene_objects *o, float overlap, bool clip);
/* Reorders the keypoints of every object: k becomes permutation[k]. */
void pm_scene_permute(struct pm_scene_objects *o, const int *permutation);

/* ---- rows' options (augment_*.c) ----------------------------------------------------------- */

struct random_flip_cfg {
    double probability;
    struct pm_ints keypoint_flip_permutation; /* empty: the sample's */
};
/* fill: padding pixel 0..255, one number or three; empty: the target's fill. */
struct random_crop_cfg {
    int padding;
    struct pm_floats fill;
};
struct crop_or_pad_cfg {
    struct pm_floats fill;
};
struct central_crop_cfg {
    float fraction;
};
/* A padding pixel of options: one number or three. The check is PM_ECONFIG for another count; an
 * empty list is the target's fill. */
int pm_check_fill(const struct pm_floats *fill, const char *where);
void pm_fill_pixel(const struct pm_floats *fill, const struct pm_target *t, float pad[3]);
/* Building blocks of DeepLab's resizing and scales. The preprocessing "deeplab" has the same
 * keys. */
struct resize_to_range_cfg {
    int min_resize, max_resize, resize_factor;
    bool keep_aspect_ratio;
};
#define PM_OPTS_RANGE(tag)                                                                         \
    PM_INT(tag, min_resize, 0, 0, 16384,                                                           \
           "length of the smaller side after resizing; 0 = not resized"),                          \
        PM_INT(tag, max_resize, 0, 0, 16384, "largest length of the larger side; 0 = no limit"),   \
        PM_INT(tag, resize_factor, 0, 0, 1024,                                                     \
               "sides after resizing become k * resize_factor + 1; 0 = any length"),               \
        PM_BOOL(tag, keep_aspect_ratio, true, "false = resize to a square of the larger side")
struct random_scale_cfg {
    double min_scale, max_scale, scale_step; /* double: the number of steps is a quotient */
};
#define PM_OPTS_SCALE(tag)                                                                         \
    PM_DOUBLE(tag, min_scale, 0.5, 0.01, 16, "smallest random scale, in training"),                \
        PM_DOUBLE(tag, max_scale, 2, 0.01, 16, "largest random scale"),                            \
        PM_DOUBLE(tag, scale_step, 0.25, 0, 16,                                                    \
                  "distance between two scales; 0 = any scale between the limits")
/* where: "input", or "x.json: input.augment.0". */
int pm_check_range(const struct resize_to_range_cfg *c, const char *where);
int pm_check_scale(const struct random_scale_cfg *c, const char *where);
struct random_side_cfg {
    int min, max;
    bool cut; /* truncate sizes instead of rounding */
};
int pm_rounded_side(int side, float scale, bool cut);
struct resize_cfg {
    int method; /* enum pm_resize */
};

/* Rule of TensorFlow's sample_distorted_bounding_box: areas are fractions of the picture's area,
 * aspects are width / height. */
struct pm_box_rule {
    float area_min, area_max, aspect_min, aspect_max, min_object_covered;
};
#define PM_OPTS_BOX_RULE(tag)                                                                      \
    PM_FLOAT(tag, area_min, 0.05, 1e-6, 1,                                                         \
             "smallest area of the box, as a share of the picture's"),                             \
        PM_FLOAT(tag, area_max, 1, 1e-6, 1,                                                        \
                 "largest area of the box, as a share of the picture's"),                          \
        PM_FLOAT(tag, aspect_min, 0.75, 0.01, 100, "smallest width / height of the box"),          \
        PM_FLOAT(tag, aspect_max, 1.33, 0.01, 100, "largest width / height of the box"),           \
        PM_FLOAT(tag, min_object_covered, 0.1, 0, 1,                                               \
                 "smallest share of an object that the box contains")
/* box: receives y, x, height, width. */
void pm_sample_box(const struct pm_box_rule *rule, struct pm_rng *r, const struct pm_scene *s,
                   int box[4]);
/* Row of a crop: places draws->box, or the whole picture if its height is 0. */
int pm_place_box(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                 struct pm_geometry *g);
/* Rule of torchvision's RandomResizedCrop: a box of random area and aspect. */
struct pm_area_rule {
    float area_min, area_max, aspect_min, aspect_max;
};
#define PM_OPTS_AREA_RULE(tag)                                                                     \
    PM_FLOAT(tag, area_min, 0.08, 1e-6, 1,                                                         \
             "smallest area of the box, as a share of the picture's"),                             \
        PM_FLOAT(tag, area_max, 1, 1e-6, 1,                                                        \
                 "largest area of the box, as a share of the picture's"),                          \
        PM_FLOAT(tag, aspect_min, 0.75, 0.01, 100, "smallest width / height of the box"),          \
        PM_FLOAT(tag, aspect_max, 1.3333334, 0.01, 100, "largest width / height of the box")
void pm_sample_area(const struct pm_area_rule *rule, struct pm_rng *r, const struct pm_scene *s,
                    int box[4]);

struct random_brightness_cfg {
    double max_delta; /* fraction of white */
};
struct random_contrast_cfg {
    double min, max;
};
struct random_saturation_cfg {
    double min, max;
};
struct random_hue_cfg {
    double max_delta; /* fraction of a full turn */
};

/* ---- rows that only preprocessings have (augment_crop.c, augment_values.c) ----------------- */

/* Crops a given window of the picture. */
struct window_cfg {
    int y, x, height, width;
};
/* Resizes to a given size. */
struct resized_cfg {
    int height, width, method; /* method: enum pm_resize */
};
/* x = pixel * factor + add, per channel. */
struct linear_cfg {
    float factor, add[3];
};
/* x = (pixel / 255 - mean) / std. */
struct deviations_cfg {
    float mean[3], std[3];
};
extern const struct pm_augmentation pm_augmentation_window, pm_augmentation_resized,
    pm_augmentation_linear, pm_augmentation_deviations;
/* (x - mean) / max(std, 1 / sqrt(values)) over all values of the picture. */
extern const struct pm_augmentation pm_row_standardise;
/* x * (1 / 255), so that white is 1. No effect if white is already 1. */
extern const struct pm_augmentation pm_row_unit;
/* Turns a colour picture grey if the input is grey; otherwise no effect. pm_placed_picture does the
 * work. */
extern const struct pm_augmentation pm_row_grey;
/* Normalises x = (pixel - half) / half, to -1..1. */
int pm_normal_half(float half, const char *fit, const char *interpolation, struct pm_normal *out);

/* ---- values (augment_color.c, augment_crop.c, augment_values.c) ---------------------------- */

/* count: pixels. hue and saturation require 3 channels. */
void pm_add_all(float *x, size_t values, float delta);
/* (x - channel mean) * factor + channel mean; the mean is summed in double. */
void pm_contrast(float *x, size_t count, int channels, float factor);
void pm_saturation(float *x, size_t count, float factor);
void pm_hue(float *x, size_t count, float delta);
void pm_standardise(float *x, size_t values);
float pm_luma(const float rgb[3]);

/* ---- parts of the Inception preprocessings (preprocessing_inception.c) ----------------------- */

enum pm_distortion { PM_BRIGHTNESS, PM_SATURATION, PM_HUE, PM_CONTRAST };
extern const uint8_t pm_color_orders[4][4]; /* values of enum pm_distortion */
struct pm_inception_way {
    enum pm_resize resize; /* for training */
    const uint8_t *order;  /* [distortions] of enum pm_distortion */
    int distortions;
    float central_fraction; /* evaluation: fraction of each side that the crop keeps */
};
/* Training: crop the draws' box, resize, flip, distortions, clip, in 0..1. Evaluation: central
 * crop, bilinear resize. */
void pm_inception_list(const struct pm_inception_way *way, const struct pm_request *r,
                       struct pm_augment_rows *out);
void pm_inception_values(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out);
int pm_inception_normal(const void *cfg, int channels, struct pm_normal *out);

/* Declares one row per preprocessing (preprocessings.def) and per augmentation
 * (augmentations.def). */
#define PM_PREPROCESSING(name) extern const struct pm_preprocessing pm_preprocessing_##name;
#include "preprocessings.def"
#undef PM_PREPROCESSING
#define PM_AUGMENTATION(name) extern const struct pm_augmentation pm_augmentation_##name;
#include "augmentations.def"
#undef PM_AUGMENTATION

#endif
