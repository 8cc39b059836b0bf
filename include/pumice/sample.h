/* sample: the members of a record, and their conversion to a net's input.
 *
 * A sample is a picture with optional members: label map, instance map, boxes, masks, keypoints. A
 * geometry is a list of moves (window, resize, mirror) that brings the picture to the input's size.
 * All members go through the same geometry. An augmentation is a row: name, options, draw, place
 * (adds moves) or values (changes pixel values). A preprocessing is an ordered list of such rows;
 * its draws come first. input.augment replaces a preprocessing's training rows with the user's
 * list.
 *
 *     pm_place(&input, &sample, &occasion, &placed);       draws, then the geometry
 *     pm_placed_picture(&placed, &image, out);             float [height][width][channels]
 *     pm_placed_map(&placed, &map, fill, out);             int32 [height][width]
 *
 * All functions are thread-safe and keep no state. */
#ifndef PUMICE_SAMPLE_H
#define PUMICE_SAMPLE_H

#include <pumice/data.h>
#include <pumice/rng.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- samples ------------------------------------------------------------------------------ */

/* Members of one record. All pointers are borrowed; NULL for a missing member. A label of the whole
 * picture is not a member, because no geometry changes it. */
struct pm_sample {
    const struct pm_image8 *picture;
    const struct pm_label *label_map, *instance_map; /* same size as the picture */
    size_t objects;                                  /* length of the following lists */
    const float *boxes;     /* [objects][4]: ymin, xmin, ymax, xmax; 0..1 spans the picture */
    /* [objects][5]: rotated boxes, cy, cx, h, w, angle as in struct pm_object, which are rectangles
     * in the picture's pixels. Then `boxes` are the upright boxes around them, cut at the picture's
     * border: rows whose draws depend on boxes use those. Rows move and drop the rotated boxes, and
     * make the upright ones anew; a rotated box is never cut, and rules about an object's visible
     * part go by the share of its area that is inside. A result's w is the long side in pixels. */
    const float *rotated;
    const uint8_t *masks;   /* [objects][height][width], 0 outside the object */
    const struct pm_runs *runs; /* [objects]: the masks as run lengths, instead of masks. Placing a
                                 * sample accepts both forms and returns masks. The type is
                                 * internal: data/coco_mask.h */
    const float *keypoints; /* [objects][points][2]: y, x in 0..1; NAN: not labelled */
    int points;             /* keypoints per object */
    const int *mirrored; /* [points]: after mirroring, k becomes mirrored[k]; NULL: no change */
    const int32_t *labels; /* class numbers of the label map, >= 1 */
    const float *weights;  /* of the objects' losses */
    const float *mask_weights; /* of the losses of their masks */
    const float *scores;   /* [objects][score_count]: soft labels */
    int score_count;
    const size_t *from; /* result of pm_placed_objects: index in the lists before */
};
/* Members that an augmentation can transform, as bits. */
enum {
    PM_CARRIES_MAPS = 1,
    PM_CARRIES_BOXES = 2,
    PM_CARRIES_MASKS = 4,
    PM_CARRIES_KEYPOINTS = 8,
    PM_CARRIES_ROTATED = 16,
    PM_CARRIES_ALL = 31,
};

/* ---- geometry ----------------------------------------------------------------------------- */

/* Interpolation methods. BILINEAR to AREA: TensorFlow 1's, without half-pixel centres, source = i *
 * (in / out). ALIGNED: bilinear with aligned corners, source = i * ((in - 1) / (out - 1)).
 * ANTIALIAS: Pillow's bilinear with antialiasing in 8 bits. */
enum pm_resize {
    PM_RESIZE_BILINEAR,
    PM_RESIZE_NEAREST,
    PM_RESIZE_BICUBIC,
    PM_RESIZE_AREA,
    PM_RESIZE_ALIGNED,
    PM_RESIZE_ANTIALIAS,
};
/* MIRROR: left to right. FLIP: top to bottom. TURN: a quarter turn counter-clockwise. WARP: an
 * affine map with nearest-neighbour or bilinear sampling; the picture keeps its size. */
enum pm_move_kind {
    PM_MOVE_WINDOW,
    PM_MOVE_RESIZE,
    PM_MOVE_MIRROR,
    PM_MOVE_FLIP,
    PM_MOVE_TURN,
    PM_MOVE_WARP,
};
struct pm_move {
    enum pm_move_kind kind;
    int height, width; /* pixels, after the move */
    int y, x; /* window: its first pixel before the move; outside pixels are padding */
    enum pm_resize method; /* resize */
    float pad[3];          /* window, warp: padding pixel, 0..255 */
    bool pad_mean;         /* window: padding is the mean pixel of the picture before the move */
    bool repeat;           /* window: copies of the picture fill the padding */
    bool smooth; /* warp: pictures are sampled bilinearly, outside pixels being padding */
    /* warp: pixel x, y of the result is the pixel nearest to warp[0] * x + warp[1] * y + warp[2],
     * warp[3] * x + warp[4] * y + warp[5] before the move. */
    float warp[6];
};
enum { PM_MAX_MOVES = 80 };
struct pm_geometry {
    int height, width; /* pixels, before the first move */
    int count;
    struct pm_move move[PM_MAX_MOVES];
};
void pm_geometry_begin(struct pm_geometry *g, int height, int width);
/* Size after the last move. */
int pm_geometry_height(const struct pm_geometry *g);
int pm_geometry_width(const struct pm_geometry *g);
/* Each adds a move, unless it would not change the picture. At most PM_MAX_MOVES. */
void pm_geometry_window(struct pm_geometry *g, int y, int x, int height, int width,
                        const float pad[3]);
/* The same; the padding is the mean pixel of the picture before the move. */
void pm_geometry_window_mean(struct pm_geometry *g, int y, int x, int height, int width);
/* The same, from the picture's first pixel on; copies of the picture fill the rest. Members that
 * follow are in the first copy: rows that use it add the others (pm_scene_repeat). Maps are not
 * supported. */
void pm_geometry_repeat(struct pm_geometry *g, int height, int width);
void pm_geometry_resize(struct pm_geometry *g, int height, int width, enum pm_resize method);
void pm_geometry_mirror(struct pm_geometry *g);
void pm_geometry_flip(struct pm_geometry *g);
void pm_geometry_turn(struct pm_geometry *g);
/* warp: as in struct pm_move; its determinant is not 0. A box becomes the smallest one around its
 * four corners. */
void pm_geometry_warp(struct pm_geometry *g, const float warp[6], const float pad[3]);
/* The same; pictures are sampled bilinearly, maps and masks as before. */
void pm_geometry_warp_smooth(struct pm_geometry *g, const float warp[6], const float pad[3]);
/* true if the picture is mirrored an odd number of times. */
bool pm_geometry_is_mirrored(const struct pm_geometry *g);

/* Transforms [count] pairs y, x in place; 0..1 spans the picture, before and after. Computes in
 * double. Points outside the picture get coordinates outside 0..1; NAN stays NAN. */
void pm_geometry_points(const struct pm_geometry *g, float *points, size_t count);
/* Transforms [count][4] boxes in place. Boxes are neither clipped nor removed. */
void pm_geometry_boxes(const struct pm_geometry *g, float *boxes, size_t count);
/* Transforms [count][4] boxes from the picture after the moves to the picture before them, in
 * place. This brings a net's boxes back to the file's picture. The geometry has no warp. */
void pm_geometry_boxes_back(const struct pm_geometry *g, float *boxes, size_t count);
/* Transforms [count][5] rotated boxes in place. Moves that keep right angles are exact. A resize
 * that changes the aspect would make a parallelogram of a turned rectangle: its w axis then follows
 * the picture, and its area is that of the parallelogram. pm_geometry_rotated_back is the exact
 * inverse; any moves are allowed. */
void pm_geometry_rotated(const struct pm_geometry *g, float *boxes, size_t count);
void pm_geometry_rotated_back(const struct pm_geometry *g, float *boxes, size_t count);
/* Transforms [objects][points][2] keypoints in place. If the picture is mirrored, exchanges points
 * by `mirrored` (may be NULL). */
void pm_geometry_keypoints(const struct pm_geometry *g, float *keypoints, size_t objects,
                           int points, const int *mirrored);
/* Transforms `count` masks [height][width] with nearest-neighbour sampling; padding is 0. out:
 * `count` masks of the new size. */
void pm_geometry_masks(const struct pm_geometry *g, const uint8_t *masks, size_t count,
                       uint8_t *out);
/* Transforms a map of the original size with nearest-neighbour sampling; padding is fill. out:
 * int32, new size. */
void pm_geometry_map(const struct pm_geometry *g, const struct pm_label *map, int32_t fill,
                     int32_t *out);
/* Returns the source element of element i when a map is resized with aligned corners. It is the
 * nearest to s = i * ((in - 1) / (out - 1)) in float32; halves round up. */
int pm_aligned_nearest(int i, int in, int out);

/* ---- draws -------------------------------------------------------------------------------- */

/* Random decisions of one augmentation, or of a whole named preprocessing, stored so that tests can
 * fix them. Each row's file names the members that it reads. Numbers are 0..1; the row maps them to
 * its range. */
struct pm_draws {
    double side;           /* side length or scale */
    double crop_y, crop_x; /* positions */
    int box[4];            /* y, x, height, width in pixels; height 0 = whole image */
    bool flip, grey;
    int resize_method;  /* enum pm_resize, the first four */
    int color_ordering; /* 0..3 */
    double brightness, contrast, saturation, hue;
    int which;      /* chosen operation of a list */
    int window[4];  /* y, x, height, width in pixels of a second window, after the box */
    double more[8]; /* further numbers */
    /* Generator of numbers per pixel and per object. A row copies it before it draws. */
    struct pm_rng rng;
};
/* Inputs of an example's draws, besides the generator. */
struct pm_scene {
    int height, width;  /* size of the picture after the previous rows */
    uint32_t example;   /* index in the whole batch */
    const float *boxes; /* [count][4]: ymin, xmin, ymax, xmax, 0..1; only if wants_boxes */
    size_t boxes_count; /* 0: the whole picture is the one object */
};

/* ---- augmentations ------------------------------------------------------------------------ */

/* The net's input, as the target of the rows. */
struct pm_target {
    int height, width, channels;
    float fill[3];     /* padding pixel of the preprocessing, for rows without their own */
    const char *where; /* record name for messages */
};
struct pm_scene_objects; /* the objects between rows; src/data/augment.h */
/* Pixel values during changes: float [height][width][channels]. */
struct pm_pixel_values {
    float *v;
    size_t count; /* pixels */
    int channels; /* 1 or 3 */
    float white;  /* value of a white pixel: 255, or 1 */
    int height, width;
    struct pm_scene_objects *objects; /* of a row with sees_objects: as the rows before it have left
                                       * them; its arena has room for the row. Else NULL */
};
/* How a row changes the picture's size. */
enum pm_sizing { PM_SIZE_KEPT, PM_SIZE_INPUT, PM_SIZE_OTHER };
/* An augmentation: one row per entry of augmentations.def (src/data). */
struct pm_augmentation {
    const char *name, *help; /* help: one line, no full stop */
    const struct pm_opt
        *opts; /* fills a cfg of cfg_size bytes; NULL and 0: no options */
    size_t cfg_size;
    enum pm_sizing sizing; /* PM_SIZE_INPUT: the result has the input's size */
    unsigned carries;      /* PM_CARRIES_... bits */
    bool wants_boxes;      /* draws depend on the record's boxes */
    bool sees_objects;     /* values depends on the objects */
    /* Returns PM_ECONFIG if options contradict each other. where: "x.json: input.augment.0". NULL:
     * no check. */
    int (*check)(const void *cfg, const char *where);
    /* Returns PM_ECONFIG if the row cannot transform this sample, e.g. its keypoints. where: the
     * record's name. NULL: it can. */
    int (*accept)(const void *cfg, const struct pm_sample *s, const char *where);
    /* Draws the row's random numbers. NULL: no draws. */
    void (*draw)(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out);
    /* Adds the row's moves. PM_EDATA if they are impossible for the picture. NULL: pixels stay in
     * place. */
    int (*place)(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                 struct pm_geometry *g);
    /* Changes pixel values in place. NULL: the row only moves pixels. */
    void (*values)(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x);
    /* Changes the objects after the row's moves: drops, clips, relabels, adds. Called several times
     * for an example, so it depends on its arguments only. NULL: objects just follow the moves. */
    void (*objects)(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o);
    int others; /* further records that an example needs; only a list's first row may have some.
                 * pm_mosaic_make does its work */
    /* A second half: it follows the row, with the same cfg and draws. NULL: none. */
    const struct pm_augmentation *then;
    /* Completes cfg after its options were read, e.g. parses a list; before check. NULL: nothing to
     * do. */
    int (*prepare)(void *cfg, struct pm_arena *a, const char *where);
};
const struct pm_augmentation *const *pm_augmentations(size_t *count);
const struct pm_augmentation *pm_augmentation_find(const char *name); /* NULL: unknown */

/* A list of rows with their options: input.augment. */
enum { PM_MAX_AUGMENT = 24 };
struct pm_augment {
    int count;
    struct pm_augment_entry {
        const struct pm_augmentation *row;
        const void *cfg;
    } entry[PM_MAX_AUGMENT];
    bool wants_boxes;
    const struct pm_augment_entry *mosaic; /* the first entry, if it is mosaic; else NULL */
};
/* Reads [{"name": ..., option: value}, ...] into the arena. If list is NULL, *out is NULL. where:
 * "x.json: input.augment". PM_ECONFIG for an unknown name or option, a value out of range, or too
 * many rows. */
int pm_augment_open(const struct cJSON *list, const char *where, struct pm_arena *a,
                    const struct pm_augment **out);
/* Checks the list. PM_ECONFIG if a row cannot transform all members in `carries`, or if the picture
 * does not have the input's size after the last row. resized: the preprocessing has `resizes`, so
 * any size is allowed. a may be NULL. */
int pm_augment_check(const struct pm_augment *a, unsigned carries, bool resized,
                     const char *where);

/* ---- mosaic ------------------------------------------------------------------------------- */

enum { PM_MOSAIC_OTHERS = 3 };
/* Random decisions of a mosaic. */
struct pm_mosaic_draws {
    double center_y, center_x;         /* where the four pictures meet, 0..1 of the canvas */
    uint64_t record[PM_MOSAIC_OTHERS]; /* indices of the other records */
};
/* Decides whether an example is a mosaic, and of which records. A function of seed, step, example
 * and records only. a may be NULL. */
bool pm_mosaic_draw(const struct pm_augment *a, uint64_t seed, uint64_t step, uint32_t example,
                    uint64_t records, struct pm_mosaic_draws *out);
/* Joins four pictures and their objects: in[0] above at the left, in[1] above at the right, in[2]
 * and in[3] below. The canvas has twice the input's sides; each picture fits into the input with
 * its aspect, touches the meeting point with a corner, and is cut off by the canvas. Pictures have
 * equal channels; samples have the same members. Maps are not supported.
 *
 * out: a sample for pm_place; its lists and its picture are in the arena. from: index in the four
 * lists in sequence. Objects are clipped. One that keeps a smaller share than the entry's
 * min_visible is missing. Thread-safe. */
void pm_mosaic_make(const struct pm_augment *a, const struct pm_mosaic_draws *d,
                    const struct pm_sample in[1 + PM_MOSAIC_OTHERS], struct pm_frame input,
                    struct pm_arena *arena, struct pm_sample *out);

/* ---- preprocessings ----------------------------------------------------------------------- */

/* Place of the picture in the input during evaluation: the first `height` rows and `width`
 * columns. */
struct pm_framing {
    int height, width;
};
/* Evaluation's preprocessing as data, for other programs. The picture is resized as the sentence
 * `fit` describes, with this interpolation. Pixels 0..255 then become x = (pixel - mean[channel]) /
 * std[channel]. If own, mean and std are those of each picture: x = (pixel - mean) / max(std, 1 /
 * sqrt(values)). */
struct pm_normal {
    const char *fit, *interpolation;
    bool own;
    int choices;  /* number of sizes from which training draws, all equally likely, in the order
                   * of the preprocessing's list; 0: there is one size */
    int multiple; /* pictures of their own size are padded to multiples of this; 0: not padded */
    float mean[4], std[4];
    bool padded;  /* smaller pictures are allowed; pad and range are then exact */
    float pad[4]; /* padding pixel, below and at the right */
    struct pm_resize_range {
        int min, max, factor; /* sides before padding, by the rule; min 0: any */
        bool square;
        enum pm_resize_rule {
            PM_RULE_RANGE,    /* resize_to_range (augment_resize.c) */
            PM_RULE_RATIO,    /* keep_aspect_ratio (preprocessing_ssd.c); min 0: as the input
                               * allows */
            PM_RULE_SHRINK, PM_RULE_ENLARGE, /* its conditional; min: size_threshold */
        } rule;
    } range;
};
/* The picture for which a preprocessing lists its rows. */
struct pm_request {
    int image_height, image_width; /* pixels */
    bool train;
    const struct pm_draws *draws; /* made by pm_preprocessing.draw; NULL in evaluation */
    const struct pm_target *target;
    bool own_size; /* evaluation: the picture keeps its own size */
    uint32_t number; /* training: a random number of the example, for choices of `values` */
};
struct pm_augment_rows;
struct pm_preprocessing {
    const char *name, *help;
    int channels; /* required channels; 0 = the data's */
    const struct pm_opt
        *opts; /* fills a cfg of cfg_size bytes; NULL and 0: no options */
    size_t cfg_size;
    bool wants_boxes; /* draws depend on the record's boxes */
    bool maps;        /* supports maps; evaluation then keeps the whole picture */
    bool resizes;     /* values brings pictures of any size to the input's size, so input.augment
                       * need not; evaluation keeps the whole picture */
    /* Makes all draws of the example, in an order that must never change. */
    void (*draw)(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out);
    /* Adds the ordered rows of training or evaluation with pm_augment_add (src/data/augment.h). If
     * the input is grey and the picture is not, the picture turns grey after these rows, or at a
     * pm_row_grey row among them. PM_EDATA if the picture cannot be brought to the size. */
    int (*list)(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out);
    /* Adds the last rows of training and evaluation, which also follow input.augment. They convert
     * pixel values 0..255 to the input's values, and with `resizes` the size to the input's. */
    void (*values)(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out);
    /* Describes evaluation in words and numbers, for pictures of 1 or 3 channels. PM_ECONFIG if
     * options contradict each other or do not fit the channels. */
    int (*normal)(const void *cfg, int channels, struct pm_normal *out);
};
/* Finds a preprocessing by name; NULL: unknown. */
const struct pm_preprocessing *pm_preprocessing_find(const char *name);
const struct pm_preprocessing *const *pm_preprocessings(size_t *count);

/* ---- placing ------------------------------------------------------------------------------ */

/* Preprocessing and augmentation of an input. All pointers are borrowed. */
struct pm_input {
    const struct pm_preprocessing *preprocessing;
    const void *cfg;                  /* options of the preprocessing */
    const struct pm_augment *augment; /* training rows; NULL: the preprocessing's own */
};
/* Target input and random stream for placing a sample. */
struct pm_occasion {
    int height, width, channels; /* of the input; 1 channel of a colour picture: grey */
    bool train;
    bool own_size; /* evaluation: pm_preprocessing_own_size is the input's size; a preprocessing
                    * without maps then neither resizes nor crops */
    uint64_t seed;
    uint32_t step,
        example; /* training: draws are a function of seed, step, example and the row's position */
    const char *where; /* record name for messages; borrowed */
    int part;          /* of the data: pm_loader_record.part; selects input.augment */
    int choice;        /* training: 1..pm_normal.choices is this choice of the preprocessing's
                        * `values`; 0: drawn */
};
/* Rows and draws of one example. pm_place fills it; other code must not use it. */
enum { PM_MAX_ROWS = 80, PM_ROWS_ROOM = 1024 };
struct pm_augment_rows {
    int count;
    struct pm_augment_row {
        const struct pm_augmentation *row;
        const void *cfg;
        const struct pm_draws *draws;
        int moves; /* number of moves in the geometry after this row */
    } at[PM_MAX_ROWS];
    const struct pm_draws *shared; /* draws for added rows */
    size_t used;
    double room[PM_ROWS_ROOM / 8];         /* options of added rows */
    struct pm_draws draws[PM_MAX_AUGMENT]; /* draws of input.augment's rows */
};
struct pm_placed {
    struct pm_geometry geometry;
    struct pm_augment_rows rows;
    struct pm_target target;
    const struct pm_sample *sample; /* of rows with sees_objects; borrowed until the picture is
                                     * computed. Else NULL */
};
/* Makes the draws and the geometry of one sample. Reads the picture's size and channels, and the
 * boxes if a row has wants_boxes. The draws of a named preprocessing come in sequence from the
 * generator (seed, "augmentation", step, example). Row i of input.augment has a generator of its
 * own: (seed, "augmentation" + (i + 1) * 2^64 / golden ratio, step, example). PM_EDATA if the
 * picture cannot be brought to the size. */
int pm_place(const struct pm_input *in, const struct pm_sample *sample, const struct pm_occasion *o,
             struct pm_placed *out);
/* Like pm_place, for a named preprocessing with given draws (NULL in evaluation). */
int pm_place_with(const struct pm_preprocessing *p, const void *cfg, const struct pm_draws *d,
                  const struct pm_image8 *picture, const struct pm_occasion *o,
                  struct pm_placed *out);
/* Like pm_place, for input.augment with given draws, one per row. */
int pm_place_list(const struct pm_input *in, const struct pm_draws *draws,
                  const struct pm_sample *sample, const struct pm_occasion *o,
                  struct pm_placed *out);
/* Returns the size that the picture has before the first row that brings it to the input's size:
 * the smallest input that would hold the whole picture. */
struct pm_frame pm_placed_need(const struct pm_placed *p);
/* Returns the largest of 1, 2, 4 and 8 by which the picture may be shrunk before it is placed: its
 * first resize still makes it smaller, and only crops, mirrors and turns come before that. */
int pm_placed_shrink(const struct pm_placed *p);
/* Computes the input: float [height][width][channels]. picture: the placed picture, or the same
 * at 1 / pm_placed_shrink of its size, rounded up (pm_image_decode_small). Crops of a shrunk
 * picture are rounded to its pixels. */
void pm_placed_picture(const struct pm_placed *p, const struct pm_image8 *picture, float *out);
/* Writes the part of the input that the picture fills: ymin, xmin, ymax, xmax in 0..1. */
void pm_placed_window(const struct pm_placed *p, float out[4]);
/* Writes the part of the input that the last row's padding does not fill. In training, rows of
 * input.augment may have cropped or padded the picture before. */
void pm_placed_filled(const struct pm_placed *p, float out[4]);
/* Transforms a map of the picture's size with nearest-neighbour sampling; padding is fill. PM_EDATA
 * if the map's size differs from the picture's. */
int pm_placed_map(const struct pm_placed *p, const struct pm_label *map, int32_t fill,
                  int32_t *out);
/* Transforms a picture of quantities: moved and resized like the picture, values unchanged, padding
 * 0. out: float [height][width][channels of numbers]. */
void pm_placed_numbers(const struct pm_placed *p, const struct pm_image8 *numbers, float *out);
/* Transforms the objects to the input's frame, through all rows in their order. Objects that a row
 * drops are missing; from has the others' indices. Other boxes are not clipped: the task decides
 * what to do with parts outside the input. Keypoints that a row drops are NAN. The new lists are in
 * the arena; picture and maps are NULL. */
void pm_placed_objects(const struct pm_placed *p, const struct pm_sample *sample,
                       struct pm_arena *a, struct pm_sample *out);
/* Computes the size that a picture of this size has in evaluation if it keeps its own size: after
 * min_resize and max_resize of a preprocessing with maps, after the resizer and its padding of one
 * that resizes, else unchanged. PM_EDATA if it would be too large. */
int pm_preprocessing_own_size(const struct pm_preprocessing *p, const void *cfg, int image_height,
                              int image_width, const char *where, struct pm_frame *out);
/* Computes where evaluation places a picture of this size. For preprocessings with maps and those
 * that resize. own_size: as in struct pm_occasion. */
int pm_preprocessing_frame(const struct pm_preprocessing *p, const void *cfg, int image_height,
                           int image_width, int height, int width, bool own_size,
                           const char *where, struct pm_framing *out);

#ifdef __cplusplus
}
#endif

#endif
