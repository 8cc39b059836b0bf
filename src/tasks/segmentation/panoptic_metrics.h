/* panoptic_metrics: the quality of predicted segments: panoptic quality, parsing covering, and the
 * average precision of instances by the rules of Cityscapes or of COCO. */
#ifndef PM_PANOPTIC_METRICS_H
#define PM_PANOPTIC_METRICS_H

#include "tasks/coco_metrics.h"
#include "tasks/segmentation/instance_group.h"

struct pm_unpack;

struct pm_panoptic_metrics_options {
    int classes, label_divisor;
    struct pm_ints things;
    bool normalize_by_image_size; /* covering: areas are divided by their pictures' sizes */
    bool coco;                    /* average precision by COCO's rules, else Cityscapes' */
    int least_area;               /* Cityscapes': smaller true instances are ignored */
    int ignored_area;             /* true instances up to this area are void; 0: none */
};
struct pm_panoptic_metrics;
struct pm_panoptic_metrics *pm_panoptic_metrics_create(const struct pm_panoptic_metrics_options *o);
void pm_panoptic_metrics_destroy(struct pm_panoptic_metrics **m);

/* Makes the ground truth of a picture: class * label_divisor + number from 1 for things, class *
 * label_divisor for stuff and crowds (things whose instances are not separated), or PM_VOID.
 * instances: as in the fields of an evaluation (segmentation.h), its numbers below 1000. out may be
 * labels. */
void pm_panoptic_truth(const struct pm_panoptic_metrics_options *o, int ignore_label,
                       const int32_t *labels, const int32_t *instances, size_t count, int32_t *out);
/* Adds one picture: truth [said->height][said->width]. */
void pm_panoptic_metrics_add(struct pm_panoptic_metrics *m, const int32_t *truth,
                             const struct pm_segment_map *said);

/* panoptic_pack.c. Appends the options to a line: ", instances of classes 11 12, ...". */
void pm_panoptic_metrics_describe(const struct pm_panoptic_metrics *m, struct pm_str *out);
/* Appends everything that was added, for pm_panoptic_metrics_merge. */
void pm_panoptic_metrics_pack(const struct pm_panoptic_metrics *m, struct pm_str *out);
/* Adds what was packed by metrics with the same options. Merging the packs of pictures in their
 * order gives the same bits as adding the pictures. If u->damaged is set, a part may have been
 * added. */
void pm_panoptic_metrics_merge(struct pm_panoptic_metrics *m, struct pm_unpack *u);

/* One class, or means over the classes in the ground truth or predicted; NAN if there are none. pc
 * is the mean over classes in the ground truth. */
struct pm_panoptic_row {
    double pq, sq, rq, pc;
    uint64_t matched, wrong, missed; /* segments */
    int classes;                     /* number of classes in the means */
};
enum pm_panoptic_of { PM_PANOPTIC_ALL, PM_PANOPTIC_THINGS, PM_PANOPTIC_STUFF };
struct pm_panoptic_row pm_panoptic_metrics_row(const struct pm_panoptic_metrics *m,
                                               enum pm_panoptic_of of);
struct pm_panoptic_row pm_panoptic_metrics_class(const struct pm_panoptic_metrics *m, int label);
/* Cityscapes' average precision of a class of things, or (label -1) the mean over those in the
 * ground truth. ap50: at an overlap above 0.5; ap: mean over 0.5, 0.55 ... 0.95. NAN: no true
 * instance. */
struct pm_average_precision { double ap, ap50; };
struct pm_average_precision pm_panoptic_metrics_ap(const struct pm_panoptic_metrics *m, int label);
/* Returns COCO's figures of the masks of instances, whose scores are the segments'. NULL if not
 * wanted. */
const struct pm_coco_metrics *pm_panoptic_metrics_coco(const struct pm_panoptic_metrics *m);

#endif
