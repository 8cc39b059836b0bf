#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "to_float.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InI32 x; OutF32 y; to_float_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride())
        y.v[i] = float(x.v[i]) + p.add;
}
