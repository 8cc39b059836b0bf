#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "update.params.h"

/* One group per variable: 64 lanes share its chunks, then a tree adds in fixed order. */
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
#include "lib/gradient_norms.glsl"

void main()
{
    uint lane = gl_LocalInvocationID.x;

    uint v = gl_WorkGroupID.x;

    do {
        uint first = vars.v[4u * v], count = vars.v[4u * v + 1u];
        float square = 0.0, l2 = 0.0;

        for (uint k = first + lane; k < first + count; k += 64u) {
            square += partials.v[2u * k];
            l2 += partials.v[2u * k + 1u];
        }
        square = group_sum(square);
        l2 = group_sum(l2);
        if (lane == 0u) {
            float norm = sqrt(square), factor = clip_factor(norm, p.clip_variable);

            norms.v[v] = norm;
            scale.v[v] = factor;
            sums.v[2u * v] = square * factor * factor;
            sums.v[2u * v + 1u] = l2;
        }
    } while (pm_next_row(v) < uint(p.vars));
}
