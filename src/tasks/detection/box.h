/* box: a true or detected box as the metrics see it, and the geometry of upright and of rotated
 * boxes. */
#ifndef PM_BOX_H
#define PM_BOX_H

#include <stdbool.h>
#include <stdint.h>

/* Corners in pixels of the file: ymin, xmin, ymax, xmax. */
struct pm_box { double v[4]; };

struct pm_runs; /* data/coco_mask.h */

/* A true object. The metrics read different flags:
 *             crowd                     difficult        group_of
 * COCO        ignored; matches any      counts           counts
 *             number of detections
 * Pascal      as difficult              ignored          counts
 * Open Images counts                    counts           see PM_BOX_OPEN_IMAGES
 * errors      ignored, like crowd: all three */
struct pm_box_truth {
    struct pm_box box;
    double area; /* of the annotation, in pixels: of its mask if it has one; NAN: the box's area */
    int label;   /* 0 .. classes - 1 */
    bool crowd, difficult, group_of;
    /* Borrowed; metrics of masks and keypoints read them. */
    const struct pm_runs *mask; /* in pixels of the file; NULL: not annotated */
    const double *points;       /* [points][2] y, x in pixels of the file; NAN: not labelled;
                                 * NULL: none is labelled */
    double rotated[5]; /* of rotated boxes: cy, cx, h, w in pixels of the file and the angle
                        * (data/rotated_box.h); box is then the upright box around it */
};
struct pm_box_detection {
    struct pm_box box;
    double score; /* NAN: below all others */
    int label;
    const struct pm_runs *mask; /* as above; NULL: an empty one */
    const double *points;       /* as above; NULL: it is compared with no object */
    double rotated[5];          /* as above */
};
/* One picture. The arrays, masks and keypoints are copied. All masks have the same size. */
struct pm_box_picture {
    uint64_t record;  /* its index in the dataset; among equal scores the lower record comes first,
                       * then the detection that is first in the list */
    const char *name; /* its id in the file of detections, copied; NULL: the record's number */
    const char *file; /* the name of its file, copied; NULL: not known */
    const struct pm_box_truth *truth;
    const struct pm_box_detection *detection;
    int truths, detections;
    /* Open Images' challenge: classes that somebody looked for in this picture (those of its true
     * objects are added). Detections of other classes are not counted. NULL: all classes. */
    const int *verified;
    int verified_count;
};

/* A score that is not a number is below all others. */
double pm_box_score(const struct pm_box_detection *d);

/* ---- geometry -------------------------------------------------------------------------------- */

/* A kind of boxes. Its functions take boxes by their numbers: the four of struct pm_box if they are
 * upright, the five of `rotated` if they are rotated. Angles may differ by any amount: evaluation
 * does not have training's rule that boxes of far angles do not overlap. Boxes without a side
 * overlap with nothing. All functions are thread-safe. */
struct pm_box_geometry {
    int numbers;                          /* 4 or 5 */
    bool (*has_sides)(const double *b);   /* its height and width are above 0 */
    double (*area)(const double *b);
    /* Intersection over union; of_first: over the area of a. Exactly 1 for equal boxes. */
    double (*overlap)(const double *a, const double *b, bool of_first);
    /* Intersection over union of a and the part of b inside an upright window. */
    double (*agreement)(const double *a, const double *b, const struct pm_box *window);
    void (*bounds)(const double *b, struct pm_box *out); /* the upright box around it */
};
extern const struct pm_box_geometry pm_box_upright, pm_box_rotated;
const struct pm_box_geometry *pm_box_geometry_of(bool rotated);

/* Return the numbers of an object's box; borrowed from the object. */
const double *pm_box_truth_numbers(const struct pm_box_geometry *g, const struct pm_box_truth *t);
const double *pm_box_found_numbers(const struct pm_box_geometry *g,
                                   const struct pm_box_detection *d);
/* The overlap of a detection and a true object: intersection over union, or (crowd) over the area
 * of the detection. */
double pm_box_overlap(const struct pm_box_geometry *g, const struct pm_box_detection *d,
                      const struct pm_box_truth *t, bool crowd);

#endif
