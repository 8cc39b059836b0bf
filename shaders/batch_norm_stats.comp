#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT x;
    InT moments;
    InOutT part; /* [chunk][2][c]: mean, sum of squared distances from it */
    OutF32 mean;
    OutF32 rstd;
    OutF32 var;
    batch_norm_stats_params p;
};
#include "lib/moments.glsl"

void main()
{
    if (pm_has(0)) /* else the moments are given, and this is not dispatched */
        chunk_moments(uint(p.rows), uint(p.c / VEC), uint(p.chunk));
}
