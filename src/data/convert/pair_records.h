/* pair_records, inside data/convert: what the converters of pictures with maps of labels share. They
 * write DeepLab's records: the picture's bytes as they are, the map as a grey PNG of 8 bits; where there
 * are maps of instances, these as grey PNGs of 16 bits. */
#ifndef PUMICE_DATA_CONVERT_PAIR_RECORDS_H
#define PUMICE_DATA_CONVERT_PAIR_RECORDS_H

#include "data/convert/convert.h"

/* A picture and its map; all in the arena of who listed them. */
struct pm_pair {
    const char *image;
    const char *label;    /* NULL: there is none, the record gets none */
    const char *filename; /* the record's image/filename */
    const char *instances; /* the map of instances, or NULL */
    const void *of;        /* what pm_segmentation.read knows it by */
};
enum { PM_INSTANCE_DIVISOR = 1000, PM_INSTANCE_TOO_MANY = 65535 };
/* What a colour of a map means. */
struct pm_colour {
    uint8_t rgb[3];
    uint16_t label;
};
struct pm_segmentation {
    struct pm_pair *pair; /* owned */
    size_t count, capacity;
    const uint32_t *order;    /* places in pair, or NULL: as listed */
    size_t first;             /* of order, or of the list: what is being written begins here */
    const uint16_t *meaning;  /* [65536] label of each stored number, or NULL: itself */
    /* Of maps of instances, which are of these classes, [65536]: what each stored number is, class *
     * divisor + number, 0 where it is of none, or PM_INSTANCE_TOO_MANY; or NULL: it is stored %
     * instance_divide (0: all of it), of which instance_first is the first instance. */
    const bool *things;
    const uint16_t *instance_meaning;
    int instance_divide, instance_first;
    /* Reads the maps of a pair that are not stored so; NULL: all is as above. Called from several
     * threads. instances: class * divisor + number; may be left without values. */
    int (*read)(void *ctx, const struct pm_pair *p, struct pm_label *classes,
                struct pm_label *instances);
    void *ctx;
    int divisor;
    const struct pm_colour *colours; /* of maps that are pictures of colours, or NULL: refused */
    int colours_count;
    bool colours_always;      /* for maps of every kind, not of RGB alone */
    int num_classes, ignore;  /* labels are below num_classes, or ignore */
    int bad;                  /* enum pm_bad */
    _Atomic uint64_t pixels[65536]; /* of each label, in the split */
};
#define PM_OPT_BAD_PAIRS(tag)                                                                      \
    PM_ENUM(tag, bad, PM_BAD_ERROR, "skip|error",                                                  \
            "pairs that do not decode or do not fit: passed over with a line each, or the end")

struct pm_segmentation *pm_segmentation_create(void);
void pm_segmentation_destroy(struct pm_segmentation **s);
void pm_segmentation_add(struct pm_segmentation *s, const char *image, const char *label,
                         const char *filename);
/* Writes the pairs as SPLIT-00000-of-00004.tfrecord, ceil(count / shards) records each, and empties the
 * list. Nothing listed is nothing done. */
int pm_segmentation_split(struct pm_making *m, const char *split, struct pm_segmentation *s,
                          int shards);
/* The same of `count` pairs from `first` on, which stay listed. */
int pm_segmentation_part(struct pm_making *m, const char *split, struct pm_segmentation *s,
                         size_t first, size_t count, int shards);
/* Whether the listed maps are pictures of colours; PM_EDATA where some are and some are not. */
int pm_segmentation_coloured(const struct pm_segmentation *s, bool *out);
/* The largest label but ignore in the maps that can be read, -1 without any. */
int pm_segmentation_most(const struct pm_segmentation *s);
/* "R G B NAME" a line, classes by line from 0; a class of that name (or NULL) means the ignore label
 * and has no number of its own. All in the arena. */
int pm_colour_file(struct pm_arena *a, const char *path, const char *ignore_class, int ignore,
                   struct pm_colour **colours, int *colours_count, const char ***names, int *count);
/* Names, one a line, in the arena. */
int pm_name_file(struct pm_arena *a, const char *path, const char ***names, int *count);
/* "0", "1" ... in the arena, for classes without names. */
const char **pm_number_names(struct pm_arena *a, int count);
/* "a/b.c.png" gives "b.c", in the arena. */
const char *pm_stem(struct pm_arena *a, const char *path);

#endif
