#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/lamb.glsl"
#include "lib/step.glsl"
#include "optimizer.params.h"

/* One group per chunk: 64 lanes stride through it, then a tree adds in fixed order. */
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform Push {
    InF32 g;
    InF32 scale;
    InF32 result;
    InU32 flag;
    InStep step;
    InU32 chunks;
    InF32 decay;
    InF32 w;
    InOutF32 m;
    InOutF32 v;
    OutF32 partials;
    optimizer_lamb_params p;
};

shared vec2 sums[64];

void main()
{
    uint lane = gl_LocalInvocationID.x;
    bool finite = flag.v[0] != 0u;
    float mean_factor = 1.0 / (1.0 - step.beta1_power);
    float square_factor = 1.0 / (1.0 - step.beta2_power);

    uint c = gl_WorkGroupID.x;

    do {
        uint first = chunks.v[4u * c], count = finite ? chunks.v[4u * c + 1u] : 0u;
        uint of = chunks.v[4u * c + 2u];
        float s = scale.v[of] * result.v[2], shrink = decay.v[2u * of];
        vec2 sum = vec2(0.0);

        for (uint i = first + lane; i < first + count; i += 64u) {
            float x = g.v[i] * s, value = w.v[i];
            float mean = m.v[i] + (x - m.v[i]) * (1.0 - p.beta1);
            float square = v.v[i] + (x * x - v.v[i]) * (1.0 - p.beta2);
            float u = pm_lamb_direction(mean_factor, square_factor, p.epsilon, shrink, mean, square,
                                        value);

            m.v[i] = mean;
            v.v[i] = square;
            sum += vec2(value * value, u * u);
        }
        sums[lane] = sum;
        barrier();
        for (uint half_ = 32u; half_ > 0u; half_ /= 2u) {
            if (lane < half_)
                sums[lane] += sums[lane + half_];
            barrier();
        }
        if (lane == 0u) {
            partials.v[2u * c] = sums[0].x;
            partials.v[2u * c + 1u] = sums[0].y;
        }
        barrier();
    } while (pm_next_row(c) < uint(p.count));
}
