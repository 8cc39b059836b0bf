#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
#define WANT_DBETA pm_has(10)
#define WANT_DGAMMA pm_has(11)
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 y;
    InF32 dy;
    InF32 residual;
    InF32 mean;
    InF32 rstd;
    InF32 gamma;
    InF32 beta;
    InOutF32 part;
    OutF32 sums;
    InOutF32 dbeta;
    InOutF32 dgamma;
    uvec2 done;
    batch_norm_sums_params p;
};
#include "lib/reduce.glsl"

void main()
{
    uint c = uint(p.c), lane = gl_LocalInvocationID.x;

    uint k = gl_WorkGroupID.x;

    do {
        float sum = 0.0, product = 0.0;

        for (uint i = lane; i < uint(p.chunks); i += gl_WorkGroupSize.x) {
            sum += part.v[i * 2 * c + k];
            product += part.v[(i * 2 + 1) * c + k];
        }
        sum = group_sum(sum);
        product = group_sum(product);
        if (lane == 0) {
            sums.v[k] = sum;
            sums.v[c + k] = product;
            if (WANT_DBETA)
                dbeta.v[k] = p.accumulate != 0 ? dbeta.v[k] + sum : sum;
            if (WANT_DGAMMA)
                dgamma.v[k] = p.accumulate != 0 ? dgamma.v[k] + product : product;
        }
    } while (pm_next_row(k) < c);
}
