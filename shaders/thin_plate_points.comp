#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "thin_plate.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 slope;
    InF32 matrix;
    OutF32 dpoints;
    thin_plate_params p;
};
#include "lib/reduce.glsl"

/* One workgroup of 64 lanes per control point. */
void main()
{
    uint lane = gl_LocalInvocationID.x, samples = uint(p.samples), count = uint(p.points);
    uint i = gl_WorkGroupID.x;

    do {
        uint first = i / count * samples, row = i % count * samples;
        float x = 0.0, y = 0.0;

        for (uint s = lane; s < samples; s += 64u) {
            x += matrix.v[row + s] * slope.v[2u * (first + s)];
            y += matrix.v[row + s] * slope.v[2u * (first + s) + 1u];
        }
        x = group_sum(x);
        y = group_sum(y);
        if (lane == 0u) {
            dpoints.v[2u * i] = x;
            dpoints.v[2u * i + 1u] = y;
        }
    } while (pm_next_row(i) < uint(p.n) * count);
}
