#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "multiply.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InOutT a; InT b; InOutT y; multiply_params p; };

void main()
{
    uint c = uint(p.c / VEC), image = uint(p.pixels) * c;

    for (uint i = pm_first(); i < uint(p.n) * image; i += pm_stride())
        y.v[i] = a.v[i] * b.v[p.broadcast != 0 ? i / image * c + i % c : i];
}
