#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 mean;
    InF32 var;
    InU32 flag;
    InOutF32 moving_mean;
    InOutF32 moving_variance;
    batch_norm_update_params p;
};

void main()
{
    if (flag.v[0] == 0)
        return;
    for (uint k = pm_first(); k < uint(p.c); k += pm_stride()) {
        moving_mean.v[k] -= p.rate * (moving_mean.v[k] - mean.v[k]);
        moving_variance.v[k] -= p.rate * (moving_variance.v[k] - var.v[k] * p.factor);
    }
}
