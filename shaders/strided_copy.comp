#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "strided.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int RANK = 6;
#include "lib/strided.glsl"
layout(push_constant, scalar) uniform Push { InT x; OutT y; strided_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride())
        y.v[i] = p.scale * x.v[pm_at(i, p.d, p.s)];
}
