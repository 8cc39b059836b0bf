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

/* One box of y per lane. */
void main()
{
    uint size = p.kind == PM_CODER_SQUARE ? 3 : 4;

    for (uint i = pm_first(); i < uint(p.rows); i += pm_stride()) {
        uint at = 4 * (i / uint(p.classes));
        vec4 code = vec4(0);

        for (uint k = 0; k < size; k++) {
            float v = codes.v[i * size + k];

            v = v < p.low ? p.low : v; /* NaN stays NaN */
            code[k] = v > p.high ? p.high : v;
        }
        vec4 anchor = vec4(boxes.v[at], boxes.v[at + 1], boxes.v[at + 2], boxes.v[at + 3]);
        vec4 box = box_decode(p.kind, vec4(p.s0, p.s1, p.s2, p.s3), code, anchor);

        for (uint k = 0; k < 4; k++)
            y.v[4 * i + k] = box[k];
    }
}
