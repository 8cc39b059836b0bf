#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "thin_plate.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 dy;
    InI32 place;
    InF32 weight;
    OutF32 dx;
    thin_plate_params p;
};
#include "lib/thin_plate.glsl"

void main()
{
    uint c = uint(p.c), w = uint(p.w), h = uint(p.h), samples = uint(p.samples);
    uint total = uint(p.n) * h * w * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint pixel = i / c, first = pixel / w / h * samples;
        ivec2 own = ivec2(pixel % w, pixel / w % h);
        float sum = 0.0;

        for (uint s = first; s < first + samples; s++) {
            ivec2 away = own - pixel_at(s);

            if (away.x == 0 || away.x == 1)
                if (away.y == 0 || away.y == 1) {
                    vec2 f = weights_at(s);

                    sum += (away.y == 0 ? 1.0 - f.y : f.y) * (away.x == 0 ? 1.0 - f.x : f.x) *
                           dy.v[s * c + i % c];
                }
        }
        dx.v[i] = sum;
    }
}
