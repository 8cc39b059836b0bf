#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InI32 labels;
    InF32 context;
    InF32 y;
    OutF32 x;
    OutF32 state;
    attention_params p;
};
#include "lib/attention.glsl"

/* The state before step `at` of the place, 0 at the first. */
float state_of(uint place, uint k)
{
    float s = y.v[(max(place, 1u) - 1u) * uint(p.units) + k];

    return place % uint(p.steps) > 0 ? s : 0.0;
}

void main()
{
    uint classes = uint(p.classes), c = uint(p.c), width = classes + c + uint(p.units);
    uint count = uint(p.n * p.steps) * width;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint place = i / width, k = i % width;
        float v = 0.0;

        if (k < classes) {
            int symbol = labels.v[max(place, 1u) - 1u];

            symbol = place % uint(p.steps) > 0 ? symbol : ATTENTION_START;
            v = int(k) == symbol ? 1.0 : 0.0;
        } else if (k < classes + c) {
            v = context.v[place * c + k - classes];
        } else {
            v = state_of(place, k - classes - c);
            state.v[place * uint(p.units) + k - classes - c] = v;
        }
        x.v[i] = v;
    }
}
