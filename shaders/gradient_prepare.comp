#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "update.params.h"

/* One group per chunk: 64 lanes stride through it, then a tree adds in fixed order. */
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push {
    InOutF32 g;
    InF32 w;
    InU32 chunks;
    InU32 vars;
    OutF32 partials;
    gradient_prepare_params p;
};

shared vec2 sums[64];

void main()
{
    uint lane = gl_LocalInvocationID.x;

    uint c = gl_WorkGroupID.x;

    do {
        uint first = chunks.v[4u * c], count = chunks.v[4u * c + 1u];
        uint var = chunks.v[4u * c + 2u];
        bool absent = chunks.v[4u * c + 3u] != 0u;
        float wd = uintBitsToFloat(vars.v[4u * var + 2u]);
        float multiplier = uintBitsToFloat(vars.v[4u * var + 3u]);
        vec2 sum = vec2(0.0);

        for (uint i = lane; i < count; i += 64u) {
            float x = w.v[first + i], v = 0.0;

            if (multiplier != 0.0)
                v = ((absent ? 0.0 : g.v[first + i]) + wd * x) * multiplier;
            g.v[first + i] = v;
            sum += vec2(v * v, x * x);
        }
        sums[lane] = sum;
        barrier();
        for (uint half_ = 32u; half_ > 0u; half_ /= 2u) {
            if (lane < half_)
                sums[lane] += sums[lane + half_];
            barrier();
        }
        if (lane == 0u) {
            partials.v[2u * c] = sums[0].x;
            partials.v[2u * c + 1u] = wd != 0.0 ? 0.5 * wd * sums[0].y : 0.0;
        }
        barrier();
    } while (pm_next_row(c) < uint(p.chunks));
}
