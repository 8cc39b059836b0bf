/* tile_merge: the detections of a photo from those of its overlapping tiles.
 *
 * A tile shows only a part of an object at its border. Two steps make one detection of the views
 * of an object:
 *
 * 1. Parts. Detection d of tile A is a part of detection w of another tile, and is dropped, if
 *      - w is larger, has the same class, and crosses an inner border of A (one that is not the
 *        photo's);
 *      - w counts as an object: its score is at least that of d, or above the threshold for
 *        drawing;
 *      - d agrees with what A shows of w: the IoU of d and the part of w inside A is above the IoU
 *        threshold. Or d touches a border that w crosses, and more than half of d is in w.
 * 2. Suppression. The rest is taken in the order of falling scores, and a box is dropped if its IoU
 *    with a kept one of another tile is above the threshold.
 *
 * Why: by IoU alone a half that is cut at a border stays, as it overlaps the whole by a half at
 * most. Suppression by score alone keeps a cut box with the better score instead of the whole one.
 * Agreement needs no tolerance: it compares what both tiles show. Touching is for narrow strips of
 * objects, where a few pixels change the IoU much. One half is its bound because two objects side
 * by side cannot both hold more than half of a box. A w that does not count is no reason to drop a
 * sure d: nets give low scores to many boxes that are no objects. Both rules drop only what another
 * tile shows for the larger part, and that tile's own view of it stays.
 *
 * An object that no tile shows whole has no whole box: its views may stay as several boxes. So the
 * overlap should be as large as the largest object. Boxes of one tile are not compared; the net
 * has suppressed them. */
#ifndef PM_TILE_MERGE_H
#define PM_TILE_MERGE_H

#include "data/picture_tiles.h"
#include "tasks/detection/box.h"

struct pm_tile_merging {
    const struct pm_tile_grid *grid;
    const struct pm_box_geometry *geometry; /* of upright or of rotated boxes */
    double iou_threshold;
    bool class_agnostic;            /* boxes of different classes are compared, too */
    int classes, max_per_class, max_total; /* most detections of the photo */
    const double *least;            /* [classes]: above it a score counts as an object */
};
/* Merges detections in pixels of the photo, list [count]; tile [count] are their tiles, in
 * ascending order. Writes the indices of those that remain to kept [count] by falling score, equal
 * ones by index, and returns their number. *over: further ones above `least` that the limits leave
 * out. */
size_t pm_tile_merge(const struct pm_tile_merging *m, const struct pm_box_detection *list,
                     const size_t *tile, size_t count, size_t *kept, size_t *over);

#endif
