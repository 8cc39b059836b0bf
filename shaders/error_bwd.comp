#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/step.glsl"
#include "error.params.h"
layout(local_size_x_id = 0) in;
#define HAS_WEIGHTS pm_has(2)
layout(push_constant, scalar) uniform Push {
    InOutF32 x;
    InF32 target;
    InF32 weights;
    InF32 factor;
    InStep step;
    InOutF32 dx;
    error_params p;
};

void main()
{
    float scale = factor.v[0] * step.loss_scale;

    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float w = HAS_WEIGHTS ? weights.v[i / uint(p.per)] : 1.0, d = x.v[i] - target.v[i];

        dx.v[i] = w * scale * (p.absolute != 0 ? sign(d) : 2.0 * d);
    }
}
