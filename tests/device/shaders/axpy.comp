#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
struct axpy_params { int count; float a; };
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 x; InOutF32 y; axpy_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride())
        y.v[i] += p.a * x.v[i];
}
