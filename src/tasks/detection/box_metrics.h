/* box_metrics: evaluation of detected boxes: the metrics of COCO, Pascal VOC and Open Images, the
 * score with the best F1, precision-recall curves, kinds of errors, and the confusion matrix.
 * Metrics of masks and keypoints are further sets; errors and curves are always those of boxes.
 *
 * Pictures are added in any order; no result depends on it. The object keeps all boxes: 136 bytes
 * per detection, 104 per true object, and 32 more per detection for each of masks and keypoints. A
 * kept mask needs 4 bytes per run, a keypoint 16. Functions with a const object may run in several
 * threads at once, but not together with pm_box_metrics_add. */
#ifndef PM_BOX_METRICS_H
#define PM_BOX_METRICS_H

#include "tasks/coco_metrics.h"
#include "tasks/confusion.h"
#include "tasks/detection/box.h"

struct pm_str;
struct pm_unpack;

struct pm_box_metrics_options {
    int classes;
    double recall_lower, recall_upper; /* of precision_at_recall; 0 and 1: the same as voc_map */
    bool masks;                        /* objects have masks */
    bool rotated;                      /* overlaps are those of the rotated boxes */
    int points;                        /* keypoints of an object; 0: none */
    /* [classes][points], copied: pm_box_points.sigma. A class without a number has no metrics of
     * keypoints. NULL: no class has any. */
    const double *sigmas;
};
struct pm_box_metrics;
struct pm_box_metrics *pm_box_metrics_create(const struct pm_box_metrics_options *o);
void pm_box_metrics_destroy(struct pm_box_metrics **m); /* accepts NULL in *m */
/* Adds a picture. A record may be added once only. */
void pm_box_metrics_add(struct pm_box_metrics *m, const struct pm_box_picture *p);
/* box_pack.c. Appends all pictures, for pm_box_metrics_merge. */
void pm_box_metrics_pack(const struct pm_box_metrics *m, struct pm_str *out);
/* Adds the pictures that were packed by metrics with the same classes, masks, points and kind of
 * boxes, in their order. If u->damaged is set, a part may have been added. */
void pm_box_metrics_merge(struct pm_box_metrics *m, struct pm_unpack *u);
/* Returns the boxes added so far; borrowed. */
const struct pm_box_lists *pm_box_metrics_lists(const struct pm_box_metrics *m);

/* ---- metrics ----------------------------------------------------------------------------- */

/* map ... ar_large: COCO's twelve, by the rules of coco_metrics.h.
 * voc_map: Pascal VOC from 2010 on: the area under the precision-recall curve at an IoU of 0.5;
 * difficult objects are ignored. Only the object with the largest IoU can match a detection.
 * voc07_map: the same, mean over the recalls 0, 0.1 ... 1. weighted_map: voc_map of the detections
 * of all classes in one list. precision_at_recall: voc_map of the curve's points whose recall is
 * between recall_lower and recall_upper. corloc: share of the pictures with the class in which the
 * detection with the highest score has an IoU of at least 0.5 with an object of the class.
 * open_images_map: voc_map, where detections with at least half of their area in a group_of box are
 * ignored. open_images_challenge_map: each group_of box is an object instead, found by the best
 * of these detections; detections of classes not verified are not counted.
 *
 * mask_map ... mask_ar_large: COCO's twelve of masks. The overlap is that of the masks, and a
 * detection has the area of its mask. A true object without an annotated mask is ignored.
 * mask_voc_map, mask_weighted_map: voc_map and weighted_map with the IoU of masks. A true object
 * whose mask is missing or empty does not count. The best detection that matches its box, but no
 * mask, is ignored.
 * keypoint_map ... keypoint_ar_large: COCO's ten of keypoints, of the 20 best detections of a class
 * and picture. The overlap is the object keypoint similarity (box_shapes.h). */
#define PM_BOX_METRIC_NAMES(X) \
    X(MAP, "map") X(MAP_50, "map_50") X(MAP_75, "map_75") X(MAP_SMALL, "map_small") \
    X(MAP_MEDIUM, "map_medium") X(MAP_LARGE, "map_large") X(AR_1, "ar_1") X(AR_10, "ar_10") \
    X(AR_100, "ar_100") X(AR_SMALL, "ar_small") X(AR_MEDIUM, "ar_medium") \
    X(AR_LARGE, "ar_large") X(VOC_MAP, "voc_map") X(VOC07_MAP, "voc07_map") \
    X(WEIGHTED_MAP, "weighted_map") X(PRECISION_AT_RECALL, "precision_at_recall") \
    X(CORLOC, "corloc") X(OPEN_IMAGES_MAP, "open_images_map") \
    X(OPEN_IMAGES_CHALLENGE_MAP, "open_images_challenge_map") \
    X(MASK_MAP, "mask_map") X(MASK_MAP_50, "mask_map_50") X(MASK_MAP_75, "mask_map_75") \
    X(MASK_MAP_SMALL, "mask_map_small") X(MASK_MAP_MEDIUM, "mask_map_medium") \
    X(MASK_MAP_LARGE, "mask_map_large") X(MASK_AR_1, "mask_ar_1") X(MASK_AR_10, "mask_ar_10") \
    X(MASK_AR_100, "mask_ar_100") X(MASK_AR_SMALL, "mask_ar_small") \
    X(MASK_AR_MEDIUM, "mask_ar_medium") X(MASK_AR_LARGE, "mask_ar_large") \
    X(MASK_VOC_MAP, "mask_voc_map") X(MASK_WEIGHTED_MAP, "mask_weighted_map") \
    X(KEYPOINT_MAP, "keypoint_map") X(KEYPOINT_MAP_50, "keypoint_map_50") \
    X(KEYPOINT_MAP_75, "keypoint_map_75") X(KEYPOINT_MAP_MEDIUM, "keypoint_map_medium") \
    X(KEYPOINT_MAP_LARGE, "keypoint_map_large") X(KEYPOINT_AR, "keypoint_ar") \
    X(KEYPOINT_AR_50, "keypoint_ar_50") X(KEYPOINT_AR_75, "keypoint_ar_75") \
    X(KEYPOINT_AR_MEDIUM, "keypoint_ar_medium") X(KEYPOINT_AR_LARGE, "keypoint_ar_large")
#define PM_BOX_ENUM(id, name) PM_BOX_##id,
enum pm_box_metric { PM_BOX_METRIC_NAMES(PM_BOX_ENUM) PM_BOX_METRICS };
#undef PM_BOX_ENUM
extern const char *const pm_box_metric_names[PM_BOX_METRICS];

/* The sets that can be asked for, as bits. */
enum pm_box_set {
    PM_BOX_COCO = 1,
    PM_BOX_PASCAL = 2,                /* voc_map ... corloc */
    PM_BOX_OPEN_IMAGES = 4,           /* open_images_map */
    PM_BOX_OPEN_IMAGES_CHALLENGE = 8, /* open_images_challenge_map */
    PM_BOX_COCO_MASKS = 16,           /* mask_map ... mask_ar_large; needs masks */
    PM_BOX_PASCAL_MASKS = 32,         /* mask_voc_map, mask_weighted_map; needs masks */
    PM_BOX_COCO_KEYPOINTS = 64,       /* keypoint_map ... keypoint_ar_large; needs points */
};
/* NAN: not in the sets, or there is no true object that counts. */
struct pm_box_values { double v[PM_BOX_METRICS]; };
/* Computes the metrics of these sets: in *mean the means over the classes with true objects, in
 * per_class [classes], unless it is NULL, those of each class (weighted_map and
 * mask_weighted_map: NAN). */
void pm_box_metrics_values(const struct pm_box_metrics *m, unsigned sets,
                           struct pm_box_values *mean, struct pm_box_values *per_class);

/* Computes the precision-recall curve and the score with the best F1 at an IoU of 0.5, of a class
 * or (label -1) of the detections of all classes in one list. */
void pm_box_metrics_curve(const struct pm_box_metrics *m, int label, struct pm_coco_curve *out);

/* ---- errors ------------------------------------------------------------------------------ */

/* The kind of a detection with a score above the threshold. Kinds, their order and IoUs are those
 * of TIDE (Bolya and others, ECCV 2020). First, in each class, detections are matched to true
 * objects by COCO's rules at an IoU of 0.5. Then the first kind that fits holds for the others:
 *   loose          the largest IoU with objects of its class is 0.1 to 0.5
 *   wrong class    IoU of at least 0.5 with an object of another class
 *   double         IoU of at least 0.5 with an object of its class that another detection matches
 *   background     no IoU with any object is 0.1 or more
 *   both           the rest: wrong class and loose
 * Of the true objects, those that no detection matches, and that no loose or wrong detection has as
 * its nearest, are missed. Ignored are detections that match an ignored object. */
enum pm_box_kind {
    PM_BOX_RIGHT, PM_BOX_LOOSE, PM_BOX_WRONG_CLASS, PM_BOX_DOUBLE, PM_BOX_BACKGROUND, PM_BOX_BOTH,
    PM_BOX_MISSED, PM_BOX_IGNORED, PM_BOX_KINDS
};
/* "right", "loose", "wrong_class", "double", "background", "both", "missed", "ignored" */
extern const char *const pm_box_kind_names[PM_BOX_KINDS];

/* Counts of the kinds: of detections by their class, missed objects by theirs. */
struct pm_box_errors { uint64_t count[PM_BOX_KINDS]; };
/* total: of all classes. per_class [classes], or NULL. confusion: NULL, or made with classes + 1
 * classes: the last class is the background. Its counts are added to. In it each true object is
 * paired first by COCO's rules with a detection of its class, else with the best free detection of
 * another class whose IoU is at least 0.5 (in the order of scores), else with the background. */
void pm_box_metrics_errors(const struct pm_box_metrics *m, double threshold,
                           struct pm_box_errors *total, struct pm_box_errors *per_class,
                           struct pm_confusion *confusion);

/* One picture with its verdicts. All arrays are owned; free with pm_box_judged_free. */
struct pm_box_judged {
    int truths, detections;
    struct pm_box_truth *truth;
    struct pm_box_detection *detection; /* those above the threshold, the highest score first */
    enum pm_box_kind *truth_kind;       /* [truths] right (found), missed, ignored; or the kind of
                                         * the error nearest to it: loose, wrong class */
    enum pm_box_kind *kind;             /* [detections] */
};
/* Returns false if no picture has this record; then *out is zeros. */
bool pm_box_metrics_judge(const struct pm_box_metrics *m, uint64_t record, double threshold,
                          struct pm_box_judged *out);
void pm_box_judged_free(struct pm_box_judged *j);
/* Selects up to `most` pictures: two thirds with the most errors above the threshold, the worst
 * first, then pictures without an error, by the hash of their record. Returns their number. */
int pm_box_metrics_samples(const struct pm_box_metrics *m, double threshold, int most,
                           uint64_t *records);

/* ---- detections.json --------------------------------------------------------------------- */

/* What a detection of the file has. A rotated box has two members: "bbox", the upright box around
 * it, and "rotated_bbox": [x, y, w, h, angle], the centre and sides in pixels and the angle in
 * radians, clockwise. Without "bbox" pycocotools takes the areas of detections from their masks or
 * keypoints, as COCO's own evaluation does. */
enum pm_box_results {
    PM_BOX_RESULTS_BOXES,  /* "bbox": [x, y, w, h] */
    PM_BOX_RESULTS_MASKS,  /* "segmentation": {"size": [height, width], "counts"}, of those with a
                            * mask */
    PM_BOX_RESULTS_POINTS, /* "keypoints": [x, y, 1, ...], of those with keypoints */
};
/* Writes all detections in COCO's form for results: [{"image_id", "category_id", "bbox" or another
 * member, "score"}, ...] by record and in the order of each picture's list, so that pycocotools
 * finds the same metrics; of rotated boxes it compares the boxes around them. image_id is the
 * picture's name, as a number if it is one; file_name follows if the picture's file has another
 * name. ids [classes]: category ids; NULL: label + 1. Other numbers are exact; scores that are not
 * finite are 0. The file appears whole or not at all. PM_EFAIL. */
int pm_box_metrics_write(const struct pm_box_metrics *m, enum pm_box_results what, const int *ids,
                         const char *path);

/* ---- DOTA's submission files ------------------------------------------------------------- */

/* box_dota.c. Writes the rotated detections of each class as folder/Task1_CLASS.txt, a line each:
 * the picture's id, the score, and the corners x1 y1 x2 y2 x3 y3 x4 y4 in pixels. The metrics are
 * of rotated boxes. names [classes]: a name that is NULL, that cannot be a file's name, or that an
 * earlier class has, is replaced by the class's number, label + 1. The id is the name of the
 * picture's file without its ending, else the picture's name, else the record's number.
 *
 * Records that `dataset convert dota` cut have names ID__SIZE__X___Y. Their detections are moved to
 * the original picture ID and merged as DOTA's development kit does: in each class, by falling
 * score, a detection is dropped if its IoU with a kept one of the same picture is above
 * PM_DOTA_MERGE_IOU. So an object in four tiles counts once. Detections of whole pictures are not
 * merged. Lines come by id, then by falling score. Each file appears whole or not at all.
 * PM_EFAIL. */
#define PM_DOTA_MERGE_IOU 0.1
int pm_box_metrics_write_dota(const struct pm_box_metrics *m, const char *const *names,
                              const char *folder);

#endif
