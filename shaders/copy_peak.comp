#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "copy_peak.params.h"

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push { InU32x4 x; OutU32x4 y; copy_peak_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride())
        y.v[i] = x.v[i];
}
