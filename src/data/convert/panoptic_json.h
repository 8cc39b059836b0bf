/* panoptic_json, internal to data/convert: the annotations of a panoptic data set in COCO's
 * format, which Cityscapes' tools also write: categories, pictures, and the segments of each
 * picture's map. */
#ifndef PUMICE_DATA_CONVERT_PANOPTIC_JSON_H
#define PUMICE_DATA_CONVERT_PANOPTIC_JSON_H

#include "data/convert/convert.h"

enum { PM_MOST_PANOPTIC_CLASSES = 255 };
struct pm_panoptic_json_category {
    int64_t id;
    const char *name;
    bool thing;
};
/* The class is the category's place in the file. */
struct pm_panoptic_json_segment {
    uint32_t id; /* 1..2^24 - 1: R + 256 G + 65536 B of its pixels */
    uint16_t label;
    bool crowd;
};
struct pm_panoptic_json_picture {
    const char *file, *map;            /* file names as in the annotations */
    const struct pm_panoptic_json_segment *segment; /* by id */
    size_t segments;
};
/* Strings are in the reader's arena; the struct owns the lists marked so. */
struct pm_panoptic_json {
    struct pm_panoptic_json_category *category; /* owned */
    int categories, categories_room;
    struct pm_panoptic_json_picture *picture; /* owned; in the order of the annotations */
    size_t pictures, pictures_room;
    struct pm_panoptic_json_segment *segment; /* owned; the pictures point into it */
};
/* Reads a file. PM_EDATA for invalid content; the message has file and line, or names the map. */
int pm_panoptic_json_read(const char *path, struct pm_arena *a, struct pm_panoptic_json *out);
void pm_panoptic_json_free(struct pm_panoptic_json *p);

#endif
