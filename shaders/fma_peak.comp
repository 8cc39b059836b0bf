#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "fma_peak.params.h"

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push { OutF32 y; fma_peak_params p; };

float chains(float start)
{
    float x[CHAINS], sum = 0.0;

    [[unroll]] for (int k = 0; k < CHAINS; k++)
        x[k] = start + float(k);
    for (int n = 0; n < p.iterations; n += 8)
        [[unroll]] for (int j = 0; j < 8; j++)
            [[unroll]] for (int k = 0; k < CHAINS; k++)
                x[k] = fma(x[k], p.a, p.b);
    [[unroll]] for (int k = 0; k < CHAINS; k++)
        sum += x[k];
    return sum;
}

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride())
        y.v[i] = chains(float(i % 16));
}
