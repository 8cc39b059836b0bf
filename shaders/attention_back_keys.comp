#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/activation.glsl"
#include "lib/buffers.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 keys;
    InF32 v;
    InF32 q;
    InF32 dscore;
    OutF32 dkeys;
    OutF32 dv;
    attention_params p;
};
#include "lib/attention.glsl"

void main()
{
    uint units = uint(p.attention), t = uint(p.t), count = uint(p.n) * t * units;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint k = i % units, j = i / units % t, row = i / units / t;
        float key = keys.v[i], slope = 0.0, sum = 0.0;

        for (int step = 0; step < p.steps; step++) {
            uint at = attention_place(row, step);
            float d = dscore.v[at * t + j], th = pm_tanh(key + q.v[at * units + k]);

            slope += d * (1.0 - th * th);
            sum += d * th;
        }
        dkeys.v[i] = slope * v.v[k];
        dv.v[i] = sum;
    }
}
