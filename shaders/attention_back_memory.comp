#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 alpha;
    InF32 dcontext;
    InOutF32 dmemory;
    attention_params p;
};
#include "lib/attention.glsl"

void main()
{
    uint c = uint(p.c), t = uint(p.t), count = uint(p.n) * t * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint k = i % c, j = i / c % t, row = i / c / t;
        float s = 0.0;

        for (int step = 0; step < p.steps; step++) {
            uint at = attention_place(row, step);

            s += alpha.v[at * t + j] * dcontext.v[at * c + k];
        }
        dmemory.v[i] = p.accumulate != 0 ? dmemory.v[i] + s : s;
    }
}
