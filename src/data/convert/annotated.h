/* annotated, internal to data/convert: pictures with objects, as converters of detection data
 * collect them. A converter begins a split, adds its pictures, and adds the objects of each picture
 * behind it. pm_annotations_write then decides about classes and splits and writes the records. */
#ifndef PUMICE_DATA_CONVERT_ANNOTATED_H
#define PUMICE_DATA_CONVERT_ANNOTATED_H

#include "data/convert/box_records.h"

/* ---- options -------------------------------------------------------------------------- */

enum pm_unannotated { PM_UNANNOTATED_ERROR, PM_UNANNOTATED_EMPTY, PM_UNANNOTATED_SKIP };
/* The first member of every such converter's options. */
struct pm_detection_cfg {
    const char *label_map;
    double validation, min_side;
    int64_t seed;
    int num_shards, bad, exif, unannotated;
};
#define PM_OPTS_DETECTION                                                                          \
    PM_OPT_BOX_SHARE(pm_detection_cfg), PM_OPT_BOXES(pm_detection_cfg),                            \
        PM_OPT_BOX_EXIF(pm_detection_cfg)
/* For formats where pictures may have no annotations at all. */
#define PM_OPT_UNANNOTATED(def)                                                                    \
    PM_ENUM(pm_detection_cfg, unannotated, def, "error|empty|skip",                                \
            "pictures without annotations: fail, keep as pictures without objects, or skip")

/* ---- pictures and objects ---------------------------------------------------------------- */

enum {
    PM_MARK_CROWD = 1,
    PM_MARK_DIFFICULT = 2,
    PM_MARK_GROUP_OF = 4,
    PM_MARK_TRUNCATED = 8,
};
struct pm_annotated_object {
    double box[4]; /* ymin, xmin, ymax, xmax; in pixels, or in 0..1 (pm_annotations.unit) */
    int class;     /* of pm_annotations_class */
    unsigned marks;   /* PM_MARK_... */
    const char *view; /* NULL: none */
    const float *keypoints; /* [points][3]: y, x in 0..1, visibility 0..2; or NULL */
    const float *outline;   /* [outline_count][2]: y, x in 0..1, corners of a polygon; or NULL */
    size_t outline_count;
    const double *corners;  /* [4][2]: y, x in the unit of box, with pm_annotations.rotated: the
                             * corners of the rotated box in any order, in the arena. The box is
                             * made from them */
    unsigned line;          /* in the file of the annotations, for messages; 0: unknown */
    /* A label map of the picture's size: the pixels that are not PM_TRIMAP_GROUND are the object.
     * The box, and the mask and area if masks are written, are made from it; or NULL. */
    const char *trimap;
};
enum { PM_TRIMAP_GROUND = 2 }; /* of Oxford-IIIT Pet's: 1 object, 2 background, 3 border */
struct pm_annotated {
    const char *path;     /* of the picture */
    const char *filename; /* image/filename */
    const char *where;    /* the file of its annotations, for messages */
    int height, width;    /* as its annotations state them; 0: they do not */
    int window[4];        /* y, x, height, width: the part of the upright picture that becomes the
                           * record; boxes are in its pixels. height 0: the whole picture */
    const char *sensor;   /* image/sensor; NULL: unknown */
    float gsd;            /* image/gsd: metres per pixel; 0: unknown */
    size_t first, count;  /* its objects */
};
struct pm_annotations {
    struct pm_arena *arena;
    const struct pm_detection_cfg *cfg; /* borrowed */
    unsigned has; /* PM_HAS_... lists that records get besides PM_HAS_TEXT and PM_HAS_LABEL */
    bool unit;                /* boxes are in 0..1 */
    bool rotated;             /* all objects have corners; records get rotated boxes */
    const char *too_large;    /* rotated: what to do if labels are of a larger picture; or NULL */
    int masks;                /* enum pm_mask_form: write masks and areas, from outlines */
    int points;               /* keypoints per object */
    const char *const *point_names; /* [points], or NULL */
    const int *mirrored;      /* [points]: of pm_making_mirrored_points; NULL: unknown */
    bool fixed;               /* classes are given: label_map, or the converter's own list */
    struct pm_label_map map;  /* the classes by pm_annotations_class; ids only if fixed */
    const char *classes_from; /* the file that gives them, for messages */
    /* Private. */
    struct pm_label_item *item; /* owned, like the following */
    struct pm_annotated *picture;
    struct pm_annotated_object *object;
    struct pm_annotated_split {
        const char *name; /* NULL: a part becomes validation */
        size_t first;     /* picture */
    } *split;
    int *slot;       /* [slots]: place in item + 1, by the hash of the name */
    size_t pictures, objects, splits, slots;
    size_t photos;             /* that the converter cuts, its pictures being their tiles; 0: it
                                * cuts none */
    size_t missing;            /* pictures, or photos that are cut, without annotations */
    const char *first_missing; /* what the first of them lacks */
    size_t pictures_capacity, objects_capacity, splits_capacity, items_capacity;
};
/* Begins a list and reads cfg->label_map. PM_EDATA. pm_annotations_free frees it, also after an
 * error. */
int pm_annotations_start(struct pm_annotations *s, const struct pm_detection_cfg *cfg);
void pm_annotations_free(struct pm_annotations *s);
/* Sets the classes: name i gets the number i + 1. `from` is their file, for messages. Does nothing
 * if label_map is set. PM_EDATA for a repeated name or one that is not a single line. */
int pm_annotations_classes(struct pm_annotations *s, const char *const *names, size_t count,
                           const char *from);
/* The same for classes with numbers, in this order; a number of 0 becomes the place in the list,
 * from 1. PM_EDATA also for a repeated number. */
int pm_annotations_items(struct pm_annotations *s, const struct pm_label_item *items, size_t count,
                         const char *from);
/* Returns the class of this name, which is copied if it is new. PM_EDATA if the classes are given
 * and it is not one of them; line: its line in `where`, or 0. */
int pm_annotations_class(struct pm_annotations *s, const char *name, const char *where,
                         unsigned line);
/* Begins a split. name NULL: the pictures have no splits. */
void pm_annotations_split(struct pm_annotations *s, const char *name);
/* Adds a picture to the last split, with the members of `of` apart from first and count. */
void pm_annotations_picture(struct pm_annotations *s, struct pm_annotated of);
/* Adds an object to the last picture. */
void pm_annotations_object(struct pm_annotations *s, struct pm_annotated_object of);
/* Sets the size that the annotations of the last picture state. */
void pm_annotations_size(struct pm_annotations *s, int height, int width);
/* For a picture without annotations: returns 1 if it is kept without objects, 0 if it is skipped,
 * or PM_EDATA. rule: enum pm_unannotated. missing: what it lacks, as in "x.txt does not exist", in
 * the arena.
 * pm_annotations_write logs their number, and fails if no picture has annotations. */
int pm_annotations_missing(struct pm_annotations *s, int rule, const char *picture,
                           const char *missing);
/* Writes the classes and all splits. PM_EDATA if there are no pictures or no classes, or if more
 * than half of the rotated boxes of a picture lie wholly outside of it: then the labels are those
 * of another picture, or of one of another size. Warns of corners that are more than 5 % off a
 * rectangle; the least rectangle around them counts. */
int pm_annotations_write(struct pm_annotations *s, struct pm_making *m);
/* A whole converter: starts s, calls add, which adds the pictures of the folder src with their
 * objects, writes the records and frees s. ctx: add's, usually a struct that contains s. PM_EDATA,
 * also if src is no folder. */
int pm_annotations_convert(struct pm_annotations *s, const struct pm_detection_cfg *cfg,
                           const char *src, int (*add)(void *ctx, const char *src), void *ctx,
                           struct pm_making *m);

/* ---- files -------------------------------------------------------------------------------- */

/* The picture FOLDER/STEM with one of the endings of PM_IMAGE_ENDINGS, in the arena; NULL if there
 * is none. */
const char *pm_picture_of_stem(struct pm_arena *a, const char *folder, const char *stem);
/* Warns, in one line, about the files *ENDING of the folder `labels` that have no picture of their
 * stem in `pictures`. The same folder for both: they hold other files, too, so there is no warning.
 * other: the name of a file there that is no label file; NULL: there is none. */
int pm_warn_unused_labels(struct pm_arena *a, const char *labels, const char *ending,
                          const char *other, const char *pictures);
/* Lines of a text file in the arena, empty ones included, without spaces at their ends and without
 * a byte order mark. */
int pm_lines_of(struct pm_arena *a, const char *path, char ***lines, size_t *count);
/* Calls add for each line of a list that is not empty, as pm_lines_of reads it. number: of the
 * line, from 1. Stops at the first error and returns it. */
int pm_lines_add(struct pm_arena *a, const char *path,
                 int (*add)(void *ctx, const char *line, size_t number), void *ctx);
/* Whether a path from a file of a data set stays inside its folder: it is not absolute and has no
 * part "..". */
bool pm_path_inside(const char *path);
/* The usual folders of splits under a folder: train, validation, test. pm_split_folder returns the
 * path of split k that exists, or NULL. */
enum { PM_SPLITS = 3 };
extern const char *const pm_split_names[PM_SPLITS];
const char *pm_split_folder(struct pm_arena *a, const char *root, int k);
/* A finite number that is the whole text, apart from spaces around it. */
bool pm_number_in_text(const char *text, double *out);

#endif
