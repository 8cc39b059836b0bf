#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/philox.glsl"
#include "lib/step.glsl"
#define unsigned uint
#include "dropout.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InOutF32 x; InStep step; InOutF32 y; dropout_params p;
};

void main()
{
    uint per = uint(p.per_row), blocks = (per + 3) / 4;
    uvec2 seed = uvec2(step.seed_low, step.seed_high), stream = uvec2(p.stream_low, p.stream_high);

    for (uint i = pm_first(); i < uint(p.rows) * blocks; i += pm_stride()) {
        uint row = i / blocks, block = i % blocks, base = row * per + 4 * block;
        uvec4 word = pm_random(seed, stream, step.step, uint(p.first_row) + row, block);

        for (uint k = 0; k < min(4u, per - 4 * block); k++)
            y.v[base + k] = p.keep + pm_uniform(word[k]) >= 1.0 ? x.v[base + k] * p.scale : 0.0;
    }
}
