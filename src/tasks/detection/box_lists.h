/* box_lists: the boxes of an evaluation, as the files that compute metrics read them. */
#ifndef PM_BOX_LISTS_H
#define PM_BOX_LISTS_H

#include "tasks/coco_metrics.h"
#include "tasks/detection/box.h"

#include <stddef.h>

struct pm_arena;

/* ---- all pictures -------------------------------------------------------------------------- */

struct pm_kept_picture {
    uint64_t record;
    char *name, *file;                     /* owned; NULL: none was given */
    size_t truth, detection, verified;     /* its first one in the lists below */
    int truths, detections, verified_count; /* verified_count -1: all classes */
};
/* Begins as zeros, the number of classes, the geometry, and what objects have. All lists are
 * owned. */
struct pm_box_lists {
    int classes;
    const struct pm_box_geometry *geometry;
    bool masks;              /* masks are kept */
    int points;              /* keypoints that are kept of an object; 0: none */
    struct pm_arena *shapes; /* owned: masks and keypoints; NULL: there are none yet */
    struct pm_kept_picture *pictures;
    struct pm_box_truth *truth;
    struct pm_box_detection *detection;
    int *verified;
    size_t count, capacity; /* of pictures */
    size_t truth_count, truth_capacity, detection_count, detection_capacity;
    size_t verified_count, verified_capacity;
};
/* Copies a picture. A NAN area of a true object becomes that of its box. Masks and keypoints that
 * are not kept become NULL. */
void pm_box_lists_add(struct pm_box_lists *l, const struct pm_box_picture *p);
/* Returns the pictures [count] by record, the order in which equal scores count. The caller frees
 * the array. */
const struct pm_kept_picture **pm_box_lists_by_record(const struct pm_box_lists *l);
void pm_box_lists_free(struct pm_box_lists *l);

/* ---- one picture ---------------------------------------------------------------------------- */

/* One picture's boxes by class: the truths of class c are truth[first_truth[c]] up to
 * truth[first_truth[c + 1] - 1], in the order of the picture's list; detections likewise, but by
 * descending score, equal scores in the order of the list. Reused for one picture after another. */
struct pm_boxes_by_class {
    int classes;
    int *first_truth, *first_detection; /* [classes + 1], owned */
    struct pm_box_truth *truth;         /* owned, like the next one */
    struct pm_box_detection *detection;
    int *truth_at, *detection_at;       /* the index of each in the picture's lists, owned */
    int truth_room, detection_room;
};
void pm_boxes_by_class_create(struct pm_boxes_by_class *b, int classes);
void pm_boxes_by_class_free(struct pm_boxes_by_class *b);
void pm_boxes_by_class_set(struct pm_boxes_by_class *b, const struct pm_box_truth *truth,
                           int truths, const struct pm_box_detection *detection, int detections);

/* The objects of one class while they are compared for coco_metrics, in the same order. */
struct pm_class_pairs {
    const struct pm_box_truth *truth;         /* [picture.truths], borrowed */
    const struct pm_box_detection *detection; /* [picture.found], borrowed */
    struct pm_coco_picture picture;           /* its arrays are the following ones */
    struct pm_coco_true *true_object;         /* [truths]; the arena's, like the next two */
    struct pm_coco_said *said;                /* [found] */
    double *overlap;                          /* [found][truths] */
};
/* Lists the true objects of a class and at most `most` of its detections. Areas and crowds of true
 * objects and scores of detections are set; the caller sets areas of detections and overlaps. */
struct pm_class_pairs pm_boxes_pairs(const struct pm_boxes_by_class *b, int label, int most,
                                     struct pm_arena *a);
/* The boxes of one class for coco_metrics. The arrays are the arena's. */
struct pm_coco_picture pm_boxes_of_class(const struct pm_boxes_by_class *b,
                                         const struct pm_box_geometry *g, int label,
                                         struct pm_arena *a);

#endif
