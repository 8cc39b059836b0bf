/* coco_metrics: the twelve figures of COCO's evaluation: average precision and average recall of
 * detected objects. The caller measures the overlaps, of masks or of boxes. */
#ifndef PM_COCO_METRICS_H
#define PM_COCO_METRICS_H

#include <stdbool.h>
#include <stdint.h>

/* Means over the overlap thresholds 0.5, 0.55 ... 0.95, except AP50 and AP75. Objects are of any
 * area, or up to 32 * 32 (SMALL), from there to 96 * 96 (MEDIUM), or from there on (LARGE), both
 * ends included. The 100 detections with the highest scores count per class and picture; for AR1
 * and AR10 only 1 and 10. */
enum pm_coco_figure {
    PM_COCO_AP, PM_COCO_AP50, PM_COCO_AP75, PM_COCO_AP_SMALL, PM_COCO_AP_MEDIUM, PM_COCO_AP_LARGE,
    PM_COCO_AR1, PM_COCO_AR10, PM_COCO_AR100, PM_COCO_AR_SMALL, PM_COCO_AR_MEDIUM, PM_COCO_AR_LARGE,
    PM_COCO_FIGURES,
    /* Of COCO's metrics of keypoints: AR100 at the overlaps 0.5 and 0.75 alone. */
    PM_COCO_AR50 = PM_COCO_FIGURES, PM_COCO_AR75, PM_COCO_ALL_FIGURES
};
/* The names of the first PM_COCO_FIGURES in this order, each through the macro X. */
#define PM_COCO_NAMES(X) \
    X("ap") X("ap50") X("ap75") X("ap_small") X("ap_medium") X("ap_large") \
    X("ar1") X("ar10") X("ar100") X("ar_small") X("ar_medium") X("ar_large")
extern const char *const pm_coco_names[PM_COCO_FIGURES]; /* "ap", "ap50", ... "ar_large" */

struct pm_str;
struct pm_unpack;

/* Running sums; 32 bytes per detection, nothing per picture. */
struct pm_coco_metrics;
struct pm_coco_metrics *pm_coco_metrics_create(int classes); /* up to 65,536 */
void pm_coco_metrics_destroy(struct pm_coco_metrics **m);

/* A crowd is never missed, and any number of detections may match it. An ignored object is never
 * missed, either, but only one detection may match it. */
struct pm_coco_true { double area; bool crowd, ignored; };
struct pm_coco_said { double area, score; };
/* The limit of pm_coco_picture.order. */
#define PM_COCO_ORDERS ((uint64_t)1 << 40)
/* The objects of one class in one picture. */
struct pm_coco_picture {
    int truths, found;
    const struct pm_coco_true *truth;
    const struct pm_coco_said *said;
    /* [found][truths]: intersection over union; for a crowd, intersection over the detection's
     * area. */
    const double *overlap;
    uint64_t order; /* the picture's place among all, below PM_COCO_ORDERS: the same for all its
                     * classes */
};
/* Adds one class of one picture. Among equal scores the detection of the picture with the lower
 * order comes first, then the one that is first in the list; so pictures can be added in any
 * order. */
void pm_coco_metrics_add(struct pm_coco_metrics *m, int label, const struct pm_coco_picture *p);

/* Appends everything that was added, for pm_coco_metrics_merge. */
void pm_coco_metrics_pack(const struct pm_coco_metrics *m, struct pm_str *out);
/* Adds what was packed by metrics of as many classes. The packed orders are below `pictures`; they
 * become larger by `first`, so that orders can be the numbers of the pictures of one pack. If
 * u->damaged is set, a part may have been added. */
void pm_coco_metrics_merge(struct pm_coco_metrics *m, uint64_t first, uint64_t pictures,
                           struct pm_unpack *u);

/* Matches the detections of a picture to its true objects of any area at this overlap, by the same
 * rules. match [found]: index of the true object; -1: none; -2: not among the 100 best. */
void pm_coco_match(const struct pm_coco_picture *p, double least, int *match);

/* Precision and recall of one class at an overlap of 0.5, for objects of any area. */
enum { PM_COCO_RECALLS = 101 };
struct pm_coco_curve {
    double precision[PM_COCO_RECALLS]; /* [k]: the best one at a recall of at least k / 100 */
    /* The largest F1, 2 PR / (P + R), and P and R there. It is that of the detections with scores
     * above `score`; detections exactly at it are dropped. score is exact in 32 bits if the scores
     * are. Without a right detection f1 and recall_at are 0, score and precision_at NAN. */
    double f1, score, precision_at, recall_at;
    uint64_t truths, detections; /* number of those that count */
};
/* Computes the curve of a class, or (label -1) of the detections of all classes in one list. If
 * there is no true object, all its numbers are NAN. */
void pm_coco_metrics_curve(const struct pm_coco_metrics *m, int label, struct pm_coco_curve *out);

/* Returns the figures of a class, or (label -1) each figure's mean over the classes that have it.
 * NAN: there is no true object. */
struct pm_coco_figures { double v[PM_COCO_ALL_FIGURES]; };
struct pm_coco_figures pm_coco_metrics_figures(const struct pm_coco_metrics *m, int label);

#endif
