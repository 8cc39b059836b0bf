#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "region_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 losses;
    InF32 used;
    OutF32 loss;
    OutF32 factors;
    region_loss_sum_params p;
};

float factor_of(float weights)
{
    return p.scale / max(weights * p.pixels, 1.0);
}

/* The sums of an example's losses and weights. */
vec2 image_sums(uint image)
{
    vec2 own = vec2(0.0);

    for (uint i = gl_LocalInvocationID.x; i < uint(p.per); i += 64)
        own += vec2(losses.v[image * uint(p.per) + i], used.v[image * uint(p.per) + i]);
    return vec2(group_sum(own.x), group_sum(own.y));
}

/* Run by one group. Every lane has the same sums. */
void main()
{
    vec2 all = vec2(0.0);
    float total = 0.0;

    for (uint i = 0; i < uint(p.images); i++) {
        vec2 own = image_sums(i);

        all += own;
        total += own.x * factor_of(own.y);
    }
    if (p.together != 0)
        total = all.x * factor_of(all.y);
    float bad = isnan(total) || isinf(total) ? uintBitsToFloat(0x7fc00000u) : 0.0;

    for (uint i = 0; i < uint(p.images); i++) {
        vec2 own = p.together != 0 ? all : image_sums(i);

        if (gl_LocalInvocationID.x == 0)
            factors.v[i] = factor_of(own.y) + bad;
    }
    if (gl_LocalInvocationID.x == 0)
        loss.v[0] = total + bad;
}
