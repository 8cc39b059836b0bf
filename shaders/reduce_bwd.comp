#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "reduce.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int RANK = 6;
#include "lib/strided.glsl"
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 y;
    InF32 dy;
    InF32 ties;
    OutF32 dx;
    reduce_bwd_params p;
};

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        uint at = pm_at(i, p.d, p.s);

        dx.v[i] = x.v[i] == y.v[at] ? dy.v[at] / ties.v[at] : 0.0;
    }
}
