/* bias_act_fwd: y = f(x + b); the twin of fwd_cpu in src/layers/bias_act.c. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "bias_act.params.h"

layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InOutF32 x; InF32 b; InOutF32 y; bias_act_params p; };

float activate(float z)
{
    switch (p.activation) {
    case ACT_RELU:
        return max(z, 0.0);
    case ACT_RELU6:
        return clamp(z, 0.0, 6.0);
    case ACT_LEAKY_RELU:
        return z > 0.0 ? z : p.slope * z;
    case ACT_SIGMOID:
        return 1.0 / (1.0 + exp(-z));
    case ACT_TANH:
        return 1.0 - 2.0 / (exp(2.0 * min(z, 40.0)) + 1.0);
    }
    return z;
}

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float z = x.v[i];

        if (p.bias != 0)
            z += b.v[i % uint(p.channels)];
        y.v[i] = activate(z);
    }
}
