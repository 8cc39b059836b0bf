/* keypoint_codes: the codes of keypoints relative to an anchor, as in the keypoint box coder of
 * TensorFlow's Object Detection API. An anchor with the centre (ya, xa) and the sides ha, wa codes
 * a keypoint (y, x) as
 *
 *     (y - ya) / ha, (x - xa) / wa, each times its scale: y, x (10, 10)
 *
 * As there, encoding adds 1e-8 to the sides. shaders/lib/keypoint_codes.glsl is the twin. */
#ifndef PUMICE_KEYPOINT_CODES_H
#define PUMICE_KEYPOINT_CODES_H

#include <pumice/layer.h>

#include "box_coder.params.h"
#include "keypoint_codes.params.h"

/* Options of both layers, for a struct with a member scales. */
#define PM_KEYPOINT_SCALES(tag)                                                                    \
    PM_FLOATS(tag, scales, "[10, 10]", 1e-6, 1e6, "factors of the codes: y, x")

/* Returns the code of coordinate `axis` (0 y, 1 x) of a keypoint. */
static inline float pm_keypoint_encode(float v, const float anchor[4], int axis, float scale)
{
    const float side = anchor[axis + 2] - anchor[axis];

    return (v - (anchor[axis] + side / 2)) / (side + PM_BOX_EPSILON) * scale;
}

static inline float pm_keypoint_decode(float code, const float anchor[4], int axis, float scale)
{
    const float side = anchor[axis + 2] - anchor[axis];

    return code / scale * side + (anchor[axis] + side / 2);
}

/* Checks the option scales and input 0, the codes. Returns PM_ECONFIG with one line that names the
 * node. */
static inline int pm_keypoint_codes_check(const struct pm_node *n, struct pm_floats scales)
{
    const struct pm_shape x = n->in[0]->out_shape;
    char text[64];

    if (scales.count != 2)
        return pm_fail(PM_ECONFIG, "%s: scales has %d numbers instead of 2, y and x", n->name,
                       scales.count);
    if (x.rank != 3 || x.dim[2] % 2)
        return pm_fail(PM_ECONFIG, "%s: codes have shape %s instead of n x N x 2 K. Give each of N "
                       "anchors y and x of K keypoints", n->name, pm_shape_text(x, text));
    return PM_OK;
}

#endif
