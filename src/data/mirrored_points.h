/* mirrored_points, internal to data/ and tasks/: which keypoints change places in a mirrored
 * picture, found from their names. */
#ifndef PUMICE_DATA_MIRRORED_POINTS_H
#define PUMICE_DATA_MIRRORED_POINTS_H

#include <pumice/objects.h>

/* Sets what each keypoint becomes in a mirrored picture: the point of the same name with "left" and
 * "right" exchanged, else itself. Returns false if there is no such pair; names may be NULL. */
bool pm_mirrored_by_name(const char *const *names, int count, int *out);
/* The same for the first class of a label map that has `count` keypoints and such a pair. Returns
 * false if there is none; map may be NULL. */
bool pm_mirrored_by_map(const struct pm_label_map *map, int count, int *out);

#endif
