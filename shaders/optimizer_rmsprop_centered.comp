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
    InOutF32 ms;
    InOutF32 mg;
    InOutF32 mom;
    optimizer_rmsprop_params p;
};

void main()
{
    float clip = result.v[2], lr = step.lr;

    if (flag.v[0] == 0u)
        return;
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float x = g.v[i] * (scale.v[owner.v[i / 64u]] * clip);

        float square = ms.v[i] + (x * x - ms.v[i]) * (1.0 - p.decay);
        float mean = mg.v[i] + (x - mg.v[i]) * (1.0 - p.decay);
        float sum = p.momentum * mom.v[i] + lr * x / sqrt(square - mean * mean + p.epsilon);

        ms.v[i] = square;
        mg.v[i] = mean;
        mom.v[i] = sum;
        w.v[i] -= sum;
    }
}
