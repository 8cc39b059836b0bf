#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InOutF32 part;
    OutF32 range;
    quant_range_params p;
};
#include "lib/reduce.glsl"

void main()
{
    uint lane = gl_LocalInvocationID.x;
    float low = 0.0, high = 0.0;

    for (uint i = lane; i < uint(p.chunks); i += gl_WorkGroupSize.x) {
        low = min(low, part.v[2 * i]);
        high = max(high, part.v[2 * i + 1]);
    }
    low = -group_max(-low);
    high = group_max(high);
    if (lane == 0) {
        range.v[0] = p.below > 0.0 ? min(low, -(high * p.below)) : low;
        range.v[1] = p.below > 0.0 ? max(high, -(low * p.above)) : high;
    }
}
