#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 y;
    InF32 dense;
    InF32 bias;
    InOutF32 logits;
    attention_params p;
};
#include "lib/attention.glsl"

void main()
{
    uint classes = uint(p.classes), units = uint(p.units), count = uint(p.n) * classes;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint row = i / classes, k = i % classes, from = attention_place(row, p.at);
        float s = bias.v[k];

        for (uint j = 0; j < units; j++)
            s += y.v[from * units + j] * dense.v[j * classes + k];
        for (int step = 0; step < p.steps && p.accumulate == 0; step++)
            if (step != p.at)
                logits.v[attention_place(row, step) * classes + k] = 0.0;
        logits.v[from * classes + k] = s;
    }
}
