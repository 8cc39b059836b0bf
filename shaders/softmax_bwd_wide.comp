#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "softmax.params.h"
#include "lib/reduce.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int LOGARITHM = 0; /* log_softmax */
layout(push_constant, scalar) uniform Push { InF32 y; InOutF32 dy; InOutF32 dx; softmax_params p; };

void main()
{
    uint k = uint(p.k), lane = gl_LocalInvocationID.x;

    for (uint row = gl_WorkGroupID.x; row < uint(p.rows); row += gl_NumWorkGroups.x) {
        uint first = row * k;
        float dot = 0.0;

        for (uint i = lane; i < k; i += 64)
            dot += dy.v[first + i] * (LOGARITHM == 0 ? y.v[first + i] : 1.0);
        dot = group_sum(dot);
        for (uint i = lane; i < k; i += 64)
            dx.v[first + i] = LOGARITHM == 0 ? y.v[first + i] * (dy.v[first + i] - dot)
                                            : dy.v[first + i] - exp(y.v[first + i]) * dot;
    }
}
