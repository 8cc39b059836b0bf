/* concat: parts that lie behind one another along an axis of a whole, joined and taken apart: the
 * two kernel rows of the layers concat and split. */
#ifndef PM_CONCAT_H
#define PM_CONCAT_H

#include <pumice/layer.h>

#include "concat.params.h"

enum { PM_CONCAT_PARTS = 8 };

/* The option `axis` of the node as an axis of its input 0; PM_ECONFIG, naming the allowed range,
 * when there is no such axis. */
int pm_concat_axis(const struct pm_node *n, int axis);
/* Appends the call that writes the parts behind one another into the whole. Part i has the shape of
 * node[i]; zeros are written for an absent one. 1 <= count <= PM_CONCAT_PARTS. */
void pm_concat_join(struct pm_calls *c, int axis, int count, struct pm_node *const *node,
                    const struct pm_tensor *part, struct pm_tensor whole);
/* Appends the call that copies the whole's parts; an absent one is skipped. */
void pm_concat_take(struct pm_calls *c, int axis, int count, struct pm_node *const *node,
                    const struct pm_tensor *part, struct pm_tensor whole);

#endif
