#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "global_pool.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InT dy; OutT dx; global_pool_params p; };

void main()
{
    uint c = uint(p.c / VEC), pixels = uint(p.pixels), count = uint(p.n) * pixels * c;
    float scale = 1.0 / float(p.pixels);

    for (uint i = pm_first(); i < count; i += pm_stride())
        dx.v[i] = dy.v[i / (pixels * c) * c + i % c] * scale;
}
