#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/step.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
#define HAS_HIGH pm_has(1)
layout(push_constant, scalar) uniform Push {
    InF32 low;  /* first number of the range */
    InF32 high; /* if absent, low's second number is used */
    InStep step;
    OutF32 grid;
    quant_grid_params p;
};

void main()
{
    if (gl_GlobalInvocationID.x != 0)
        return;
    precise float lo = low.v[0], hi, least = float(p.narrow), first, zero, width, from, inverse;

    hi = HAS_HIGH ? high.v[0] : low.v[1];
    width = (hi - lo) / (255.0 - least);
    if (hi - lo < LEAST_WIDTH)
        width = 0.0;
    first = width > 0.0 ? least - lo / width : least;
    zero = clamp(floor(first + 0.5), least, 255.0);
    from = (least - zero) * width;
    inverse = width > 0.0 ? 1.0 / width : 0.0;
    grid.v[GRID_LOW] = from;
    grid.v[GRID_HIGH] = (255.0 - zero) * width;
    grid.v[GRID_STEP] = width;
    grid.v[GRID_INVERSE] = inverse;
    grid.v[GRID_ZERO] = zero - least;
    grid.v[GRID_ON] = p.delay <= 0 ? 1.0 : int(step.step) + 1 >= p.delay ? 1.0 : 0.0;
}
