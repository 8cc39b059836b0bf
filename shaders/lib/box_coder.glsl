/* Twin of src/layers/box_coder.h: same formulas in the same order. scales are struct
 * pm_box_coder's. Boxes are vec4(ymin, xmin, ymax, xmax). */
#ifndef PM_BOX_CODER_GLSL
#define PM_BOX_CODER_GLSL

#include "box_coder.params.h"

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
