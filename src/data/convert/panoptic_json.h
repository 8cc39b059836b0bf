/* panoptic_json, inside data/convert: the annotations of a panoptic data set, as COCO has them and
 * Cityscapes' tools write them: categories, pictures, and of each picture's map which segment an id is. */
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
    const char *file, *map;            /* file names as they stand there */
    const struct pm_panoptic_json_segment *segment; /* by id */
    size_t segments;
};
/* All in the arena of who reads it, but for what is owned. */
struct pm_panoptic_json {
    struct pm_panoptic_json_category *category; /* owned */
    int categories, categories_room;
    struct pm_panoptic_json_picture *picture; /* owned; in the order of the annotations */
    size_t pictures, pictures_room;
    struct pm_panoptic_json_segment *segment; /* owned; what the pictures point into */
};
/* PM_EDATA with file and line, or naming the map, for whatever does not fit. */
int pm_panoptic_json_read(const char *path, struct pm_arena *a, struct pm_panoptic_json *out);
void pm_panoptic_json_free(struct pm_panoptic_json *p);

#endif
