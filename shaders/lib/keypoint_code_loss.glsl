/* Shared by both passes of keypoint_code_loss, after its push block. */
#include "lib/code_loss.glsl"
#include "lib/keypoint_codes.glsl"

/* The difference of code i of a row from its target; 0 if the keypoint is not labelled. */
float difference(uint row, int g, uint i)
{
    uint per = uint(p.per), number = 2 * uint(p.points), a = 4 * (row % per);
    vec4 anchor =
        vec4(anchors.v[a], anchors.v[a + 1], anchors.v[a + 2], anchors.v[a + 3]);
    float v = keypoints.v[(row / per * uint(p.m) + uint(clamp(g, 0, p.m - 1))) * number + i];
    float code = codes.v[row * number + i];

    if (abs(v) <= 1e30) /* false for NaN */
        return code - keypoint_encode(v, anchor, i % 2, i % 2 == 0 ? p.sy : p.sx);
    return 0.0;
}

float weight_of(uint row, int g)
{
    return weights.v[row / uint(p.per) * uint(p.m) + uint(clamp(g, 0, p.m - 1))];
}
