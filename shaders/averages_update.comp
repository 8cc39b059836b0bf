#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "averages.params.h"

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push {
    InU32 flag;
    InStep step;
    InF32x4 w;
    InOutF32x4 average;
    averages_update_params p;
};

void main()
{
    float rate = 1.0 - step.ema_decay;

    if (flag.v[0] == 0u)
        return;
    for (uint i = pm_first(); i < uint(p.count) / 4u; i += pm_stride()) {
        vec4 a = average.v[i];

        average.v[i] = p.copy != 0 ? w.v[i] : a - rate * (a - w.v[i]);
    }
}
