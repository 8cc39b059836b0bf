#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "ctc_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 logits; OutF32 lse; ctc_loss_params p; };

/* One step of an example per group. */
void main()
{
    uint row = gl_WorkGroupID.x, c = uint(p.c);

    do {
        float most = uintBitsToFloat(0xff800000u), sum = 0.0; /* -infinity */

        for (uint i = gl_LocalInvocationID.x; i < c; i += 64)
            most = max(most, logits.v[row * c + i]);
        most = group_max(most);
        for (uint i = gl_LocalInvocationID.x; i < c; i += 64)
            sum += exp(logits.v[row * c + i] - most);
        sum = group_sum(sum);
        if (gl_LocalInvocationID.x == 0)
            lse.v[row] = most + log(sum);
    } while (pm_next_row(row) < uint(p.n) * uint(p.t));
}
