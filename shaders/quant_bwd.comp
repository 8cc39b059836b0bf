#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT x;
    InF32 grid;
    InOutT dy;
    InOutT dx;
    quant_params p;
};

void main()
{
    float low = grid.v[GRID_LOW], high = grid.v[GRID_HIGH];
    bool all = grid.v[GRID_ON] == 0.0 || grid.v[GRID_STEP] == 0.0;

    for (uint i = pm_first(); i < uint(p.count) / VEC; i += pm_stride()) {
        T inside = step(T(low), x.v[i]) * step(x.v[i], T(high));

        dx.v[i] = all ? dy.v[i] : dy.v[i] * inside;
    }
}
