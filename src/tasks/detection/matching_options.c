/* matching_options: the options of struct pm_matcher, and their check. */
#include "matching.h"

const struct pm_opt pm_matcher_opts[] = {
    PM_ENUM(pm_matcher, type, PM_MATCHER_ARGMAX, "argmax|bipartite",
            "how anchors get true boxes: argmax (each takes the most similar one) or bipartite "
            "(each true box gets one anchor)"),
    PM_ENUM(pm_matcher, similarity, PM_IOU, "iou|ioa|neg_sq_dist|thresholded_iou",
            "similarity of a true box and an anchor: intersection over union, intersection over "
            "the anchor's area, minus the squared distance, or the box's score where the IoU is "
            "above iou_threshold: 1, or with data.multiclass_scores the sum of its soft labels, at "
            "most 1"),
    PM_FLOAT(pm_matcher, matched_threshold, 0.5, -1e30, 1e30,
             "anchors with at least this similarity are matched"),
    PM_FLOAT(pm_matcher, unmatched_threshold, 0.5, -1e30, 1e30,
             "anchors below this similarity are negatives; those between the two thresholds are "
             "ignored"),
    PM_FLOAT(pm_matcher, iou_threshold, 0.5, 0, 1, "IoU above which thresholded_iou counts"),
    PM_BOOL(pm_matcher, ignore_thresholds, false, "match every anchor"),
    PM_BOOL(pm_matcher, negatives_lower_than_unmatched, true,
            "false: anchors between the thresholds are negatives, those below both are ignored"),
    PM_BOOL(pm_matcher, force_match_for_each_row, false,
            "every true box also gets its most similar anchor, whatever the thresholds say"),
    PM_BOOL(pm_matcher, ignore_outside, false,
            "ignore anchors whose centre lies beyond the input's right or lower edge, as "
            "keras-retinanet does"),
    PM_BOOL(pm_matcher, strict, false,
            "as the Object Detection API of 2017: if several boxes claim an anchor, the last one "
            "gets it, and a box without overlap claims the first anchor"),
    { 0 },
};

/* The largest value of a similarity. */
static double largest(const struct pm_matcher *m)
{
    return m->similarity == PM_NEG_SQ_DIST ? 0 : 1;
}

int pm_matcher_check(const struct pm_matcher *m, const char *where)
{
    if (m->type != PM_MATCHER_ARGMAX || m->ignore_thresholds)
        return PM_OK;
    if (!(m->matched_threshold >= m->unmatched_threshold))
        return pm_fail(PM_ECONFIG, "%s.matched_threshold: %g is below unmatched_threshold, %g. An "
                       "anchor cannot be matched and negative at once: set matched_threshold to "
                       "%g or more", where, m->matched_threshold, m->unmatched_threshold,
                       m->unmatched_threshold);
    if ((double)m->matched_threshold > largest(m))
        return pm_fail(PM_ECONFIG, "%s.matched_threshold: %g is above %g, the largest value of "
                       "this similarity, so no anchor would reach it: lower it (%s)",
                       where, (double)m->matched_threshold, largest(m),
                       m->similarity == PM_NEG_SQ_DIST ? "and unmatched_threshold, to 0 or less"
                                                       : "0.5 is usual");
    if (!m->negatives_lower_than_unmatched && m->matched_threshold == m->unmatched_threshold)
        return pm_fail(PM_ECONFIG, "%s.negatives_lower_than_unmatched: false takes negatives from "
                       "between the two thresholds, which are both %g. Set unmatched_threshold "
                       "below matched_threshold", where, m->matched_threshold);
    return PM_OK;
}
