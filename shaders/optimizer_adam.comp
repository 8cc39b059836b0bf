#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "optimizer.params.h"

/* NADAM: the step looks ahead along the mean (src/optim/optimizer_nadam.c). */
#ifdef NADAM
#define DIRECTION(mean, x) (p.beta1 * (mean) + (1.0 - p.beta1) * (x))
#else
#define DIRECTION(mean, x) (mean)
#endif
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
    optimizer_adam_params p;
};

void main()
{
    float clip = result.v[2], lr = step.lr;
    float alpha = lr * sqrt(1.0 - step.beta2_power) / (1.0 - step.beta1_power);

    if (flag.v[0] == 0u)
        return;
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float x = g.v[i] * (scale.v[owner.v[i / 64u]] * clip);

        float mean = m.v[i] + (x - m.v[i]) * (1.0 - p.beta1);
        float square = v.v[i] + (x * x - v.v[i]) * (1.0 - p.beta2);

        m.v[i] = mean;
        v.v[i] = square;
        w.v[i] -= alpha * DIRECTION(mean, x) / (sqrt(square) + p.epsilon);
    }
}
