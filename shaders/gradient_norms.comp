#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "update.params.h"

/* One group processes the variables in order. Its lanes share each variable's chunks. */
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push {
    InF32 partials;
    InU32 vars;
    OutF32 norms;
    OutF32 scale;
    OutF32 result;
    OutU32 flag;
    gradient_norms_params p;
};

shared vec2 sums[256];

float clip_factor(float norm, float clip)
{
    return clip > 0.0 && norm > clip ? clip / norm : 1.0;
}

void main()
{
    uint lane = gl_LocalInvocationID.x;
    float total = 0.0, l2 = 0.0;

    for (int v = 0; v < p.vars; v++) {
        uint first = vars.v[4 * v], count = vars.v[4 * v + 1];
        vec2 sum = vec2(0.0);

        for (uint k = lane; k < count; k += 256u)
            sum += vec2(partials.v[2u * (first + k)], partials.v[2u * (first + k) + 1u]);
        sums[lane] = sum;
        barrier();
        for (uint half_ = 128u; half_ > 0u; half_ /= 2u) {
            if (lane < half_)
                sums[lane] += sums[lane + half_];
            barrier();
        }
        if (lane == 0u) {
            float norm = sqrt(sums[0].x), factor = clip_factor(norm, p.clip_variable);

            norms.v[v] = norm;
            scale.v[v] = factor;
            total += sums[0].x * factor * factor;
            l2 += sums[0].y;
        }
        barrier();
    }
    if (lane == 0u) {
        float norm = sqrt(total);

        result.v[0] = norm;
        result.v[1] = l2;
        result.v[2] = clip_factor(norm, p.clip_global);
        flag.v[0] = total <= 3.4e38 ? 1u : 0u;
    }
}
