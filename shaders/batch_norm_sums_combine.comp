#version 450
#extension GL_GOOGLE_include_directive : require
/* batch_norm_valid_sums_combine is built from this file with VALID_ROWS: then only some rows count,
 * and the sums are divided by their number. */
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
#ifdef VALID_ROWS
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer WideParams {
    batch_norm_valid_sums_params p;
};
#define VALID at.p
#define P at.p
#define FIRST_GRADIENT 11
#else
#define P p
#define FIRST_GRADIENT 10
#endif
#define WANT_DBETA pm_has(FIRST_GRADIENT)
#define WANT_DGAMMA pm_has(FIRST_GRADIENT + 1)
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 y;
    InF32 dy;
    InF32 residual;
    InF32 mean;
    InF32 rstd;
    InF32 gamma;
    InF32 beta;
#ifdef VALID_ROWS
    InI32 count;
#endif
    InOutF32 part;
    OutF32 sums;
    InOutF32 dbeta;
    InOutF32 dgamma;
#ifdef VALID_ROWS
    WideParams at;
#else
    uvec2 done;
    batch_norm_sums_params p;
#endif
};
#ifdef VALID_ROWS
#include "lib/valid_rows.glsl"
#define CHUNKS chunks
#define SCALED(sum) ((sum) * inv_count)
#else
#define CHUNKS uint(p.chunks)
#define SCALED(sum) (sum)
#endif
#include "lib/reduce.glsl"

void main()
{
    uint c = uint(P.c), lane = gl_LocalInvocationID.x;

    uint k = gl_WorkGroupID.x;
#ifdef VALID_ROWS
    uint chunks = uint(at.p.examples) * valid_chunks(uint(at.p.chunk));
    float inv_count = 1.0 / float(max(valid_total(uint(at.p.examples)), 1u));
#endif

    do {
        float sum = 0.0, product = 0.0;

        for (uint i = lane; i < CHUNKS; i += gl_WorkGroupSize.x) {
            sum += part.v[i * 2 * c + k];
            product += part.v[(i * 2 + 1) * c + k];
        }
        sum = group_sum(sum);
        product = group_sum(product);
        if (lane == 0) {
            sums.v[k] = SCALED(sum);
            sums.v[c + k] = SCALED(product);
            if (WANT_DBETA)
                dbeta.v[k] = P.accumulate != 0 ? dbeta.v[k] + sum : sum;
            if (WANT_DGAMMA)
                dgamma.v[k] = P.accumulate != 0 ? dgamma.v[k] + product : product;
        }
    } while (pm_next_row(k) < c);
}
