#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "norm.params.h"
#include "lib/reduce.glsl"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(1)
#define HAS_BETA pm_has(2)
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 gamma;
    InF32 beta;
    OutF32 y;
    OutF32 stats;
    norm_params p;
};
#include "lib/norm.glsl"

/* One workgroup of 64 lanes per row. */
void main()
{
    uint lane = gl_LocalInvocationID.x, length = uint(p.c / p.groups * p.pixels);

    for (uint r = gl_WorkGroupID.x; r < uint(p.n * p.groups); r += gl_NumWorkGroups.x) {
        float sum = 0.0, off = 0.0, squares = 0.0;

        for (uint j = lane; j < length; j += 64)
            sum += x.v[place_of(r, j)];
        float mean = group_sum(sum) / float(length);
        for (uint j = lane; j < length; j += 64) {
            float d = x.v[place_of(r, j)] - mean;
            off += d;
            squares += d * d;
        }
        float rest = group_sum(off) / float(length);
        float variance = max(group_sum(squares) / float(length) - rest * rest, 0.0);
        float rstd = 1.0 / sqrt(variance + p.epsilon);
        for (uint j = lane; j < length; j += 64) {
            uint at = place_of(r, j), c = channel_of(r, j);
            float value = (x.v[at] - mean - rest) * rstd;

            if (HAS_GAMMA)
                value *= gamma.v[c];
            if (HAS_BETA)
                value += beta.v[c];
            y.v[at] = value;
        }
        if (lane == 0) {
            stats.v[3 * r] = mean;
            stats.v[3 * r + 1] = rest;
            stats.v[3 * r + 2] = rstd;
        }
    }
}
