#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/activation.glsl"
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/reduce.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 keys;
    InF32 memory;
    InF32 query;
    InF32 v;
    InF32 y;
    InI32 parents;
    InOutF32 q;
    InOutF32 alpha;
    InOutF32 context;
    InOutI32 columns;
    attention_params p;
};
#include "lib/attention.glsl"
#define HAS_STATE pm_has(4)
#define HAS_PARENTS pm_has(5)
#define HAS_COLUMNS pm_has(9)
const uint MOST = 1024;              /* steps of a sequence, and units of the attention */
shared float query_of[MOST], weight[MOST], part[64];

/* Writes zeros for all steps except this one. */
void clear(uint row)
{
    uint lane = gl_LocalInvocationID.x;

    for (int step = 0; step < p.steps; step++)
        if (step != p.at) {
            uint at = attention_place(row, step);

            for (uint k = lane; k < uint(p.attention); k += 64)
                q.v[at * uint(p.attention) + k] = 0.0;
            for (uint k = lane; k < uint(p.t); k += 64)
                alpha.v[at * uint(p.t) + k] = 0.0;
            for (uint k = lane; k < uint(p.c); k += 64)
                context.v[at * uint(p.c) + k] = 0.0;
            if (HAS_COLUMNS && lane == 0)
                columns.v[at] = 0;
        }
}

/* The query of the state before. */
void make_query(uint row)
{
    uint at = attention_place(row, p.at), units = uint(p.units), before = row;

    if (HAS_PARENTS)
        before = attention_beam(row, parents.v[attention_before(row)]);
    uint from = attention_before(before) * units;

    for (uint k = gl_LocalInvocationID.x; k < uint(p.attention); k += 64) {
        float s = 0.0;

        if (HAS_STATE)
            for (uint i = 0; i < units; i++)
                s += y.v[from + i] * query.v[i * uint(p.attention) + k];
        query_of[k] = s;
        q.v[at * uint(p.attention) + k] = s;
    }
    barrier();
}

/* The scores of 8 steps at once: 8 lanes add the terms of each. */
void make_scores(uint row)
{
    uint lane = gl_LocalInvocationID.x, units = uint(p.attention);
    uint first = attention_example(row) * uint(p.t);

    for (uint begin = 0; begin < uint(p.t); begin += 8) {
        uint j = begin + lane / 8, from = (first + min(j, uint(p.t) - 1)) * units;
        float s = 0.0;

        for (uint k = lane % 8; k < units; k += 8)
            s += v.v[k] * pm_tanh(keys.v[from + k] + query_of[k]);
        part[lane] = s;
        barrier();
        if (lane % 8 == 0 && j < uint(p.t)) {
            for (uint k = 1; k < 8; k++)
                s += part[lane + k];
            weight[j] = s;
        }
        barrier();
    }
}

void make_weights(uint row)
{
    uint lane = gl_LocalInvocationID.x, at = attention_place(row, p.at) * uint(p.t);
    float most = uintBitsToFloat(0xff800000u), sum = 0.0;

    for (uint j = lane; j < uint(p.t); j += 64)
        most = max(most, weight[j]);
    most = group_max(most);
    for (uint j = lane; j < uint(p.t); j += 64)
        sum += exp(weight[j] - most);
    sum = group_sum(sum);
    for (uint j = lane; j < uint(p.t); j += 64) {
        weight[j] = exp(weight[j] - most) / sum;
        alpha.v[at + j] = weight[j];
    }
    barrier();
}

void make_context(uint row)
{
    uint lane = gl_LocalInvocationID.x, at = attention_place(row, p.at), c = uint(p.c);
    uint from = attention_example(row) * uint(p.t) * c;

    for (uint k = lane; k < c; k += 64) {
        float s = 0.0;

        for (uint j = 0; j < uint(p.t); j++)
            s += weight[j] * memory.v[from + j * c + k];
        context.v[at * c + k] = s;
    }
    if (HAS_COLUMNS && lane == 0) {
        uint best = 0;

        for (uint j = 1; j < uint(p.t); j++)
            best = weight[j] > weight[best] ? j : best;
        columns.v[at] = int(best);
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
        make_query(row);
        make_scores(row);
        make_weights(row);
        make_context(row);
    } while (pm_next_row(row) < uint(p.n));
}
