#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 state;
    InU32 flag;
    InOutF32 low;
    InOutF32 high;
    InOutF32 min_biased;
    InOutF32 max_biased;
    InOutF32 min_steps;
    InOutF32 max_steps;
    quant_params p;
};

void main()
{
    if (gl_GlobalInvocationID.x != 0 || flag.v[0] == 0)
        return;
    low.v[0] = state.v[STATE_MIN];
    high.v[0] = state.v[STATE_MAX];
    if (pm_has(4))
        min_biased.v[0] = state.v[STATE_BIASED_MIN];
    if (pm_has(5))
        max_biased.v[0] = state.v[STATE_BIASED_MAX];
    if (pm_has(6))
        min_steps.v[0] = state.v[STATE_STEPS_MIN];
    if (pm_has(7))
        max_steps.v[0] = state.v[STATE_STEPS_MAX];
}
