#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "optimizer.params.h"

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push {
    InF32 g;
    InU32 owner;
    InF32 scale;
    InF32 result;
    InU32 flag;
    InStep step;
    InOutF32 w;
    InOutF32 m;
    InOutF32 v;
    InF32 decay;
    optimizer_adam_params p;
};

void main()
{
    float clip = result.v[2], lr = step.lr;
    float alpha = lr * sqrt(1.0 - step.beta2_power) / (1.0 - step.beta1_power);

    if (flag.v[0] == 0u)
        return;
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        uint of = owner.v[i / 64u];
        float x = g.v[i] * (scale.v[of] * clip), before = w.v[i];

        float mean = m.v[i] + (x - m.v[i]) * (1.0 - p.beta1);
        float square = v.v[i] + (x * x - v.v[i]) * (1.0 - p.beta2);

        m.v[i] = mean;
        v.v[i] = square;
        w.v[i] = before - (alpha * mean / (sqrt(square) + p.epsilon)
                           + lr * decay.v[2u * of] * before);
    }
}
