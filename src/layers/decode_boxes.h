/* decode_boxes: appends the call that decodes the codes of all levels. */
#ifndef PUMICE_DECODE_BOXES_H
#define PUMICE_DECODE_BOXES_H

#include "layers/box_coder.h"

/* codes[0..levels-1]: the maps [n, h, w, A * code size] of 1 to PM_MAX_LEVELS levels. Codes outside
 * low..high are limited; -INFINITY and INFINITY: none. anchors [N, 4] and y [n, N, 4], or 5 instead
 * of 4 for rotated boxes. No gradient. */
void pm_decode_boxes(struct pm_calls *c, const struct pm_box_coder *coder, float low, float high,
                     int levels, const struct pm_tensor *codes, struct pm_tensor anchors,
                     struct pm_tensor y);

#endif
