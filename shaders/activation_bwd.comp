#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/activation.glsl"
#include "activation.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int KIND = 0;
layout(push_constant, scalar) uniform Push { InT v; InOutT dy; InOutT dx; activation_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride())
        dx.v[i] = dy.v[i] * pm_act_slope(KIND, p.slope, v.v[i]);
}
