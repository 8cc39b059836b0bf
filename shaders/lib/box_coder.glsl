/* Twin of src/layers/box_coder.h: same formulas in the same order. scales are struct
 * pm_box_coder's. Boxes are vec4(ymin, xmin, ymax, xmax). */
#ifndef PM_BOX_CODER_GLSL
#define PM_BOX_CODER_GLSL

#include "box_coder.params.h"

#ifdef ROTATED
/* cy, cx, h, w and angle of a rotated box; or its five codes. */
struct RotatedBox {
    vec4 v;
    float angle;
};

/* Cosine and sine. */
vec2 box_direction(float angle)
{
    float k = floor(angle * (1.0 / PM_QUARTER_TURN) + 0.5), quarter = k - 4.0 * floor(k / 4.0);
    precise float r = angle - k * PM_QUARTER_HIGH - k * PM_QUARTER_MIDDLE - k * PM_QUARTER_LOW;
    float z = r * r;
    float sine = r + r * z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 +
                                                                  z * (1.0 / 362880.0))));
    float cosine = 1.0 + z * (-0.5 + z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 -
                                                                           z / 3628800.0))));
    bool odd = quarter == 1.0 || quarter == 3.0;

    return vec2((quarter == 1.0 || quarter == 2.0 ? -1.0 : 1.0) * (odd ? sine : cosine),
                (quarter >= 2.0 ? -1.0 : 1.0) * (odd ? cosine : sine));
}

/* The angle of a box moved by half turns to within a quarter of a turn of the anchor's. */
float box_near_angle(float angle, float anchor)
{
    float turn = angle - anchor, half_turn = 2.0 * PM_QUARTER_TURN;

    return abs(turn) <= PM_QUARTER_TURN
               ? angle
               : angle - half_turn * floor(turn * (1.0 / half_turn) + 0.5);
}

float box_turn(RotatedBox box, RotatedBox anchor)
{
    float turn = box.angle - anchor.angle;
    bool square = abs(box.v.z - box.v.w) <= PM_BOX_SQUARE * max(box.v.z, box.v.w);

    return square ? turn - PM_QUARTER_TURN * floor(turn * (1.0 / PM_QUARTER_TURN) + 0.5) : turn;
}

RotatedBox box_encode_rotated(vec4 s, float s4, RotatedBox box, RotatedBox anchor)
{
    vec2 cs = box_direction(anchor.angle), d = box.v.xy - anchor.v.xy;
    vec2 size = anchor.v.zw + PM_BOX_EPSILON;

    return RotatedBox(vec4((cs.x * d.x - cs.y * d.y) / size.x * s.x,
                           (cs.x * d.y + cs.y * d.x) / size.y * s.y,
                           log((box.v.zw + PM_BOX_EPSILON) / size) * s.zw),
                      box_turn(box, anchor) / PM_QUARTER_TURN * s4);
}
#endif

/* Centre y, x and sides h, w of a box of corners. */
vec4 box_middle_of(vec4 box)
{
    vec2 size = box.zw - box.xy;

    return vec4(box.xy + size / 2.0, size);
}

/* The code of a box. square leaves the fourth number 0. */
vec4 box_encode(int kind, vec4 s, vec4 box, vec4 anchor)
{
    vec4 a = box_middle_of(anchor), b = box_middle_of(box);

    if (kind == PM_CODER_MEAN_STDDEV)
        return (box - anchor) / s.x;
    if (kind == PM_CODER_CORNERS)
        return (box - anchor) / (a.zwzw + PM_BOX_EPSILON) / s.x;
    if (kind == PM_CODER_SQUARE) {
        float side = sqrt(a.z * a.w) + PM_BOX_EPSILON;

        return vec4((b.xy - a.xy) / side * s.xy,
                    log((sqrt(b.z * b.w) + PM_BOX_EPSILON) / side) * s.z, 0.0);
    }
    a.zw += PM_BOX_EPSILON;
    return vec4((b.xy - a.xy) / a.zw * s.xy, log((b.zw + PM_BOX_EPSILON) / a.zw) * s.zw);
}

/* min() may turn NaN into a number; this comparison keeps it. */
float box_grow(float v)
{
    return exp(v > PM_BOX_MOST_LOG ? PM_BOX_MOST_LOG : v);
}

#ifdef ROTATED
RotatedBox box_decode_rotated(vec4 s, float s4, RotatedBox code, RotatedBox anchor)
{
    vec2 cs = box_direction(anchor.angle), d = code.v.xy / s.xy * anchor.v.zw;

    return RotatedBox(vec4(anchor.v.x + (cs.x * d.x + cs.y * d.y),
                           anchor.v.y + (cs.x * d.y - cs.y * d.x),
                           box_grow(code.v.z / s.z) * anchor.v.z,
                           box_grow(code.v.w / s.w) * anchor.v.w),
                      anchor.angle + code.angle / s4 * PM_QUARTER_TURN);
}
#endif

/* The corners of a code. */
vec4 box_decode(int kind, vec4 s, vec4 code, vec4 anchor)
{
    vec4 a = box_middle_of(anchor);
    vec2 middle, size;

    if (kind == PM_CODER_MEAN_STDDEV)
        return code * s.x + anchor;
    if (kind == PM_CODER_CORNERS)
        return code * s.x * a.zwzw + anchor;
    if (kind == PM_CODER_SQUARE) {
        float side = sqrt(a.z * a.w);

        middle = code.xy / s.xy * side + a.xy;
        size = vec2(box_grow(code.z / s.z) * side);
    } else {
        middle = code.xy / s.xy * a.zw + a.xy;
        size = vec2(box_grow(code.z / s.z), box_grow(code.w / s.w)) * a.zw;
    }
    return vec4(middle - size / 2.0, middle + size / 2.0);
}

/* The gradient of a code: that of its decoded box, dbox, through box_decode. */
vec4 box_decode_back(int kind, vec4 s, vec4 code, vec4 anchor, vec4 box, vec4 dbox)
{
    vec4 a = box_middle_of(anchor);
    vec2 size = box.zw - box.xy, dmiddle = dbox.xy + dbox.zw, dsize = (dbox.zw - dbox.xy) / 2.0;

    if (kind == PM_CODER_MEAN_STDDEV)
        return dbox * s.x;
    if (kind == PM_CODER_CORNERS)
        return dbox * s.x * a.zwzw;
    if (kind == PM_CODER_SQUARE) {
        float length_slope = code.z / s.z > PM_BOX_MOST_LOG ? 0.0 : dot(dsize, size) / s.z;

        return vec4(dmiddle * sqrt(a.z * a.w) / s.xy, length_slope, 0.0);
    }
    return vec4(dmiddle * a.zw / s.xy,
                code.z / s.z > PM_BOX_MOST_LOG ? 0.0 : dsize.x * size.x / s.z,
                code.w / s.w > PM_BOX_MOST_LOG ? 0.0 : dsize.y * size.y / s.w);
}

#endif
