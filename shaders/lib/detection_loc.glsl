/* The losses of codes. d is the code minus its target, w the weight of the anchor. */
#include "lib/box_coder.glsl"
#include "lib/detection_loss.glsl"

float code_loss(float w, float d)
{
    if (p.kind == DETECTION_L2)
        return 0.5 * (w * d) * (w * d);
    if (p.kind == DETECTION_L1)
        return w * abs(d);
    return w * (abs(d) <= p.delta ? 0.5 * d * d : p.delta * (abs(d) - 0.5 * p.delta));
}

float code_slope(float w, float d)
{
    if (p.kind == DETECTION_L2)
        return w * w * d;
    if (p.kind == DETECTION_L1)
        return w * sign(d);
    return w * clamp(d, -p.delta, p.delta);
}

/* The codes of the true box g that a level's row is matched with. */
vec4 target_codes(uint row, int g)
{
    uint a = 4 * (uint(p.first) + row % uint(p.per)), b = 4 * detection_truth(row, g);
    vec4 anchor = vec4(anchors.v[a], anchors.v[a + 1], anchors.v[a + 2], anchors.v[a + 3]);
    vec4 box = vec4(boxes.v[b], boxes.v[b + 1], boxes.v[b + 2], boxes.v[b + 3]);

    return box_encode(p.coder, vec4(p.s0, p.s1, p.s2, p.s3), box, anchor);
}

/* The difference from a target; 0 if the target is NaN. */
float code_difference(float code, float target)
{
    return isnan(target) ? 0.0 : code - target;
}
