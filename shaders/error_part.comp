#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/reduce.glsl"
#include "error.params.h"
layout(local_size_x_id = 0) in;
#define HAS_WEIGHTS pm_has(2)
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 target;
    InF32 weights;
    InOutF32 part; /* a sum and a divisor per group */
    OutF32 loss;
    OutF32 factor;
    error_params p;
};

void main()
{
    float sum = 0.0, divisor = 0.0;

    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float w = HAS_WEIGHTS ? weights.v[i / uint(p.per)] : 1.0, d = x.v[i] - target.v[i];
        float term = w * (p.absolute != 0 ? abs(d) : d * d);

        sum += term;
        divisor += p.nonzero == 0 ? w : term != 0.0 ? 1.0 : 0.0;
    }
    sum = group_sum(sum);
    divisor = group_sum(divisor);
    if (gl_LocalInvocationID.x == 0) {
        part.v[2 * gl_WorkGroupID.x] = sum;
        part.v[2 * gl_WorkGroupID.x + 1] = divisor;
    }
}
