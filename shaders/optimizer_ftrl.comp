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
    InOutF32 n;
    InOutF32 z;
    optimizer_ftrl_params p;
};

float root(float x)
{
    return p.power == -0.5 ? sqrt(x) : pow(x, -p.power);
}

void main()
{
    float clip = result.v[2], lr = step.lr;

    if (flag.v[0] == 0u || lr == 0.0)
        return;
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float x = g.v[i] * (scale.v[owner.v[i / 64u]] * clip);
        float sum = n.v[i] + x * x;
        float now = root(sum) / lr, before = root(n.v[i]) / lr;
        float state = z.v[i] + x - (now - before) * w.v[i];
        float bound = state < 0.0 ? -p.l1 : p.l1;

        z.v[i] = state;
        n.v[i] = sum;
        w.v[i] = abs(state) <= p.l1 ? 0.0 : (bound - state) / (now + 2.0 * p.l2);
    }
}
