#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer WideParams {
    batch_norm_valid_sums_params p;
};
#define WANT_DBETA pm_has(11)
#define WANT_DGAMMA pm_has(12)
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 y;
    InF32 dy;
    InF32 residual;
    InF32 mean;
    InF32 rstd;
    InF32 gamma;
    InF32 beta;
    InI32 count;
    InOutF32 part;
    OutF32 sums;
    InOutF32 dbeta;
    InOutF32 dgamma;
    WideParams at;
};
#define VALID at.p
#include "lib/valid_rows.glsl"
#include "lib/reduce.glsl"

void main()
{
    uint c = uint(at.p.c), lane = gl_LocalInvocationID.x, k = gl_WorkGroupID.x;
    uint chunks = uint(at.p.examples) * valid_chunks(uint(at.p.chunk));
    float inv_count = 1.0 / float(max(valid_total(uint(at.p.examples)), 1u));

    do {
        float sum = 0.0, product = 0.0;

        for (uint i = lane; i < chunks; i += gl_WorkGroupSize.x) {
            sum += part.v[i * 2 * c + k];
            product += part.v[(i * 2 + 1) * c + k];
        }
        sum = group_sum(sum);
        product = group_sum(product);
        if (lane == 0) {
            sums.v[k] = sum * inv_count;
            sums.v[c + k] = product * inv_count;
            if (WANT_DBETA)
                dbeta.v[k] = at.p.accumulate != 0 ? dbeta.v[k] + sum : sum;
            if (WANT_DGAMMA)
                dgamma.v[k] = at.p.accumulate != 0 ? dgamma.v[k] + product : product;
        }
    } while (pm_next_row(k) < c);
}
