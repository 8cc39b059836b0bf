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

enum { PM_SUPPRESS_LANES = 128 }; /* of lib/select.glsl and suppress_soft.comp */

/* One workgroup for each list or image. */
static inline void pm_suppress_groups(const char *shader, size_t groups, struct pm_picks *out)
{
    out->d[0] = (struct pm_dispatch){ .shader = shader, .spec = { PM_SUPPRESS_LANES }, .specs = 1,
                                      .groups = { groups < 65535 ? (uint32_t)groups : 65535, 1,
                                                  1 } };
    out->count = 1;
    out->variant = shader;
}

#endif
