#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "optimizer.params.h"

/* One group per variable: 64 lanes share its chunks, then a tree adds in fixed order. */
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push {
    InF32 partials;
    InU32 vars;
    InF32 decay;
    OutF32 ratio;
    optimizer_lamb_params p;
};

shared vec2 sums[64];

void main()
{
    uint lane = gl_LocalInvocationID.x;

    uint i = gl_WorkGroupID.x;

    do {
        uint first = vars.v[4u * i], count = vars.v[4u * i + 1u];
        vec2 sum = vec2(0.0);

        for (uint k = first + lane; k < first + count; k += 64u)
            sum += vec2(partials.v[2u * k], partials.v[2u * k + 1u]);
        sums[lane] = sum;
        barrier();
        for (uint half_ = 32u; half_ > 0u; half_ /= 2u) {
            if (lane < half_)
                sums[lane] += sums[lane + half_];
            barrier();
        }
        if (lane == 0u) {
            float kind = decay.v[2u * i + 1u];
            bool adapts = kind > 0.0 && sums[0].x > 0.0 && sums[0].y > 0.0;

            ratio.v[i] = kind < 0.0 ? 0.0 : adapts ? sqrt(sums[0].x / sums[0].y) : 1.0;
        }
        barrier();
    } while (pm_next_row(i) < uint(p.count));
}
