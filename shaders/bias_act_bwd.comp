/* bias_act_bwd: dz = f'(y) dy, written in y; the twin of bwd_cpu in src/layers/bias_act.c. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "bias_act.params.h"

layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 y; InOutF32 dy; InOutF32 dz;
                                             bias_act_params p; };

float slope_at(float at)
{
    switch (p.activation) {
    case ACT_RELU:
        return at > 0.0 ? 1.0 : 0.0;
    case ACT_RELU6:
        return at > 0.0 && at < 6.0 ? 1.0 : 0.0;
    case ACT_LEAKY_RELU:
        return at > 0.0 ? 1.0 : p.slope;
    case ACT_SIGMOID:
        return at * (1.0 - at);
    case ACT_TANH:
        return 1.0 - at * at;
    }
    return 1.0;
}

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride())
        dz.v[i] = slope_at(y.v[i]) * dy.v[i];
}
