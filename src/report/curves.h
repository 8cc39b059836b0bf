/* curves: metrics.jsonl as curves of bounded size.
 *
 * A curve has at most PM_CURVE_BINS bins of equal width in steps. If it needs one more, the width
 * doubles and neighbours are merged. A bin keeps its smallest and largest value with their steps,
 * so a spike of one step in a million stays visible, and the mean, from which the smooth line is
 * drawn. */
#ifndef PM_CURVES_H
#define PM_CURVES_H

#include <pumice/base.h>

#include <sys/types.h>

enum { PM_CURVE_BINS = 500, PM_MAX_CURVES = 256 };

struct pm_curve_bin {
    uint64_t first, last; /* steps */
    uint64_t lowest_at, highest_at;
    double lowest, highest, sum;
    uint64_t count;
};
struct pm_curve {
    char *kind, *name;   /* owned: "train", "loss" */
    uint64_t width;      /* of a bin, in steps */
    struct pm_curve_bin *bins;
    int count;
    uint64_t not_finite; /* values left out */
    uint64_t last_step;
    double last;         /* newest finite value */
};
struct pm_curve_point {
    double step, value;
};

struct pm_curves {
    struct pm_curve *list;
    int count, capacity;
    uint64_t last_step;   /* of any line */
    dev_t device;         /* the file that was read, */
    ino_t inode;
    uint64_t offset;      /* and how far */
};
/* Reads the lines that were appended since the last call, or all if the file was replaced or became
 * shorter. A missing file gives no curves. Lines that are not metrics are skipped; an incomplete
 * line is left for the next call. */
void pm_curves_read(struct pm_curves *c, const char *path);
void pm_curves_free(struct pm_curves *c);
/* Adds a value. Steps of a curve must not decrease. Values that are not finite are only counted. */
void pm_curves_add(struct pm_curves *c, const char *kind, const char *name, uint64_t step,
                   double value);
/* Returns NULL if there is no such curve, or none with a finite value. */
const struct pm_curve *pm_curves_find(const struct pm_curves *c, const char *kind,
                                      const char *name);

/* The points to draw: measured values, at most two per bin, sorted by step. Returns their number
 * (<= 2 * bins). */
int pm_curve_points(const struct pm_curve *c, struct pm_curve_point points[2 * PM_CURVE_BINS]);
/* The means through a centred window of about a fortieth of the curve. */
int pm_curve_smooth(const struct pm_curve *c, struct pm_curve_point points[PM_CURVE_BINS]);
/* The best value and its step. */
struct pm_curve_point pm_curve_best(const struct pm_curve *c, bool higher);

#endif
