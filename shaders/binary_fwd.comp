#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/binary.glsl"
#include "binary.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int KIND = 0;
layout(constant_id = 4) const int RANK = 6;
#include "lib/strided.glsl"
layout(push_constant, scalar) uniform Push { InT a; InT b; OutT y; binary_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride())
        y.v[i] = apply(KIND, a.v[pm_at(i, p.d, p.a)], b.v[pm_at(i, p.d, p.b)]);
}
