/* Codes of keypoints. Twins of src/layers/keypoint_codes.h. */
#include "box_coder.params.h"

/* The code of coordinate `axis` (0 y, 1 x) of a keypoint; anchor: its corners. */
float keypoint_encode(float v, vec4 anchor, uint axis, float scale)
{
    float low = axis == 0 ? anchor.x : anchor.y, side = (axis == 0 ? anchor.z : anchor.w) - low;

    return (v - (low + side / 2.0)) / (side + PM_BOX_EPSILON) * scale;
}

float keypoint_decode(float code, vec4 anchor, uint axis, float scale)
{
    float low = axis == 0 ? anchor.x : anchor.y, side = (axis == 0 ? anchor.z : anchor.w) - low;

    return code / scale * side + (low + side / 2.0);
}
