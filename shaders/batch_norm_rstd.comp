#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 var; OutF32 rstd; batch_norm_stats_params p; };

void main()
{
    for (uint k = pm_first(); k < uint(p.c); k += pm_stride())
        rstd.v[k] = 1.0 / sqrt(var.v[k] + p.epsilon);
}
