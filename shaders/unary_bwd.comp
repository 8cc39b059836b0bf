#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/unary.glsl"
#include "unary.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int KIND = 0;
layout(push_constant, scalar) uniform Push { InT x; InOutT dy; InOutT dx; unary_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride())
        dx.v[i] = dy.v[i] * pm_unary_slope(KIND, p.a, p.b, x.v[i]);
}
