#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/power.glsl"
#include "local_response_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 s;
    InF32 y;
    InF32 dy;
    OutF32 dx;
    local_response_norm_params p;
};

void main()
{
    uint c = uint(p.c), radius = uint(p.radius);

    for (uint i = pm_first(); i < uint(p.rows) * c; i += pm_stride()) {
        uint k = i % c, row = i - k;
        uint last = min(k + radius, c - 1);
        float sum = 0.0;

        for (uint j = k > radius ? k - radius : 0; j <= last; j++)
            sum += dy.v[row + j] * y.v[row + j] / s.v[row + j];
        dx.v[i] = dy.v[i] * pm_power(s.v[i], p.beta) - 2.0 * p.alpha * p.beta * x.v[i] * sum;
    }
}
