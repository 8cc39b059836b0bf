#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "add2.params.h"

/* InOut, because y may use a's memory. */
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push { InOutT a; InOutT b; InOutT y; add2_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride())
        y.v[i] = a.v[i] + b.v[i];
}
