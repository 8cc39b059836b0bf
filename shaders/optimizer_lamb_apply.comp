#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/lamb.glsl"
#include "lib/step.glsl"
#include "optimizer.params.h"

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push {
    InU32 owner;
    InU32 flag;
    InStep step;
    InF32 ratio;
    InF32 decay;
    InF32 m;
    InF32 v;
    InOutF32 w;
    optimizer_lamb_params p;
};

void main()
{
    float lr = step.lr;
    float mean_factor = 1.0 / (1.0 - step.beta1_power);
    float square_factor = 1.0 / (1.0 - step.beta2_power);

    if (flag.v[0] == 0u)
        return;
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        uint of = owner.v[i / 64u];

        w.v[i] -= lr * ratio.v[of] *
                  pm_lamb_direction(mean_factor, square_factor, p.epsilon, decay.v[2u * of], m.v[i],
                                    v.v[i], w.v[i]);
    }
}
