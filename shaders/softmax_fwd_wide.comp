#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "softmax.params.h"
#include "lib/reduce.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int LOGARITHM = 0; /* log_softmax */
layout(push_constant, scalar) uniform Push { InOutF32 x; InOutF32 y; softmax_params p; };

/* One workgroup per row. A lane accesses only its own values, so y may equal x. */
void main()
{
    uint k = uint(p.k), lane = gl_LocalInvocationID.x;

    for (uint row = gl_WorkGroupID.x; row < uint(p.rows); row += gl_NumWorkGroups.x) {
        uint first = row * k;
        float largest = x.v[first + min(lane, k - 1)], sum = 0.0;

        for (uint i = lane; i < k; i += 64)
            largest = max(largest, x.v[first + i]);
        memoryBarrierBuffer(); /* lanes beyond k read another lane's value */
        largest = group_max(largest);
        for (uint i = lane; i < k; i += 64) {
            float e = exp(x.v[first + i] - largest);

            sum += e;
            if (LOGARITHM == 0)
                y.v[first + i] = e;
        }
        sum = group_sum(sum);
        float scale = 1.0 / sum, shift = largest + log(sum);
        for (uint i = lane; i < k; i += 64)
            if (LOGARITHM == 0)
                y.v[first + i] *= scale;
            else
                y.v[first + i] = x.v[first + i] - shift;
    }
}
