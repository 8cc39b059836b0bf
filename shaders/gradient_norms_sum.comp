#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "update.params.h"

/* One group: 64 lanes share the variables, then a tree adds in fixed order. */
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
#include "lib/gradient_norms.glsl"

void main()
{
    float total = 0.0, l2 = 0.0;

    for (uint v = gl_LocalInvocationID.x; v < uint(p.vars); v += 64u) {
        total += sums.v[2u * v];
        l2 += sums.v[2u * v + 1u];
    }
    total = group_sum(total);
    l2 = group_sum(l2);
    if (gl_LocalInvocationID.x == 0u) {
        float norm = sqrt(total);

        result.v[0] = norm;
        result.v[1] = l2;
        result.v[2] = clip_factor(norm, p.clip_global);
        flag.v[0] = total <= 3.4e38 ? 1u : 0u;
    }
}
