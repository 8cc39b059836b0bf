#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "decode_boxes.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 boxes;
    InF32 codes;
    OutF32 y;
    decode_box_rows_params p;
};
#include "lib/box_coder.glsl"

/* Limits a code. NaN stays NaN. */
float code_at(uint i)
{
    float v = codes.v[i];

    v = v < p.low ? p.low : v;
    return v > p.high ? p.high : v;
}

#ifdef ROTATED
void put(uint i)
{
    uint at = 5 * (i / uint(p.classes)), from = 5 * i;
    RotatedBox anchor = RotatedBox(vec4(boxes.v[at], boxes.v[at + 1], boxes.v[at + 2],
                                        boxes.v[at + 3]), boxes.v[at + 4]);
    RotatedBox code = RotatedBox(vec4(code_at(from), code_at(from + 1), code_at(from + 2),
                                      code_at(from + 3)), code_at(from + 4));
    RotatedBox box = box_decode_rotated(vec4(p.s0, p.s1, p.s2, p.s3), p.s4, code, anchor);

    for (uint k = 0; k < 4; k++)
        y.v[from + k] = box.v[k];
    y.v[from + 4] = box.angle;
}
#else
void put(uint i)
{
    uint at = 4 * (i / uint(p.classes)), size = p.kind == PM_CODER_SQUARE ? 3 : 4;
    vec4 code = vec4(0);

    for (uint k = 0; k < size; k++)
        code[k] = code_at(i * size + k);
    vec4 anchor = vec4(boxes.v[at], boxes.v[at + 1], boxes.v[at + 2], boxes.v[at + 3]);
    vec4 box = box_decode(p.kind, vec4(p.s0, p.s1, p.s2, p.s3), code, anchor);

    for (uint k = 0; k < 4; k++)
        y.v[4 * i + k] = box[k];
}
#endif

/* One box of y per lane. */
void main()
{
    for (uint i = pm_first(); i < uint(p.rows); i += pm_stride())
        put(i);
}
