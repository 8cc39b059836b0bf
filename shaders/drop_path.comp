#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/philox.glsl"
#include "lib/step.glsl"
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#define unsigned uint
#include "drop_path.params.h"
layout(local_size_x_id = 0) in;
#define HAS_RESIDUAL pm_has(2)
layout(push_constant, scalar) uniform Push {
    InOutT x;
    InStep step;
    InOutT residual; /* may equal x */
    InOutT y;
    drop_path_params p;
};

/* A group processes four rows, as wide as the group, of one example's values. They share one random
 * number. */
float factor_of(uint row)
{
    uvec2 seed = uvec2(step.seed_low, step.seed_high), stream = uvec2(p.stream_low, p.stream_high);
    uvec4 word = pm_random(seed, stream, step.step, uint(p.first_row) + row, 0);
    precise float dropped = step.step < uint(p.steps) ? p.rate * float(step.step) : p.drop;

    return pm_uniform(word.x) >= dropped ? 1.0 / (1.0 - dropped) : 0.0;
}

void main()
{
    uint per = uint(p.per_row) / VEC, block = 4 * gl_WorkGroupSize.x;
    uint blocks = (per + block - 1) / block;

    for (uint g = gl_WorkGroupID.x; g < uint(p.rows) * blocks; g += gl_NumWorkGroups.x) {
        uint row = g / blocks, first = g % blocks * block + gl_LocalInvocationID.x;
        float factor = factor_of(row);

        for (uint k = 0; k < 4; k++) {
            uint at = first + k * gl_WorkGroupSize.x, i = row * per + at;

            if (at >= per)
                break;
            T value = factor != 0.0 ? x.v[i] * factor : T(0.0);
            if (HAS_RESIDUAL)
                value += residual.v[i];
            y.v[i] = value;
        }
    }
}
