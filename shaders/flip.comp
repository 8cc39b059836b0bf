#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "flip.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InT x; OutT y; flip_params p; };

void main()
{
    uint c = uint(p.c / VEC), size = uint(p.size), count = uint(p.blocks) * size * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint at = i / c % size;

        y.v[i] = x.v[i + (size - 1 - at) * c - at * c];
    }
}
