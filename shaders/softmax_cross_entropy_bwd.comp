#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "softmax_cross_entropy.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InOutF32 prob;
    InI32 labels;
    InF32 weights;
    InF32 factor;
    InStep step;
    InOutF32 dz;
    softmax_cross_entropy_params p;
};
#include "lib/cross_entropy.glsl"

void main()
{
    uint k = uint(p.k);
    float even = p.smoothing / float(k), scale = factor.v[0] * step.loss_scale;

    for (uint i = pm_first(); i < uint(p.rows) * k; i += pm_stride()) {
        uint row = i / k;
        float target = labels.v[row] == int(i % k) ? 1.0 - p.smoothing : 0.0;

        dz.v[i] = (prob.v[i] - even - target) * (weight_of(row) * scale);
    }
}
