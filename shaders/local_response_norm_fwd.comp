#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/power.glsl"
#include "local_response_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    OutF32 s;
    OutF32 y;
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
            sum += x.v[row + j] * x.v[row + j];
        sum = p.bias + p.alpha * sum;
        s.v[i] = sum;
        y.v[i] = x.v[i] * pm_power(sum, p.beta);
    }
}
