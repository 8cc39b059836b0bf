/* sample: a record's members, and how they become a net's input.
 *
 * A sample is a picture with optional members: maps of labels and of instances, boxes, masks,
 * keypoints. A geometry is a list of moves (window, resize, mirror) that brings the picture to the
 * input's size; every member is carried through the same geometry. An augmentation is a row: name,
 * options, draw, place (adds moves) or values (changes pixel values). A preprocessing is an ordered
 * list of such rows; its draws come first. input.augment replaces a preprocessing's training rows
 * by the user's list.
 *
 *     pm_place(&input, &sample, &occasion, &placed);       draws, then the geometry
 *     pm_placed_picture(&placed, &image, out);             float [height][width][channels]
 *     pm_placed_map(&placed, &map, fill, out);             int32 [height][width]
 *
 * All functions are thread-safe; nothing here keeps state. */
#ifndef PUMICE_SAMPLE_H
#define PUMICE_SAMPLE_H

#include <pumice/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- samples ------------------------------------------------------------------------------ */

/* Members of one record; all pointers are borrowed. A member that a record lacks is NULL. A label
 * of the whole picture is not among them: no geometry changes it. */
struct pm_sample {
    const struct pm_image8 *picture;
    const struct pm_label *label_map, *instance_map; /* of the picture's size */
    size_t objects;                                  /* length of the lists that follow */
    const float *boxes;     /* [objects][4]: ymin, xmin, ymax, xmax; 0..1 is the picture */
    const uint8_t *masks;   /* [objects][height][width], 0 outside of the object */
    const float *keypoints; /* [objects][points][2]: y, x; 0..1 is the picture; NAN: not labelled */
    int points;             /* keypoints of each object */
    const int *mirrored; /* [points]: mirrored, point k is point mirrored[k]; NULL: itself */
};
/* Members that an augmentation carries, as bits. */
enum {
    PM_CARRIES_MAPS = 1,
    PM_CARRIES_BOXES = 2,
    PM_CARRIES_MASKS = 4,
    PM_CARRIES_KEYPOINTS = 8,
    PM_CARRIES_ALL = 15,
};

/* ---- geometry ----------------------------------------------------------------------------- */

/* TensorFlow 1's methods without half-pixel centres, source = i * (in / out); bilinear with aligned
 * corners, source = i * ((in - 1) / (out - 1)); Pillow's bilinear with antialiasing in 8 bits. */
enum pm_resize {
    PM_RESIZE_BILINEAR,
    PM_RESIZE_NEAREST,
    PM_RESIZE_BICUBIC,
    PM_RESIZE_AREA,
    PM_RESIZE_ALIGNED,
    PM_RESIZE_ANTIALIAS,
};
enum pm_move_kind { PM_MOVE_WINDOW, PM_MOVE_RESIZE, PM_MOVE_MIRROR };
struct pm_move {
    enum pm_move_kind kind;
    int height, width; /* pixels, after the move */
    int y, x; /* window: its first pixel in the picture before; outside of that is padding */
    enum pm_resize method; /* resize */
    float pad[3];          /* window: pixel of the padding, 0..255 */
};
enum { PM_MAX_MOVES = 48 };
struct pm_geometry {
    int height, width; /* pixels, before the first move */
    int count;
    struct pm_move move[PM_MAX_MOVES];
};
void pm_geometry_begin(struct pm_geometry *g, int height, int width);
/* Size after the last move. */
int pm_geometry_height(const struct pm_geometry *g);
int pm_geometry_width(const struct pm_geometry *g);
/* Each adds a move, or none where the picture would stay the same. At most PM_MAX_MOVES. */
void pm_geometry_window(struct pm_geometry *g, int y, int x, int height, int width,
                        const float pad[3]);
void pm_geometry_resize(struct pm_geometry *g, int height, int width, enum pm_resize method);
void pm_geometry_mirror(struct pm_geometry *g);
/* true if the picture is mirrored an odd number of times. */
bool pm_geometry_is_mirrored(const struct pm_geometry *g);

/* Carries [count] pairs y, x in place; 0..1 is the picture, before and after. The arithmetic is
 * double. Points outside of the picture get coordinates outside of 0..1; NAN stays NAN. */
void pm_geometry_points(const struct pm_geometry *g, float *points, size_t count);
/* Carries [count][4] boxes in place. Boxes are neither clipped nor removed: which boxes a crop
 * drops (least overlap) is for the task to decide from these coordinates. */
void pm_geometry_boxes(const struct pm_geometry *g, float *boxes, size_t count);
/* Carries [objects][points][2] keypoints in place and exchanges them by `mirrored` (or NULL) where
 * the picture is mirrored. */
void pm_geometry_keypoints(const struct pm_geometry *g, float *keypoints, size_t objects,
                           int points, const int *mirrored);
/* Nearest elements of `count` masks [height][width]; 0 as padding. out: count of the size after. */
void pm_geometry_masks(const struct pm_geometry *g, const uint8_t *masks, size_t count,
                       uint8_t *out);
/* Nearest elements of a map of the size before; fill as padding. out: int32 of the size after. */
void pm_geometry_map(const struct pm_geometry *g, const struct pm_label *map, int32_t fill,
                     int32_t *out);
/* The element of `in` that element i of `out` is, the nearest of s = i * ((in - 1) / (out - 1)) in
 * float32, halves upwards, where a map is resized with its corners aligned. */
int pm_aligned_nearest(int i, int in, int out);

/* ---- draws -------------------------------------------------------------------------------- */

/* Random decisions of one augmentation, or of a whole named preprocessing, so that tests can fix
 * them. Each row names in its file the members that it reads. Numbers are 0..1 and mapped to the
 * row's range when applied. */
struct pm_draws {
    double side;           /* side or scale */
    double crop_y, crop_x; /* positions */
    int box[4];            /* y, x, height, width in pixels; height 0 = whole image */
    bool flip, grey;
    int resize_method;  /* enum pm_resize, the first four */
    int color_ordering; /* 0..3 */
    double brightness, contrast, saturation, hue;
};
/* What the draws of an example may depend on, besides the generator. */
struct pm_scene {
    int height, width;  /* of its picture, after the rows before */
    uint32_t example;   /* its number in the whole batch */
    const float *boxes; /* [count][4]: ymin, xmin, ymax, xmax, 0..1; of a row with wants_boxes */
    size_t boxes_count; /* 0: the whole picture is the object */
};

/* ---- augmentations ------------------------------------------------------------------------ */

/* The input that rows work towards. */
struct pm_target {
    int height, width, channels;
    float fill[3];     /* pixel of padding where a row names none: the preprocessing's own */
    const char *where; /* the record, for messages */
};
/* Pixel values while they are changed: float [height][width][channels]. */
struct pm_pixel_values {
    float *v;
    size_t count; /* pixels */
    int channels; /* 1 or 3 */
    float white;  /* value of a white pixel: 255, or 1 */
};
/* What a row does to the picture's size. */
enum pm_sizing { PM_SIZE_KEPT, PM_SIZE_INPUT, PM_SIZE_OTHER };
/* One row an augmentation, in augmentations.def (src/data). */
struct pm_augmentation {
    const char *name, *help; /* help: one line, no full stop */
    const struct pm_opt
        *opts; /* filled into a cfg of cfg_size bytes; NULL and 0 when it has none */
    size_t cfg_size;
    enum pm_sizing sizing; /* PM_SIZE_INPUT: the picture has the input's size after it */
    unsigned carries;      /* PM_CARRIES_... bits */
    bool wants_boxes;      /* its draws depend on the record's boxes */
    /* PM_ECONFIG for options that contradict each other. where: "x.json: input.augment.0". NULL:
     * none do. */
    int (*check)(const void *cfg, const char *where);
    /* Takes the row's draws. NULL: it has none. */
    void (*draw)(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out);
    /* Adds the row's moves. PM_EDATA when the picture does not allow them. NULL: no pixel moves. */
    int (*place)(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                 struct pm_geometry *g);
    /* Changes pixel values in place. NULL: it only moves pixels. */
    void (*values)(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x);
};
const struct pm_augmentation *const *pm_augmentations(size_t *count);
const struct pm_augmentation *pm_augmentation_find(const char *name); /* or NULL */

/* A list of rows with their options: input.augment. */
enum { PM_MAX_AUGMENT = 24 };
struct pm_augment {
    int count;
    struct pm_augment_entry {
        const struct pm_augmentation *row;
        const void *cfg;
    } entry[PM_MAX_AUGMENT];
    bool wants_boxes;
};
/* Reads [{"name": ..., option: value}, ...] into the arena; NULL gives *out NULL. where: "x.json:
 * input.augment". PM_ECONFIG for an unknown name or option, a value out of range, too many rows. */
int pm_augment_open(const struct cJSON *list, const char *where, struct pm_arena *a,
                    const struct pm_augment **out);
/* PM_ECONFIG when a row does not carry all members of `carries`, or when the picture has another
 * size than the input's after the last row. a may be NULL. */
int pm_augment_check(const struct pm_augment *a, unsigned carries, const char *where);

/* ---- preprocessings ----------------------------------------------------------------------- */

/* Where evaluation puts a picture: the input's first height rows and width columns. */
struct pm_framing {
    int height, width;
};
/* What evaluation makes of a picture, for other programs: it is brought to the size by fit, a
 * sentence, with this interpolation, and of its pixels 0..255 the input is made, x = (pixel -
 * mean[channel]) / std[channel]; own: by each picture's own, x = (pixel - mean) / max(std, 1 /
 * sqrt(values)). */
struct pm_normal {
    const char *fit, *interpolation;
    bool own;
    float mean[4], std[4];
    bool padded;  /* what follows says it all: pictures may be smaller than the size */
    float pad[4]; /* the pixel that they are padded with, below and at the right */
    struct pm_resize_range {
        int min, max, factor; /* of sides before that, as augment_resize.c has it; min 0: none */
        bool square;
    } range;
};
/* The picture that a preprocessing's list is made for. */
struct pm_request {
    int image_height, image_width; /* pixels */
    bool train;
    const struct pm_draws *draws; /* of draw below; NULL in evaluation */
    const struct pm_target *target;
};
struct pm_augment_rows;
struct pm_preprocessing {
    const char *name, *help;
    int channels; /* it wants; 0 = the data's */
    const struct pm_opt
        *opts; /* filled into a cfg of cfg_size bytes; NULL and 0 when it has none */
    size_t cfg_size;
    bool wants_boxes; /* its draws depend on the record's boxes */
    bool maps;        /* serves maps beside the picture: evaluation shows the whole picture */
    /* Takes all draws of the example, in an order that must never change. */
    void (*draw)(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out);
    /* The ordered rows of training or evaluation, added with pm_augment_add (src/data/augment.h). A
     * grey input of a colour picture turns grey after them, or where they add pm_row_grey. PM_EDATA
     * when the picture cannot be brought to the size. */
    int (*list)(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out);
    /* The rows that follow in training and evaluation, and after input.augment: pixel values 0..255
     * become the input's values. */
    void (*values)(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out);
    /* The eval form in words and numbers, for pictures of 1 or 3 channels. PM_ECONFIG for options
     * that contradict each other or do not fit the channels. */
    int (*normal)(const void *cfg, int channels, struct pm_normal *out);
};
/* By its name; NULL: there is none. */
const struct pm_preprocessing *pm_preprocessing_find(const char *name);
const struct pm_preprocessing *const *pm_preprocessings(size_t *count);

/* ---- placing ------------------------------------------------------------------------------ */

/* How pictures become the input. Borrowed. */
struct pm_input {
    const struct pm_preprocessing *preprocessing;
    const void *cfg;                  /* its options */
    const struct pm_augment *augment; /* training's rows; NULL: the preprocessing's own */
};
/* For which input, and which example of which step, a sample is placed. */
struct pm_occasion {
    int height, width, channels; /* the input's; 1 channel of a colour picture: grey */
    bool train;
    uint64_t seed;
    uint32_t step,
        example; /* of training: draws are a function of these and of the position in the list */
    const char *where; /* the record, for messages; borrowed */
};
/* Rows and their draws for one example. Filled by pm_place; of no use elsewhere. */
enum { PM_MAX_ROWS = 32, PM_ROWS_ROOM = 1024 };
struct pm_augment_rows {
    int count;
    struct pm_augment_row {
        const struct pm_augmentation *row;
        const void *cfg;
        const struct pm_draws *draws;
        int moves; /* of the geometry, up to and with this row */
    } at[PM_MAX_ROWS];
    const struct pm_draws *shared; /* draws of the rows that are added */
    size_t used;
    double room[PM_ROWS_ROOM / 8];         /* options of added rows */
    struct pm_draws draws[PM_MAX_AUGMENT]; /* of input.augment's rows */
};
struct pm_placed {
    struct pm_geometry geometry;
    struct pm_augment_rows rows;
    struct pm_target target;
};
/* Draws and the geometry of one sample. Of the sample the picture's size and channels are read, and
 * the boxes where a row wants them. The draws of a named preprocessing come from the generator
 * (seed, "augmentation", step, example), one after the other; the row at position i of
 * input.augment has the generator (seed, "augmentation" + (i + 1) * 2^64 / golden ratio, step,
 * example) to itself. PM_EDATA when the picture cannot be brought to the size. */
int pm_place(const struct pm_input *in, const struct pm_sample *sample, const struct pm_occasion *o,
             struct pm_placed *out);
/* The same of a named preprocessing with given draws (NULL in evaluation). */
int pm_place_with(const struct pm_preprocessing *p, const void *cfg, const struct pm_draws *d,
                  const struct pm_image8 *picture, const struct pm_occasion *o,
                  struct pm_placed *out);
/* The same of a list with given draws, one for each row. */
int pm_place_list(const struct pm_input *in, const struct pm_draws *draws,
                  const struct pm_sample *sample, const struct pm_occasion *o,
                  struct pm_placed *out);
/* The input: float [height][width][channels]. picture: the one that was placed. */
void pm_placed_picture(const struct pm_placed *p, const struct pm_image8 *picture, float *out);
/* A map of the picture's size, nearest elements; fill as padding. PM_EDATA for another size. */
int pm_placed_map(const struct pm_placed *p, const struct pm_label *map, int32_t fill,
                  int32_t *out);
/* A picture of quantities: moved and resized as the picture, values unchanged, 0 as padding. out:
 * float [height][width][channels of numbers]. */
void pm_placed_numbers(const struct pm_placed *p, const struct pm_image8 *numbers, float *out);
/* Boxes, masks and keypoints in the input's frame: objects, points and mirrored are copied, new
 * lists lie in the arena; picture and maps are NULL. Nothing is clipped or dropped. */
void pm_placed_objects(const struct pm_placed *p, const struct pm_sample *sample,
                       struct pm_arena *a, struct pm_sample *out);
/* Where evaluation puts a picture of that size; of a preprocessing with maps. */
int pm_preprocessing_frame(const struct pm_preprocessing *p, const void *cfg, int image_height,
                           int image_width, int height, int width, const char *where,
                           struct pm_framing *out);

#ifdef __cplusplus
}
#endif

#endif
