#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "batch_norm.params.h"
#include "moments.params.h"
layout(local_size_x_id = 0) in;
#define GIVEN pm_has(1) /* the moments are given, not in part */
layout(push_constant, scalar) uniform Push {
    InF32 x;
    uvec2 moments;
    uvec2 part;
    OutF32 mean;
    OutF32 rstd;
    OutF32 var;
    batch_norm_stats_params p;
};
#include "lib/reduce.glsl"

/* One workgroup per channel: M2 = sum of (M2_k + n_k (mean_k - mean)^2). */
void main()
{
    InF32 from = InF32(GIVEN ? moments : part);
    uint c = uint(p.c), length = GIVEN ? uint(MOMENT_ROWS) : uint(p.chunk), rows = uint(p.rows);
    uint chunks = (rows + length - 1) / length, lane = gl_LocalInvocationID.x;

    for (uint k = gl_WorkGroupID.x; k < c; k += gl_NumWorkGroups.x) {
        float sum = 0.0, m2 = 0.0;

        for (uint i = lane; i < chunks; i += gl_WorkGroupSize.x)
            sum += float(min(length, rows - i * length)) * from.v[i * 2 * c + k];
        float m = group_sum(sum) / float(rows);
        for (uint i = lane; i < chunks; i += gl_WorkGroupSize.x) {
            float d = from.v[i * 2 * c + k] - m;

            m2 += from.v[(i * 2 + 1) * c + k] + float(min(length, rows - i * length)) * d * d;
        }
        m2 = group_sum(m2) / float(rows);
        if (lane == 0) {
            mean.v[k] = m;
            var.v[k] = m2;
            rstd.v[k] = 1.0 / sqrt(m2 + p.epsilon);
        }
    }
}
