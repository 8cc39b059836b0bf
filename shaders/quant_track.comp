#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 range;
    InF32 min_biased;
    InF32 max_biased;
    InF32 min_steps;
    InF32 max_steps;
    OutF32 state;
    quant_track_params p;
};

/* Returns 1 - decay^steps. Near 0 it uses the series, which does not cancel. */
float weight(float steps)
{
    float t = steps * p.decline;

    if (t < 0.5)
        return t * (1.0 - t * (1.0 / 2.0 - t * (1.0 / 6.0 - t * (1.0 / 24.0 - t * (1.0 / 120.0 -
               t * (1.0 / 720.0))))));
    return 1.0 - exp(-t);
}

void main()
{
    if (gl_GlobalInvocationID.x != 0)
        return;
    float low = min_biased.v[0] - p.rate * (min_biased.v[0] - range.v[0]);
    float high = max_biased.v[0] - p.rate * (max_biased.v[0] - range.v[1]);
    float low_steps = min_steps.v[0] + 1.0, high_steps = max_steps.v[0] + 1.0;

    state.v[STATE_MIN] = low / weight(low_steps);
    state.v[STATE_MAX] = high / weight(high_steps);
    state.v[STATE_BIASED_MIN] = low;
    state.v[STATE_BIASED_MAX] = high;
    state.v[STATE_STEPS_MIN] = low_steps;
    state.v[STATE_STEPS_MAX] = high_steps;
}
