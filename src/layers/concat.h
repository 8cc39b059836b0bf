/* concat: joins parts along an axis into a whole, and takes the whole apart again. It has the two
 * kernel rows of the layers concat and split. */
#ifndef PM_CONCAT_H
#define PM_CONCAT_H

#include <pumice/layer.h>

#include "concat.params.h"

enum { PM_CONCAT_PARTS = PM_MAX_JOINED };

/* Returns the node's option `axis` as an axis of input 0. Fails with PM_ECONFIG and the allowed
 * range if there is no such axis. */
int pm_concat_axis(const struct pm_node *n, int axis);
/* Appends the call that writes the parts one after another into the whole. Part i has the shape of
 * node[i]; an absent part is written as zeros. 1 <= count <= PM_CONCAT_PARTS. */
void pm_concat_join(struct pm_calls *c, int axis, int count, struct pm_node *const *node,
                    const struct pm_tensor *part, struct pm_tensor whole);
/* Joins parts with equal first axes, all present, along the others: row i of the whole has row i of
 * each part. */
void pm_concat_columns(struct pm_calls *c, int count, const struct pm_tensor *part,
                       struct pm_tensor whole);
/* Appends the call that copies the parts out of the whole. Absent parts are skipped. */
void pm_concat_take(struct pm_calls *c, int axis, int count, struct pm_node *const *node,
                    const struct pm_tensor *part, struct pm_tensor whole);

#endif
