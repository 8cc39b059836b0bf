/* box_records, internal to data/convert: what converters of boxes share. They write the records of
 * TensorFlow's Object Detection API (pumice/objects.h): the picture, its name and hash, and the
 * lists of its objects.
 *
 * A converter lists its pictures, makes a label map with pm_box_classes, and for each split calls
 * pm_box_split. Its fill function reads a picture and its objects and calls pm_box_record. */
#ifndef PUMICE_DATA_CONVERT_BOX_RECORDS_H
#define PUMICE_DATA_CONVERT_BOX_RECORDS_H

#include <pumice/objects.h>

#include "data/convert/convert.h"

/* Options of every converter of boxes: the fields bad (int), min_side (double), label_map
 * (const char *) and num_shards (int) of the struct. */
#define PM_OPT_BOXES(tag)                                                                          \
    PM_ENUM(tag, bad, PM_BAD_SKIP, "skip|error",                                                   \
            "pictures that cannot be decoded and boxes without area: skip, or fail"),              \
        PM_DOUBLE(tag, min_side, 0, 0, 1048576,                                                    \
                  "drop boxes with a side below so many pixels in the picture"),                   \
        PM_STRING(tag, label_map, NULL,                                                            \
                  "label map (pbtxt or JSON) with numbers and order of the classes"),              \
        PM_INT(tag, num_shards, 10, 1, 99999, "files of each split, at most one per picture")
/* Options of converters of one list of pictures: the fields validation (double), seed (int64_t). */
#define PM_OPT_BOX_SHARE(tag)                                                                      \
    PM_DOUBLE(tag, validation, 0.1, 0, 0.9, "share of the pictures that becomes validation, if "   \
              "SRC has no splits"),                                                                \
        PM_INT64(tag, seed, 0, 0, 9007199254740992, "seed of that selection")

enum pm_exif_boxes { PM_EXIF_AUTO, PM_EXIF_STORED, PM_EXIF_SHOWN };
/* What the annotations of pictures refer to that EXIF rotates: the field exif (int). */
#define PM_OPT_BOX_EXIF(tag)                                                                       \
    PM_ENUM(tag, exif, PM_EXIF_AUTO, "auto|stored|shown",                                          \
            "boxes of pictures that EXIF rotates are in pixels of the file as stored, or as "      \
            "shown; auto: as shown if the annotated size says so, else as stored")
/* Returns the orientation by which the annotations of a picture must be turned to fit its upright
 * pixels: 1 (not at all) or the picture's own. exif: enum pm_exif_boxes. height, width: the size
 * that the annotations state; 0: none. */
int pm_box_orientation(int exif, const struct pm_picture *p, int height, int width);
/* Moves a point of the stored picture (0..1) to its place in the upright one. */
void pm_turn_point(int orientation, double *y, double *x);
/* The same for a box ymin, xmin, ymax, xmax. A reversed box stays reversed. */
void pm_turn_box(int orientation, double box[4]);

/* The form of masks in records: the field masks (int). from: what they are made of. */
enum pm_mask_form { PM_MASKS_NONE, PM_MASKS_PNG, PM_MASKS_RLE };
#define PM_OPT_MASKS(tag, from)                                                                    \
    PM_ENUM(tag, masks, PM_MASKS_NONE, "false|true|rle",                                           \
            "write a mask of each object, from " from ": true: as PNG, like TensorFlow's; rle: "   \
            "as run lengths, which only Pumice reads and which are much faster to read")
/* Returns the PM_HAS_... of objects with masks of this form. */
static inline unsigned pm_mask_lists(int form)
{
    return form == PM_MASKS_NONE ? 0u : PM_HAS_MASK | (form == PM_MASKS_RLE ? PM_HAS_RLE : 0u);
}

struct pm_runs;
/* Sets an object's mask in the arena of o: a grey PNG of 0 and 1, or with PM_HAS_RLE in o->has the
 * text of its run lengths. runs: its pixels in the picture of that size, as the annotations see it;
 * run NULL: it is empty. orientation: pm_box_orientation's. path: the picture's, for messages.
 * PM_EMEMORY. */
int pm_box_mask(const struct pm_runs *runs, int height, int width, int orientation,
                const char *path, struct pm_objects *o, struct pm_object *object);

/* Makes the label map of a data set with these classes. path: a label map file, which must have
 * each of the names; or NULL: the classes as given, where an id of 0 means the place in the list,
 * from 1. The map is in a. PM_EDATA for a name that the file lacks, with the nearest one, and for
 * an empty name, one that is not one line, a repeated name or id. where: the classes' source. */
int pm_box_classes(struct pm_arena *a, const char *path, const struct pm_label_item *classes,
                   size_t count, const char *where, struct pm_label_map *out);

/* A split under construction. */
struct pm_box_split {
    const struct pm_label_map *map;
    struct pm_object_filter filter;
    int bad, num_shards;
    void *ctx; /* of the converter's fill */
    struct pm_box_counts *counts; /* owned by pm_box_split */
};
/* Writes `count` pictures as SPLIT.record-00000-of-00010, picture i in file i mod n, and logs the
 * boxes, the dropped ones, and the boxes per class. fill as in pm_making_split; its ctx is s. */
int pm_box_split(struct pm_making *m, const char *split, size_t count, struct pm_box_split *s,
                 int (*fill)(void *ctx, size_t i, struct pm_example_builder *b));
/* For fill: filters the objects, numbers their classes, and adds the whole record: image/encoded,
 * format, height, width, filename, source_id, key/sha256, and the objects, whose size must be that
 * of the picture. id: source_id; NULL: the name. dropped: objects that the converter dropped
 * itself, or NULL. Thread-safe. Returns 1, or an error; the caller passes it to
 * pm_picture_failed. */
int pm_box_record(struct pm_box_split *s, struct pm_example_builder *b, const struct pm_picture *p,
                  const char *name, const char *id, struct pm_objects *o,
                  const struct pm_object_counts *dropped);

#endif
