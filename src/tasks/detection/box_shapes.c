/* box_shapes: overlaps of masks and similarities of keypoints by the rules of COCO's evaluation
 * (pycocotools, cocoeval.py). */
#include "tasks/detection/box_shapes.h"

#include "data/coco_mask.h"

#include <float.h>
#include <math.h>

enum { MOST_MASKS = 100, MOST_POINTS = 20 }; /* detections of a class in a picture */

const double pm_coco_sigmas[PM_COCO_POINTS] = {
    0.26 / 10, 0.25 / 10, 0.25 / 10, 0.35 / 10, 0.35 / 10, 0.79 / 10, 0.79 / 10, 0.72 / 10,
    0.72 / 10, 0.62 / 10, 0.62 / 10, 1.07 / 10, 1.07 / 10, 0.87 / 10, 0.87 / 10, 0.89 / 10,
    0.89 / 10,
};

/* ---- masks ---------------------------------------------------------------------------------- */

double pm_box_mask_overlap(const struct pm_box_detection *d, const struct pm_box_truth *truth,
                           bool crowd)
{
    return d->mask && truth->mask ? pm_runs_overlap(d->mask, truth->mask, crowd) : 0;
}

struct pm_coco_picture pm_masks_of_class(const struct pm_boxes_by_class *b, int label,
                                         struct pm_arena *a)
{
    const struct pm_class_pairs c = pm_boxes_pairs(b, label, MOST_MASKS, a);
    const int truths = c.picture.truths;

    for (int g = 0; g < truths; g++)
        c.true_object[g].ignored = !c.truth[g].mask;
    for (int d = 0; d < c.picture.found; d++) {
        const struct pm_box_detection *of = &c.detection[d];

        c.said[d].area = of->mask ? (double)pm_runs_area(of->mask) : 0;
        for (int g = 0; g < truths; g++)
            c.overlap[d * truths + g] = pm_box_mask_overlap(of, &c.truth[g], c.truth[g].crowd);
    }
    return c.picture;
}

/* ---- keypoints ------------------------------------------------------------------------------ */

static bool is_labelled(const struct pm_box_truth *truth, const struct pm_box_points *of, int k)
{
    return truth->points && !isnan(of->sigma[k]) && !isnan(truth->points[2 * k]);
}

static bool has_labelled(const struct pm_box_truth *truth, const struct pm_box_points *of)
{
    for (int k = 0; k < of->points; k++)
        if (is_labelled(truth, of, k))
            return true;
    return false;
}

/* The distance from v to the interval of three times the side around the interval from..to. */
static double beyond(double v, double from, double to)
{
    const double side = to - from;

    return fmax(0, from - side - v) + fmax(0, v - (from + 2 * side));
}

double pm_box_point_similarity(const struct pm_box_detection *d, const struct pm_box_truth *truth,
                               const struct pm_box_points *of)
{
    const bool any = has_labelled(truth, of);
    const double *box = truth->box.v;
    double sum = 0;
    int count = 0;

    for (int k = 0; d->points && k < of->points; k++) {
        const double *at = d->points + 2 * k, twice = 2 * of->sigma[k];
        double dy, dx;

        if (any ? !is_labelled(truth, of, k) : isnan(of->sigma[k]))
            continue;
        count++;
        if (!isfinite(at[0]) || !isfinite(at[1]))
            continue;
        dy = any ? at[0] - truth->points[2 * k] : beyond(at[0], box[0], box[2]);
        dx = any ? at[1] - truth->points[2 * k + 1] : beyond(at[1], box[1], box[3]);
        /* DBL_EPSILON as in COCO's program: an area of 0 does not divide by 0. */
        sum += exp(-((dx * dx + dy * dy) / (twice * twice) / (truth->area + DBL_EPSILON) / 2));
    }
    return count ? sum / count : 0;
}

/* The area of the box around the points of the class; 0 without points. */
static double extent_of(const double *points, const struct pm_box_points *of)
{
    double least[2] = { INFINITY, INFINITY }, most[2] = { -INFINITY, -INFINITY };

    for (int k = 0; points && k < of->points; k++)
        for (int i = 0; i < 2 && !isnan(of->sigma[k]); i++) {
            least[i] = fmin(least[i], points[2 * k + i]);
            most[i] = fmax(most[i], points[2 * k + i]);
        }
    return most[0] >= least[0] ? (most[0] - least[0]) * (most[1] - least[1]) : 0;
}

struct pm_coco_picture pm_points_of_class(const struct pm_boxes_by_class *b, int label,
                                          const struct pm_box_points *of, struct pm_arena *a)
{
    const struct pm_class_pairs c = pm_boxes_pairs(b, label, MOST_POINTS, a);
    const int truths = c.picture.truths;

    for (int g = 0; g < truths; g++)
        c.true_object[g].ignored = !has_labelled(&c.truth[g], of);
    for (int d = 0; d < c.picture.found; d++) {
        c.said[d].area = extent_of(c.detection[d].points, of);
        for (int g = 0; g < truths; g++)
            c.overlap[d * truths + g] = pm_box_point_similarity(&c.detection[d], &c.truth[g], of);
    }
    return c.picture;
}
