/* export_paste: pastes the masks of boxes into the picture (PM_PLACES_MASKS). */
#ifndef PM_ONNX_EXPORT_PASTE_H
#define PM_ONNX_EXPORT_PASTE_H

#include "onnx/export_graph.h"

/* Returns uint8 [n, D, H, W], 1 for the pixels of the object. The masks x, a value [n, D, h, w] of
 * a node of shape s, are pasted at the boxes, a value [n, D, 4] in 0..1 of the picture, which has
 * H x W pixels. Masks of 0 have no pixel. Sets g->pasted. */
const char *pm_export_paste(struct pm_export *g, const char *x, struct pm_shape s,
                            const char *boxes);

#endif
