#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "matting.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 prob;
    InF32 labels;
    InF32 used;
    InF32 factor;
    InStep step;
    OutF32 dz;
    matting_params p;
};

void main()
{
    float scale = factor.v[0] * step.loss_scale;

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        float w = used.v[row], g = w == 0.0 && scale == scale ? 0.0
                                 : (prob.v[row] - labels.v[row]) * (w * scale);

        dz.v[2 * row] = -g;
        dz.v[2 * row + 1] = g;
    }
}
