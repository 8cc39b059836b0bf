/* pair_records, internal to data/convert: declarations that converters of pictures with label maps
 * share. They write DeepLab's records: the unchanged bytes of the picture, the label map as a grey
 * 8-bit PNG, and the instance map, if any, as a grey 16-bit PNG. */
#ifndef PUMICE_DATA_CONVERT_PAIR_RECORDS_H
#define PUMICE_DATA_CONVERT_PAIR_RECORDS_H

#include "data/convert/convert.h"

/* A picture and its label map. The strings belong to the arena of the code that lists the pairs. */
struct pm_pair {
    const char *image;
    const char *label;    /* NULL: no label map; the record has none */
    const char *filename; /* the record's image/filename */
    const char *instances; /* the map of instances, or NULL */
    const void *of;        /* handle for pm_segmentation.read */
};
enum { PM_INSTANCE_DIVISOR = 1000, PM_INSTANCE_TOO_MANY = 65535 };
/* The meaning of a colour in a label map. */
struct pm_colour {
    uint8_t rgb[3];
    uint16_t label;
};
struct pm_segmentation {
    struct pm_pair *pair; /* owned */
    size_t count, capacity;
    const uint32_t *order;    /* places in pair, or NULL: as listed */
    size_t first;             /* index in order, or in the list, of the first pair to write */
    const uint16_t *meaning;  /* [65536] label of each stored number; NULL: the number is the
                               * label */
    /* Instance maps. instance_meaning [65536]: for each stored number class * divisor + instance
     * number, 0 if it is not an instance, or PM_INSTANCE_TOO_MANY. NULL: the instance number is
     * stored % instance_divide (0: the stored number), and instance_first is the first instance. */
    const bool *things;
    const uint16_t *instance_meaning;
    int instance_divide, instance_first;
    /* Reads the maps of a pair in another format. NULL: the format above. Called from several
     * threads. instances: class * divisor + number; may stay without values. */
    int (*read)(void *ctx, const struct pm_pair *p, struct pm_label *classes,
                struct pm_label *instances);
    void *ctx;
    int divisor;
    const struct pm_colour *colours; /* for maps that are colour pictures; NULL: these are
                                      * refused */
    int colours_count;
    bool colours_always;      /* use colours for maps of every kind, not only for RGB */
    int num_classes, ignore;  /* labels are below num_classes, or ignore */
    int bad;                  /* enum pm_bad */
    _Atomic uint64_t pixels[65536]; /* number of pixels of each label in the split */
};
#define PM_OPT_BAD_PAIRS(tag)                                                                      \
    PM_ENUM(tag, bad, PM_BAD_ERROR, "skip|error",                                                  \
            "pairs that cannot be decoded or do not match: skip (one warning each), or fail")

struct pm_segmentation *pm_segmentation_create(void);
void pm_segmentation_destroy(struct pm_segmentation **s);
void pm_segmentation_add(struct pm_segmentation *s, const char *image, const char *label,
                         const char *filename);
/* Writes the pairs as SPLIT-00000-of-00004.tfrecord with ceil(count / shards) records each, and
 * empties the list. Does nothing if the list is empty. */
int pm_segmentation_split(struct pm_making *m, const char *split, struct pm_segmentation *s,
                          int shards);
/* The same for `count` pairs from `first` on. They stay in the list. */
int pm_segmentation_part(struct pm_making *m, const char *split, struct pm_segmentation *s,
                         size_t first, size_t count, int shards);
/* Whether the listed maps are colour pictures. PM_EDATA if only some are. */
int pm_segmentation_coloured(const struct pm_segmentation *s, bool *out);
/* The largest label in the readable maps, without the ignore label; -1 if there is none. */
int pm_segmentation_most(const struct pm_segmentation *s);
/* Reads lines "R G B NAME"; the line number, from 0, is the class. The class called ignore_class
 * (may be NULL) means the ignore label and has no number. The result is in the arena. */
int pm_colour_file(struct pm_arena *a, const char *path, const char *ignore_class, int ignore,
                   struct pm_colour **colours, int *colours_count, const char ***names, int *count);
/* Reads names, one per line, into the arena. */
int pm_name_file(struct pm_arena *a, const char *path, const char ***names, int *count);
/* "0", "1" ... in the arena, for classes without names. */
const char **pm_number_names(struct pm_arena *a, int count);
/* "a/b.c.png" gives "b.c", in the arena. */
const char *pm_stem(struct pm_arena *a, const char *path);

#endif
