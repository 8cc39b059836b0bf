#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "decode_boxes.params.h"
layout(local_size_x_id = 0) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer WideParams {
    decode_boxes_params p;
};
layout(push_constant, scalar) uniform Push {
    InF32 anchors;
    InF32 x1;
    InF32 x2;
    InF32 x3;
    InF32 x4;
    InF32 x5;
    InF32 x6;
    InF32 x7;
    OutF32 y;
    WideParams at;
};
#define LEVELS at.p
#include "lib/box_coder.glsl"
#include "lib/levels.glsl"

float code_at(uint level, uint i)
{
    if (pm_has(7) && level == 7)
        return x7.v[i];
    if (pm_has(6) && level == 6)
        return x6.v[i];
    if (pm_has(5) && level == 5)
        return x5.v[i];
    if (pm_has(4) && level == 4)
        return x4.v[i];
    if (pm_has(3) && level == 3)
        return x3.v[i];
    if (pm_has(2) && level == 2)
        return x2.v[i];
    return x1.v[i];
}

/* Limits a code. NaN stays NaN. */
float limited_code(uint level, uint i)
{
    float v = code_at(level, i);

    v = v < at.p.low ? at.p.low : v;
    return v > at.p.high ? at.p.high : v;
}

#ifdef ROTATED
void put(uint row, vec4 scales)
{
    LevelRow from = level_row(row);
    uint a = 5 * from.anchor, i = 5 * from.at;
    RotatedBox anchor = RotatedBox(vec4(anchors.v[a], anchors.v[a + 1], anchors.v[a + 2],
                                        anchors.v[a + 3]), anchors.v[a + 4]);
    vec4 code;

    for (uint k = 0; k < 4; k++)
        code[k] = limited_code(from.level, i + k);
    RotatedBox box = box_decode_rotated(scales, at.p.s4,
                                        RotatedBox(code, limited_code(from.level, i + 4)), anchor);

    for (uint k = 0; k < 4; k++)
        y.v[5 * row + k] = box.v[k];
    y.v[5 * row + 4] = box.angle;
}
#else
void put(uint row, vec4 scales)
{
    uint size = at.p.kind == PM_CODER_SQUARE ? 3 : 4;
    LevelRow from = level_row(row);
    vec4 code = vec4(0), anchor, box;

    for (uint i = 0; i < 4; i++) {
        anchor[i] = anchors.v[4 * from.anchor + i];
        if (i < size)
            code[i] = limited_code(from.level, from.at * size + i);
    }
    box = box_decode(at.p.kind, scales, code, anchor);
    for (uint i = 0; i < 4; i++)
        y.v[4 * row + i] = box[i];
}
#endif

void main()
{
    vec4 scales = vec4(at.p.s0, at.p.s1, at.p.s2, at.p.s3);

    for (uint row = pm_first(); row < uint(at.p.rows); row += pm_stride())
        put(row, scales);
}
