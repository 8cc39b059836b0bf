#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "error.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint GROUPS = 1; /* groups of error_part */
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 target;
    InF32 weights;
    InOutF32 part;
    OutF32 loss;
    OutF32 factor;
    error_params p;
};

void main()
{
    float sum = 0.0, divisor = 0.0;

    for (uint i = gl_LocalInvocationID.x; i < GROUPS; i += 64) {
        sum += part.v[2 * i];
        divisor += part.v[2 * i + 1];
    }
    sum = group_sum(sum);
    divisor = group_sum(divisor);
    if (gl_LocalInvocationID.x == 0) {
        float f = p.undivided != 0 ? p.scale : divisor > 0.0 ? p.scale / divisor : 0.0;
        bool finite = !isnan(sum) && !isinf(sum);

        loss.v[0] = finite ? sum * f : uintBitsToFloat(0x7fc00000u);
        factor.v[0] = finite ? f : uintBitsToFloat(0x7fc00000u);
    }
}
