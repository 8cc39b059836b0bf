/* The last dispatch of a forward pass or data gradient that hands over the moments of its image,
 * for variants that cannot compute them while they write it: lib/moments.glsl. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "conv2d.params.h"
#include "moments.params.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const bool BACK = false;
layout(push_constant, scalar) uniform Push { uvec2 a; uvec2 w; uvec2 t; InT x; OutT part;
                                             conv2d_params p; };
#include "lib/moments.glsl"

void main()
{
    int rows = BACK ? p.n * p.h * p.w : p.n * p.oh * p.ow;

    chunk_moments(uint(rows), uint((BACK ? p.c : p.k) / VEC), uint(MOMENT_ROWS));
}
