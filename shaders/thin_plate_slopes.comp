#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "thin_plate.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 dy;
    InI32 place;
    InF32 weight;
    OutF32 slope;
    thin_plate_params p;
};
#include "lib/thin_plate.glsl"

void main()
{
    uint c = uint(p.c), w = uint(p.w), total = uint(p.n) * uint(p.samples);

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint picture = i / uint(p.samples);
        uvec2 pixel = uvec2(pixel_at(i));
        vec2 f = weights_at(i);
        uint first = ((picture * uint(p.h) + pixel.y) * w + pixel.x) * c;
        float across = 0.0, down = 0.0;

        for (uint k = 0u; k < c; k++) {
            uint at = first + k;
            float a = x.v[at], b = x.v[at + c], d = x.v[at + w * c], e = x.v[at + w * c + c];
            float g = dy.v[i * c + k];

            across += g * ((1.0 - f.y) * (b - a) + f.y * (e - d));
            down += g * ((1.0 - f.x) * (d - a) + f.x * (e - b));
        }
        slope.v[2u * i] = place.v[2u * i] < 0 ? 0.0 : across * float(p.w);
        slope.v[2u * i + 1u] = place.v[2u * i + 1u] < 0 ? 0.0 : down * float(p.h);
    }
}
