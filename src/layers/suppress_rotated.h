/* suppress_rotated: the calls of suppress_rows.h for rotated boxes, cy, cx, h, w, angle. Overlaps
 * are the same bits on all devices (rotated_overlap.h), so all devices keep the same boxes. */
#ifndef PUMICE_SUPPRESS_ROTATED_H
#define PUMICE_SUPPRESS_ROTATED_H

#include <pumice/layer.h>

#include "layers/rotated_overlap.h"
#include "suppress.params.h"

/* pm_suppress and pm_suppress_merge call these if the last axis of boxes is 5. There are no
 * windows: rotated boxes are not clipped. */
void pm_suppress_rotated(struct pm_calls *c, const struct suppress_params *p,
                         struct pm_tensor boxes, struct pm_tensor scores, struct pm_tensor valid,
                         struct pm_tensor kept, struct pm_tensor kept_scores);
void pm_suppress_merge_rotated(struct pm_calls *c, const struct suppress_merge_params *p,
                               struct pm_tensor boxes, struct pm_tensor kept,
                               struct pm_tensor entry_scores, struct pm_tensor entry_classes,
                               const struct pm_tensor out[5]);

#endif
