/* lost_objects: at which of two stages a detector loses true objects. A box covers an object if
 * their IoU, in pixels of the file, is at least 0.5. The last stage that has such a box decides:
 *   found         a detection of the object's class covers it, with a score above the threshold
 *   suppressed    no detection, but a box of the second stage, of its class and with such a score;
 *                 suppression, the limits on detections or another part of post-processing removed
 *                 this box, or changed its score
 *   rejected      only a proposal: the second stage gave no such box of the class
 *   no_proposal   nothing covers the object
 * One box may cover several objects. So an object can be found here, but missed in the metrics,
 * which give each detection to one object. Crowds, difficult objects and groups are left out.
 *
 * The threshold may be known only at the end, so each object keeps its best IoU and its best
 * scores, in 32 bytes. Pictures are added in any order; no result depends on it. */
#ifndef PM_LOST_OBJECTS_H
#define PM_LOST_OBJECTS_H

#include "tasks/detection/box.h"

#include <stddef.h>

struct cJSON;
struct pm_str;
struct pm_unpack;

/* One picture. Boxes are in pixels of the file. Scores that are NaN are above no threshold. */
struct pm_stages_picture {
    const struct pm_box_geometry *geometry;  /* of all boxes; n below is its `numbers` */
    const struct pm_box_truth *truth;
    const double *proposal;                  /* those of the first stage: [proposals][n] */
    const double *box;                       /* of the second stage: [proposals][boxes_each][n];
                                              * only those of the objects' classes are read */
    const float *score;                      /* of the second stage: [proposals][classes] */
    const struct pm_box_detection *detection;
    int truths, proposals, detections;
    int boxes_each;                          /* 1, or one for each class */
};
enum pm_stage_outcome {
    PM_STAGE_FOUND, PM_STAGE_NO_PROPOSAL, PM_STAGE_REJECTED, PM_STAGE_SUPPRESSED, PM_STAGE_OUTCOMES
};
/* "found", "no_proposal", "rejected", "suppressed" */
extern const char *const pm_stage_outcome_names[PM_STAGE_OUTCOMES];

/* Counts of objects. */
struct pm_stage_counts {
    uint64_t objects;
    uint64_t outcome[PM_STAGE_OUTCOMES]; /* their sum is objects */
    uint64_t proposed_50, proposed_70;   /* a proposal has an IoU of at least 0.5, 0.7 */
};

struct pm_lost_objects;
struct pm_lost_objects *pm_lost_objects_create(int classes);
void pm_lost_objects_destroy(struct pm_lost_objects **l); /* accepts NULL in *l */
void pm_lost_objects_add(struct pm_lost_objects *l, const struct pm_stages_picture *p);
/* Appends all objects, for pm_lost_objects_merge. */
void pm_lost_objects_pack(const struct pm_lost_objects *l, struct pm_str *out);
/* Adds the objects that were packed with the same number of classes. If u->damaged is set, a part
 * may have been added. */
void pm_lost_objects_merge(struct pm_lost_objects *l, struct pm_unpack *u);
/* Counts the objects: in *total of all classes, in per_class [classes], unless it is NULL, of each
 * class. Only outcomes depend on the threshold. */
void pm_lost_objects_count(const struct pm_lost_objects *l, double threshold,
                           struct pm_stage_counts *total, struct pm_stage_counts *per_class);
/* Adds the metrics proposal_recall_50 and proposal_recall_70: the shares of the objects of all
 * classes that a proposal covers with an IoU of at least 0.5 or 0.7. null without objects. */
void pm_lost_objects_report(const struct pm_lost_objects *l, struct cJSON *object);
/* Adds the member stages: objects, one count for each outcome, proposal_recall_50,
 * proposal_recall_70, shares { of each outcome }, and per_class, which has the same members, each
 * a list by class. Shares of no objects are null. */
void pm_lost_objects_detail(const struct pm_lost_objects *l, double threshold,
                            struct cJSON *object);

#endif
