#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "thin_plate.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InI32 place;
    InF32 weight;
    OutF32 y;
    thin_plate_params p;
};
#include "lib/thin_plate.glsl"

void main()
{
    uint c = uint(p.c), w = uint(p.w), total = uint(p.n) * uint(p.samples) * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint s = i / c, picture = s / uint(p.samples);
        uvec2 pixel = uvec2(pixel_at(s));
        vec2 f = weights_at(s);
        uint at = ((picture * uint(p.h) + pixel.y) * w + pixel.x) * c + i % c;
        float top = (1.0 - f.x) * x.v[at] + f.x * x.v[at + c];
        float bottom = (1.0 - f.x) * x.v[at + w * c] + f.x * x.v[at + w * c + c];

        y.v[i] = (1.0 - f.y) * top + f.y * bottom;
    }
}
