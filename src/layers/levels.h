/* levels: the order of anchors in the layers that read the maps of all levels. */
#ifndef PUMICE_LEVELS_H
#define PUMICE_LEVELS_H

#include "layers/anchors.h"

/* Reads maps [n,h,w,A * size] of levels 1 to `levels`, the node's inputs from `input` on, whose
 * channels are `size` numbers for each anchor of a cell. first[k]: the first anchor of level k + 1,
 * from first[levels] on the number of all. Fails with PM_ECONFIG if a map is of another form. */
int pm_levels_read(const struct pm_node *n, int input, int levels, int size,
                   int first[PM_MAX_LEVELS + 1]);
/* Returns the ONNX value [n,N,size] of these maps, all levels one after another. */
const char *pm_levels_onnx(const struct pm_node *n, struct pm_export *g, int input, int levels,
                           int size);

#endif
