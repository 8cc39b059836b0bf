#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InOutT x;
    InF32 grid;
    InOutT y;
    quant_params p;
};

/* precise: a fused product could round a number between two steps the other way. */
void main()
{
    float low = grid.v[GRID_LOW], high = grid.v[GRID_HIGH], width = grid.v[GRID_STEP];
    float inverse = grid.v[GRID_INVERSE], zero = grid.v[GRID_ZERO];
    bool on = grid.v[GRID_ON] != 0.0;

    if (p.steps != 0)
        width = 1.0;
    for (uint i = pm_first(); i < uint(p.count) / VEC; i += pm_stride()) {
        precise T inside = clamp(x.v[i], T(low), T(high));
        precise T from = p.even != 0 ? inside : inside - T(low);
        precise T steps = from * T(inverse);
        precise T shifted = steps - T(zero);
        precise T half_up = shifted + T(0.5);
        precise T result = (p.even != 0 ? roundEven(steps) : floor(half_up)) * T(width);

        /* NaN stays NaN; clamp may return either end for it. */
        y.v[i] = on ? mix(result, x.v[i], isnan(x.v[i])) : x.v[i];
    }
}
