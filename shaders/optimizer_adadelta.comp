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
    InOutF32 a;
    InOutF32 u;
    optimizer_adadelta_params p;
};

void main()
{
    float clip = result.v[2], lr = step.lr;

    if (flag.v[0] == 0u)
        return;
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float x = g.v[i] * (scale.v[owner.v[i / 64u]] * clip);
        float square = p.rho * a.v[i] + (1.0 - p.rho) * x * x;
        float change = u.v[i];
        float d = sqrt(change + p.epsilon) / sqrt(square + p.epsilon) * x;

        a.v[i] = square;
        u.v[i] = p.rho * change + (1.0 - p.rho) * d * d;
        w.v[i] -= lr * d;
    }
}
