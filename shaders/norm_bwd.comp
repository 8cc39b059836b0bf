#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "norm.params.h"
#include "lib/reduce.glsl"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(2)
#define WANT_DX pm_has(4)
#define WANT_TERMS pm_has(5) /* whose sum is gamma's gradient */
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 stats;
    InF32 gamma;
    InF32 dy;
    OutF32 dx;
    OutF32 terms;
    norm_params p;
};
#include "lib/norm.glsl"

void main()
{
    uint lane = gl_LocalInvocationID.x, length = uint(p.c / p.groups * p.pixels);

    uint r = gl_WorkGroupID.x;

    do {
        float mean = stats.v[3 * r], rest = stats.v[3 * r + 1], rstd = stats.v[3 * r + 2];
        float sum = 0.0, dot = 0.0;

        for (uint j = lane; j < length; j += 64) {
            uint at = place_of(r, j);
            float g = dy.v[at] * (HAS_GAMMA ? gamma.v[channel_of(r, j)] : 1.0);

            sum += g;
            dot += g * ((x.v[at] - mean - rest) * rstd);
        }
        sum = group_sum(sum) / float(length);
        dot = group_sum(dot) / float(length);
        for (uint j = lane; j < length; j += 64) {
            uint at = place_of(r, j);
            float g = dy.v[at] * (HAS_GAMMA ? gamma.v[channel_of(r, j)] : 1.0);
            float hat = (x.v[at] - mean - rest) * rstd;

            if (WANT_DX)
                dx.v[at] = rstd * (g - sum - hat * dot);
            if (WANT_TERMS)
                terms.v[at] = dy.v[at] * hat;
        }
    } while (pm_next_row(r) < uint(p.n * p.groups));
}
