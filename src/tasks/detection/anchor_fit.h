/* anchor_fit: how well anchors fit the boxes of a dataset: how many boxes the matcher gives an
 * anchor, by class and by size, and which scales and aspect ratios the boxes need. */
#ifndef PM_ANCHOR_FIT_H
#define PM_ANCHOR_FIT_H

#include "tasks/detection/matching.h"

struct cJSON;

/* What became of a true box. */
enum pm_fit_fate {
    PM_FIT_MATCHED,   /* an anchor reached the matched threshold for it */
    PM_FIT_FORCED,    /* it has only the anchor that it claims by force_match_for_each_row */
    PM_FIT_LOST,      /* it has none: another box, more similar or first of equals, took its last */
    PM_FIT_UNMATCHED, /* it has none: no anchor is similar enough */
    PM_FIT_FATES
};
struct pm_fit_count {
    int64_t boxes, fate[PM_FIT_FATES];
    int64_t anchors;   /* number of matched anchors */
    double similarity; /* sum of the boxes' best similarities */
};

/* Counts of one dataset; 8 bytes per box are kept for the quantiles. */
struct pm_anchor_fit;
/* m and index are borrowed. height, width: of the net's input in pixels; boxes are 0..1 of it, or
 * rotated like the index's anchors, in its height. */
struct pm_anchor_fit *pm_anchor_fit_create(const struct pm_matcher *m,
                                           const struct pm_anchor_index *index, int classes,
                                           int height, int width);
void pm_anchor_fit_destroy(struct pm_anchor_fit **f);
/* Matches the boxes of one picture and counts them. labels [truths->count]: 0 .. classes - 1. Boxes
 * with weight 0 are not counted. Not thread-safe for one object. */
void pm_anchor_fit_add(struct pm_anchor_fit *f, const struct pm_truths *truths, const int *labels);

/* Groups by the square root of a box's area in pixels: below 8, 8 to 16, ... , 512 and more. */
enum { PM_FIT_SIZES = 8 };
/* Returns the counts of a class (label -1: of all) or of a group of sizes. */
struct pm_fit_count pm_anchor_fit_class(const struct pm_anchor_fit *f, int label);
struct pm_fit_count pm_anchor_fit_size(const struct pm_anchor_fit *f, int group);

/* What the boxes need. Sides are square roots of areas, in pixels; low and high are the 5 % and the
 * 95 % quantile. `ratios` (width over height) are as few as possible, so that 90 % of the boxes
 * differ from one of them by a factor of at most the square root of 2: then the IoU is at least
 * 0.72 where centre and area agree. */
enum { PM_FIT_RATIOS = 8 };
struct pm_fit_needs {
    double side_low, side_median, side_high;
    int ratio_count; /* 0: there are no boxes with an area */
    double ratios[PM_FIT_RATIOS];
};
struct pm_fit_needs pm_anchor_fit_needs(struct pm_anchor_fit *f);

/* Appends a report: a line for each class and group of sizes that has boxes. names [classes]. */
void pm_anchor_fit_print(struct pm_anchor_fit *f, const char *const *names, struct pm_str *out);
/* Adds the same numbers to object: boxes, matched, forced, lost, unmatched, anchors, overlap, the
 * lists classes and sizes with these members each, and `needs`. */
void pm_anchor_fit_report(struct pm_anchor_fit *f, const char *const *names, struct cJSON *object);

#endif
