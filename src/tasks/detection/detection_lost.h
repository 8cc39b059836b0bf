/* detection_lost: adds a picture's proposals and second stage's boxes, as the outputs of an
 * evaluation have them, to the lost objects. */
#ifndef PM_DETECTION_LOST_H
#define PM_DETECTION_LOST_H

#include "tasks/detection/detection.h"
#include "tasks/detection/lost_objects.h"

/* Adds picture p, whose net has two stages, to `out`. truths: its true objects; detection [count]:
 * its detections. Boxes are brought to pixels of the file first; upright ones are clipped to the
 * picture, rotated ones are not. PM_EDATA if the picture cannot be placed. Not thread-safe for one
 * `out`. */
int pm_detection_add_lost(const struct pm_task *t, const struct pm_detection_picture *p,
                          const struct pm_detection_truths *truths,
                          const struct pm_box_detection *detection, int count,
                          struct pm_lost_objects *out);

#endif
