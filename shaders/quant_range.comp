#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InOutF32 part; /* [chunk][2] */
    OutF32 range;
    quant_range_params p;
};
#include "lib/reduce.glsl"

/* One workgroup per chunk. */
void main()
{
    uint length = (uint(p.count) + uint(p.chunks) - 1u) / uint(p.chunks),
         lane = gl_LocalInvocationID.x;

    for (uint chunk = gl_WorkGroupID.x; chunk < uint(p.chunks); chunk += gl_NumWorkGroups.x) {
        uint last = min((chunk + 1) * length, uint(p.count));
        float low = 0.0, high = 0.0;

        for (uint i = chunk * length + lane; i < last; i += gl_WorkGroupSize.x) {
            low = min(low, x.v[i]);
            high = max(high, x.v[i]);
        }
        low = -group_max(-low);
        high = group_max(high);
        if (lane == 0) {
            part.v[2 * chunk] = low;
            part.v[2 * chunk + 1] = high;
        }
    }
}
