#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/keypoint_codes.glsl"
#include "keypoint_codes.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 codes;
    InF32 anchors;
    InI32 chosen;
    InI32 count;
    OutF32 y;
    decode_keypoints_params p;
};

/* One coordinate per lane. */
void main()
{
    uint number = 2 * uint(p.points), total = uint(p.rows) * number;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint row = i / number, image = row / uint(p.per), axis = i % 2;
        int of = chosen.v[row];
        bool valid = int(row % uint(p.per)) < count.v[image] && of >= 0 && of < p.anchors;
        uint at = uint(clamp(of, 0, p.anchors - 1));
        vec4 anchor = vec4(anchors.v[4 * at], anchors.v[4 * at + 1], anchors.v[4 * at + 2],
                           anchors.v[4 * at + 3]);
        float code = codes.v[(image * uint(p.anchors) + at) * number + i % number];

        y.v[i] = valid ? keypoint_decode(code, anchor, axis, axis == 0 ? p.sy : p.sx) : 0.0;
    }
}
