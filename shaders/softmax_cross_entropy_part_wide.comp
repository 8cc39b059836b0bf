#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "softmax_cross_entropy.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 losses;
    InI32 labels;
    InF32 weights;
    InOutF32 part; /* [groups] sums, [groups] counts */
    OutF32 loss;
    OutF32 factor;
    softmax_cross_entropy_params p;
};
#include "lib/cross_entropy.glsl"

/* Like softmax_cross_entropy_part, with a workgroup of 64 lanes instead of each lane. */
void main()
{
    float sum = 0.0, count = 0.0;

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        sum += losses.v[row];
        count += counts(row) ? 1.0 : 0.0;
    }
    sum = group_sum(sum);
    count = group_sum(count);
    if (gl_LocalInvocationID.x == 0) {
        part.v[gl_WorkGroupID.x] = sum;
        part.v[gl_NumWorkGroups.x + gl_WorkGroupID.x] = count;
    }
}
