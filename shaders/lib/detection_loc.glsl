/* Shared by both passes of detection_loc, after their push block. */
#include "lib/box_coder.glsl"
#include "lib/code_loss.glsl"
#include "lib/detection_loss.glsl"

#ifdef ROTATED
#define CODES 5 /* of a box */

RotatedBox anchor_of(uint row)
{
    uint a = 5 * (p.own != 0 ? row : uint(p.first) + row % uint(p.per));

    return RotatedBox(vec4(anchors.v[a], anchors.v[a + 1], anchors.v[a + 2], anchors.v[a + 3]),
                      anchors.v[a + 4]);
}

/* The codes of the true box g that a level's row is matched with. */
void target_codes(uint row, int g, out float target[5])
{
    uint b = 5 * detection_truth(row, g);
    RotatedBox truth = RotatedBox(vec4(boxes.v[b], boxes.v[b + 1], boxes.v[b + 2], boxes.v[b + 3]),
                                  boxes.v[b + 4]);
    RotatedBox anchor = anchor_of(row);

    if (p.own != 0)
        truth.angle = box_near_angle(truth.angle, anchor.angle);
    RotatedBox code = box_encode_rotated(vec4(p.s0, p.s1, p.s2, p.s3), p.s4, truth, anchor);

    for (int i = 0; i < 4; i++)
        target[i] = code.v[i];
    target[4] = code.angle;
}

/* No loss compares decoded rotated boxes. */
float box_loss(uint row, int g, out float dcode[5])
{
    for (int i = 0; i < 5; i++)
        dcode[i] = 0.0;
    return 0.0;
}
#else
#define CODES (p.coder == PM_CODER_SQUARE ? 3 : 4)

/* The loss of box b and truth t without weight, and its gradient by b's corners. */
float overlap_loss(vec4 b, vec4 t, out vec4 slope)
{
    vec2 low = max(b.xy, t.xy), high = min(b.zw, t.zw), inner = max(high - low, vec2(0.0));
    vec2 outer = max(b.zw, t.zw) - min(b.xy, t.xy), side = b.zw - b.xy, truth = t.zw - t.xy;
    float common_area = inner.x * inner.y, around = outer.x * outer.y;
    float joined = side.x * side.y + truth.x * truth.y - common_area;
    float iou = joined > 0.0 ? common_area / joined : 0.0;
    bool general = p.kind == DETECTION_GIOU && around > 0.0;
    float part = general ? joined / around : 1.0;

    for (int i = 0; i < 4; i++) {
        int k = i % 2, other = 1 - k;
        bool last = i >= 2;
        float factor = last ? 1.0 : -1.0;
        bool cuts = inner[k] > 0.0 && (last ? b[i] < t[i] : b[i] > t[i]);
        bool bounds = last ? b[i] > t[i] : b[i] < t[i];
        float dcommon = cuts ? inner[other] : 0.0, daround = bounds ? outer[other] : 0.0;

        slope[i] = joined > 0.0 ? factor * (iou * side[other] - dcommon * (1.0 + iou)) / joined
                                : 0.0;
        if (general)
            slope[i] -= factor * (side[other] - dcommon - part * daround) / around;
    }
    return 1.0 - iou + (1.0 - part);
}

vec4 anchor_of(uint row)
{
    uint a = 4 * (p.own != 0 ? row : uint(p.first) + row % uint(p.per));

    return vec4(anchors.v[a], anchors.v[a + 1], anchors.v[a + 2], anchors.v[a + 3]);
}

vec4 truth_of(uint row, int g)
{
    uint b = 4 * detection_truth(row, g);

    return vec4(boxes.v[b], boxes.v[b + 1], boxes.v[b + 2], boxes.v[b + 3]);
}

/* The loss of a row that is matched with box g, and the gradient of its codes. */
float box_loss(uint row, int g, out float dcode[5])
{
    uint at = row * uint(CODES);
    vec4 s = vec4(p.s0, p.s1, p.s2, p.s3), anchor = anchor_of(row), slope;
    vec4 code = vec4(codes.v[at], codes.v[at + 1], codes.v[at + 2],
                     CODES > 3 ? codes.v[at + 3] : 0.0);
    vec4 box = box_decode(p.coder, s, code, anchor);
    float w = weights.v[detection_truth(row, g)], loss = overlap_loss(box, truth_of(row, g), slope);

    slope = box_decode_back(p.coder, s, code, anchor, box, slope) * w;
    for (int i = 0; i < 4; i++)
        dcode[i] = slope[i];
    dcode[4] = 0.0;
    return w * loss;
}

/* The codes of the true box g that a level's row is matched with. */
void target_codes(uint row, int g, out float target[5])
{
    vec4 code =
        box_encode(p.coder, vec4(p.s0, p.s1, p.s2, p.s3), truth_of(row, g), anchor_of(row));

    for (int i = 0; i < 4; i++)
        target[i] = code[i];
    target[4] = 0.0;
}
#endif

/* The difference from a target; 0 if the target is NaN. */
float code_difference(float code, float target)
{
    return isnan(target) ? 0.0 : code - target;
}
