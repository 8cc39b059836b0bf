/* bias_act_fwd: y = f(x + b). Twin of fwd_cpu in src/layers/bias_act.c. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "bias_act.params.h"

layout(local_size_x_id = 0) in;
#define HAS_BIAS pm_has(1)
layout(push_constant, scalar) uniform Push { InOutF32 x; InF32 b; InOutF32 y; bias_act_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float z = x.v[i];

        if (HAS_BIAS)
            z += b.v[i % uint(p.channels)];
        y.v[i] = pm_act(p.activation, p.slope, z);
    }
}
