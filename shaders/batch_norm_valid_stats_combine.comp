#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InI32 count;
    InOutF32 part;
    OutF32 mean;
    OutF32 rstd;
    OutF32 var;
    batch_norm_valid_stats_params p;
};
#define VALID p
#include "lib/valid_rows.glsl"
#include "lib/reduce.glsl"

float rows_of(uint chunk)
{
    uvec2 rows = valid_chunk(chunk, uint(p.chunk));

    return float(rows.y - rows.x);
}

/* One workgroup per channel: M2 = sum of (M2_k + n_k (mean_k - mean)^2). */
void main()
{
    uint c = uint(p.c), lane = gl_LocalInvocationID.x;
    uint chunks = uint(p.examples) * valid_chunks(uint(p.chunk));
    uint total = valid_total(uint(p.examples));
    float rows = float(max(total, 1u));
    float divisor = p.unbiased != 0 && total > 1u ? float(total - 1u) : rows;

    for (uint k = gl_WorkGroupID.x; k < c; k += gl_NumWorkGroups.x) {
        float sum = 0.0, m2 = 0.0;

        for (uint i = lane; i < chunks; i += gl_WorkGroupSize.x)
            sum += rows_of(i) * part.v[i * 2 * c + k];
        float m = group_sum(sum) / rows;
        for (uint i = lane; i < chunks; i += gl_WorkGroupSize.x) {
            float d = part.v[i * 2 * c + k] - m;

            m2 += part.v[(i * 2 + 1) * c + k] + rows_of(i) * d * d;
        }
        m2 = group_sum(m2);
        if (lane == 0) {
            mean.v[k] = m;
            var.v[k] = total > 0u ? m2 / divisor : -1.0;
            rstd.v[k] = 1.0 / sqrt(m2 / rows + p.epsilon);
        }
    }
}
