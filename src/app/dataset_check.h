/* dataset_check, internal to app/: what dataset inspect --check finds about the objects of a data
 * folder: statistics of each split, and findings about splits and pairs of splits.
 *
 * A finding is wrong if training or its evaluation would use wrong data, so that the command fails.
 * Others cost accuracy at most, because training drops or tolerates them. */
#ifndef PUMICE_APP_DATASET_CHECK_H
#define PUMICE_APP_DATASET_CHECK_H

#include <pumice/objects.h>

struct cJSON;

/* The order is that of the report. */
enum app_finding {
    /* wrong */
    FOUND_DAMAGED,
    FOUND_UNKNOWN_CLASS,
    FOUND_TURNED,
    FOUND_NOTHING,
    FOUND_EQUAL,
    /* poorer */
    FOUND_PART,
    FOUND_WITHOUT_CLASS,
    FOUND_DEGENERATE,
    FOUND_OUTSIDE,
    FOUND_CLIPPED,
    FOUND_TINY,
    FOUND_DOUBLED,
    FOUND_TWO_CLASSES,
    FOUND_WITHOUT_MASK,
    FOUND_EMPTY_MASK,
    FOUND_NUMBERS,
    FOUND_MANY,
    FOUND_UNCLEAR,
    FOUND_UNREAD,
    FOUND_SIZE,
    FOUND_REPEATED,
    FOUND_ABSENT_CLASS,
    FINDINGS,
};
struct app_found {
    size_t count;
    const char *first; /* the first record or class, and what it has; or NULL */
};
/* Numbers in the order of pictures until they are sorted for the quantiles. */
struct app_numbers {
    float *v; /* owned */
    size_t count, capacity;
};
struct app_class {
    int id;           /* of the label map, else the record's; 0: none */
    const char *name;
    size_t boxes, pictures;
};
struct app_split_check {
    const char *name;
    size_t records; /* with or without objects */
    size_t empty, boxes, crowds, difficult, group_of, masks, keypoints;
    struct app_class *class; /* owned; those that occur, and those of the label map in its order */
    size_t classes, classes_capacity;
    struct app_numbers side;    /* of boxes: root of the area, in pixels */
    struct app_numbers share;   /* the same with the picture's sides as 1 */
    struct app_numbers objects; /* per picture */
    struct app_found found[FINDINGS];
};
/* A picture for the comparison of splits. */
struct app_picture_hash {
    uint8_t hash[16];
    size_t split;
    const char *where;
};
struct app_check {
    struct pm_arena *arena; /* owned */
    const struct pm_label_map *map; /* borrowed; may have no classes */
    struct app_split_check *split;  /* owned */
    size_t splits, splits_capacity;
    struct app_picture_hash *picture; /* owned */
    size_t pictures, pictures_capacity;
};
void app_check_start(struct app_check *c);
void app_check_free(struct app_check *c);
/* Whether the record is one of a detection data set: it has classes of boxes, or boxes and no class
 * of the whole picture. */
bool app_check_applies(const struct pm_example *e);
/* Reads all records of a split, decodes their pictures and masks, and adds its statistics. map:
 * lives as long as c. Damaged records are findings, not errors. PM_EDATA if a file cannot be
 * read. */
int app_check_split(struct app_check *c, struct pm_dataset *d, const char *name,
                    const struct pm_label_map *map);
/* Compares the splits and adds "objects" to the splits of the report with equal names, and
 * "findings" to the report. Returns the number of findings that are wrong. */
size_t app_check_report(struct app_check *c, struct cJSON *out);
/* Adds the text of a split's "objects", and of the report's "findings". */
void app_check_split_text(struct pm_str *s, const struct cJSON *objects);
void app_check_findings_text(struct pm_str *s, const struct cJSON *findings);

#endif
