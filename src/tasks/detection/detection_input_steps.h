/* detection_input_steps: the config's changes of rotated boxes, before anything else sees them
 * (data/rotated_steps.h). Both functions are thread-safe. */
#ifndef PM_DETECTION_INPUT_STEPS_H
#define PM_DETECTION_INPUT_STEPS_H

#include "tasks/detection/detection.h"

/* Changes rotated boxes as data.swap_sides and data.subtract_angle say, in training, evaluation and
 * prediction alike. o has the picture's size. where: the record, for messages. PM_ECONFIG if the
 * objects have no rotated boxes. */
int pm_detection_input_steps(const struct pm_task *t, struct pm_objects *o, const char *where);
/* Limits the objects of a training picture to data.cutoff_boxes, and blackens the dropped ones in
 * the picture. Evaluation counts every object, so there nothing changes. A function of r's seed,
 * step and example. PM_ECONFIG if the objects have no rotated boxes. */
int pm_detection_cutoff(const struct pm_sampler *sampler, const struct pm_loader_record *r,
                        struct pm_objects *o, struct pm_image8 *picture);

#endif
