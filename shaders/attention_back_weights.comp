#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/activation.glsl"
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 dcontext;
    InF32 memory;
    InF32 keys;
    InF32 v;
    InF32 q;
    InF32 alpha;
    InOutF32 dscore;
    InOutF32 dq;
    attention_params p;
};
#include "lib/attention.glsl"
const uint MOST = 1024; /* steps of a sequence */
shared float slope[MOST], part[64];

void clear(uint row)
{
    uint lane = gl_LocalInvocationID.x;

    for (int step = 0; step < p.steps; step++)
        if (step != p.at) {
            uint at = attention_place(row, step);

            for (uint k = lane; k < uint(p.t); k += 64)
                dscore.v[at * uint(p.t) + k] = 0.0;
            for (uint k = lane; k < uint(p.attention); k += 64)
                dq.v[at * uint(p.attention) + k] = 0.0;
        }
}

/* The gradients of the weights of 8 steps at once: 8 lanes add the terms of each. */
void weight_gradients(uint row)
{
    uint lane = gl_LocalInvocationID.x, c = uint(p.c), at = attention_place(row, p.at) * c;
    uint first = attention_example(row) * uint(p.t);

    for (uint begin = 0; begin < uint(p.t); begin += 8) {
        uint j = begin + lane / 8, from = (first + min(j, uint(p.t) - 1)) * c;
        float s = 0.0;

        for (uint k = lane % 8; k < c; k += 8)
            s += dcontext.v[at + k] * memory.v[from + k];
        part[lane] = s;
        barrier();
        if (lane % 8 == 0 && j < uint(p.t)) {
            for (uint k = 1; k < 8; k++)
                s += part[lane + k];
            slope[j] = s;
        }
        barrier();
    }
}

void score_gradients(uint row)
{
    uint lane = gl_LocalInvocationID.x, at = attention_place(row, p.at) * uint(p.t);
    float mean = 0.0;

    for (uint j = lane; j < uint(p.t); j += 64)
        mean += alpha.v[at + j] * slope[j];
    mean = group_sum(mean);
    for (uint j = lane; j < uint(p.t); j += 64) {
        slope[j] = alpha.v[at + j] * (slope[j] - mean);
        dscore.v[at + j] = slope[j];
    }
    barrier();
}

void query_gradient(uint row)
{
    uint units = uint(p.attention), at = attention_place(row, p.at) * units;
    uint first = attention_example(row) * uint(p.t);

    for (uint k = gl_LocalInvocationID.x; k < units; k += 64) {
        float s = 0.0, own = q.v[at + k];

        for (uint j = 0; j < uint(p.t); j++) {
            float th = pm_tanh(keys.v[(first + j) * units + k] + own);

            s += slope[j] * (1.0 - th * th);
        }
        dq.v[at + k] = s * v.v[k];
    }
    barrier();
}

/* One row per group. */
void main()
{
    uint row = gl_WorkGroupID.x;

    do {
        if (p.accumulate == 0)
            clear(row);
        weight_gradients(row);
        score_gradients(row);
        query_gradient(row);
    } while (pm_next_row(row) < uint(p.n));
}
