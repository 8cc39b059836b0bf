#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 logits;
    InOutI32 symbols;
    InOutI32 parents;
    InOutF32 totals;
    attention_params p;
};
#include "lib/attention.glsl"
const uint MOST_BEAMS = 16;
shared float base[MOST_BEAMS]; /* a beam's total minus the logarithm of its sum of exponentials */
shared float total_of[MOST_BEAMS];
shared int ended[MOST_BEAMS];
shared float best_value[64];
shared uint best_at[64];

uint logits_at(uint row)
{
    return attention_place(row, p.at) * uint(p.classes);
}

/* Fills base, total_of and ended for a beam. */
void open_beam(uint row, uint beam)
{
    uint lane = gl_LocalInvocationID.x, from = logits_at(row);
    float most = uintBitsToFloat(0xff800000u), sum = 0.0;

    for (uint k = lane; k < uint(p.classes); k += 64)
        most = max(most, logits.v[from + k]);
    most = group_max(most);
    for (uint k = lane; k < uint(p.classes); k += 64)
        sum += exp(logits.v[from + k] - most);
    sum = group_sum(sum);
    if (lane == 0) {
        float total = beam == 0 ? 0.0 : ATTENTION_NEVER;
        int last = ATTENTION_START;

        if (p.at > 0 && p.accumulate != 0) {
            total = totals.v[attention_before(row)];
            last = symbols.v[attention_before(row)];
        }
        ended[beam] = last == ATTENTION_END ? 1 : 0;
        total_of[beam] = total;
        base[beam] = total - (most + log(sum));
    }
    barrier();
}

/* The total of candidate i: beam i / classes continued by the class i % classes; NEVER: it is no
 * candidate. */
float total_with(uint first, uint i)
{
    uint beam = i / uint(p.classes), k = i % uint(p.classes);
    float value = base[beam] + logits.v[logits_at(first + beam) + k];

    if (ended[beam] != 0)
        value = k == uint(ATTENTION_END) ? total_of[beam] : ATTENTION_NEVER;
    return k != uint(ATTENTION_START) && value > 0.5 * ATTENTION_NEVER ? value : ATTENTION_NEVER;
}

/* Whether candidate (v, i) comes before (w, k): the larger total, then the smaller number. */
bool is_before(float v, uint i, float w, uint k)
{
    return v > w || (v == w && i < k);
}

/* Leaves the best candidate after (value, at) in best_value[0] and best_at[0]. */
void find_next(uint first, float value, uint at, bool any)
{
    uint lane = gl_LocalInvocationID.x, count = uint(p.beams * p.classes), found = count;
    float most = ATTENTION_NEVER;

    for (uint i = lane; i < count; i += 64) {
        float v = total_with(first, i);

        if (v > ATTENTION_NEVER && (any || is_before(value, at, v, i)) &&
            is_before(v, i, most, found)) {
            most = v;
            found = i;
        }
    }
    barrier();
    best_value[lane] = most;
    best_at[lane] = found;
    barrier();
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
        if (lane < half_size && is_before(best_value[lane + half_size], best_at[lane + half_size],
                                          best_value[lane], best_at[lane])) {
            best_value[lane] = best_value[lane + half_size];
            best_at[lane] = best_at[lane + half_size];
        }
        barrier();
    }
}

void write_beam(uint row, float value, uint at)
{
    bool none = at >= uint(p.beams * p.classes);
    uint to = attention_place(row, p.at);

    for (int step = 0; step < p.steps && p.accumulate == 0; step++)
        if (step != p.at) {
            symbols.v[attention_place(row, step)] = 0;
            parents.v[attention_place(row, step)] = 0;
            totals.v[attention_place(row, step)] = 0.0;
        }
    symbols.v[to] = none ? ATTENTION_END : int(at % uint(p.classes));
    parents.v[to] = none ? 0 : int(at / uint(p.classes));
    totals.v[to] = none ? ATTENTION_NEVER : value;
}

/* One example per group. */
void main()
{
    uint example = gl_WorkGroupID.x, beams = uint(p.beams);

    do {
        uint first = example * beams, at = 0;
        float value = 0.0;

        barrier();
        for (uint beam = 0; beam < beams; beam++)
            open_beam(first + beam, beam);
        for (uint beam = 0; beam < beams; beam++) {
            find_next(first, value, at, beam == 0);
            value = best_value[0];
            at = best_at[0];
            if (gl_LocalInvocationID.x == 0)
                write_beam(first + beam, value, at);
        }
    } while (pm_next_row(example) < uint(p.n) / beams);
}
