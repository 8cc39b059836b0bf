#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/reduce.glsl"
#include "ctc_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 logits;
    InF32 lse;
    InI32 labels;
    InI32 label_lengths;
    InI32 lengths;
    OutF32 alpha;
    OutF32 losses;
    OutF32 used;
    OutF32 impossible;
    ctc_loss_params p;
};
#define HAS_LENGTHS pm_has(4)
#include "lib/ctc_loss.glsl"
shared float last[MOST_STATES + 1], next[MOST_STATES + 1];

/* Whether the example's lengths or one of its symbols are invalid. */
bool is_invalid(uint example)
{
    int symbols = label_lengths.v[example];
    float bad = symbols > p.most ? 1.0 : 0.0;

    if (HAS_LENGTHS)
        bad += lengths.v[example] < 0 || lengths.v[example] > p.t ? 1.0 : 0.0;
    for (uint i = gl_LocalInvocationID.x; i < symbols_of(example); i += 64) {
        int k = labels.v[example * uint(p.most) + i];

        bad += k < 0 || k >= p.c || k == p.blank ? 1.0 : 0.0;
    }
    return group_sum(bad) > 0.0;
}

/* The fewest steps that can show the example's symbols: equal neighbours need a blank between. */
uint steps_needed(uint example)
{
    float repeats = 0.0;

    for (uint i = 1 + gl_LocalInvocationID.x; i < symbols_of(example); i += 64)
        repeats += class_of(example, 2 * i + 1) == class_of(example, 2 * i - 1) ? 1.0 : 0.0;
    return symbols_of(example) + uint(group_sum(repeats));
}

float start_of(uint example, uint s)
{
    return s < 2 ? log_prob(example, 0, s) : NEVER;
}

float step_of(uint example, uint t, uint s)
{
    float one = s > 0 ? last[s - 1] : NEVER, two = NEVER;

    if (may_skip(example, s))
        two = last[s - 2];
    return log_add(last[s], one, two) + log_prob(example, t, s);
}

/* Subtracts the largest state from all and stores them; returns what was subtracted. */
float settle(uint example, uint t, uint states)
{
    uint at = (example * uint(p.t) + t) * row_states();
    float most = uintBitsToFloat(0xff800000u);

    for (uint s = gl_LocalInvocationID.x; s < states; s += 64)
        most = max(most, next[s]);
    most = group_max(most);
    for (uint s = gl_LocalInvocationID.x; s < states; s += 64) {
        float a = next[s] - most;

        last[s] = a;
        alpha.v[at + s] = a < 0.5 * NEVER ? 1.0 : a;
    }
    barrier();
    return most;
}

/* Fills the states that no path reaches, from step `from` on, or past the last state. */
void clear(uint example, uint from, uint states)
{
    uint row = row_states();

    for (uint i = gl_LocalInvocationID.x; i < uint(p.t) * row; i += 64)
        if (i / row >= from || i % row >= states)
            alpha.v[example * uint(p.t) * row + i] = 1.0;
}

float loss_of(uint example, uint steps, uint states)
{
    float total = 0.0;

    for (uint t = 0; t < steps; t++) {
        for (uint s = gl_LocalInvocationID.x; s < states; s += 64)
            next[s] = t == 0 ? start_of(example, s) : step_of(example, t, s);
        total += settle(example, t, states);
    }
    float one = states > 1 ? last[max(states, 2u) - 2u] : NEVER;
    float end = log_add(last[states - 1], one, NEVER);

    return end < 0.5 * NEVER ? uintBitsToFloat(0x7fc00000u) : -(total + end);
}

/* One example per group. */
void main()
{
    uint example = gl_WorkGroupID.x;

    do {
        uint symbols = symbols_of(example), steps = steps_of(example);
        bool absent = label_lengths.v[example] < 0, invalid = is_invalid(example);
        bool never = !absent && !invalid && steps_needed(example) > steps;
        bool counts = !absent && !invalid && !never;
        uint run = counts ? steps : 0u;
        float share = p.by_symbols != 0 ? 1.0 / float(max(symbols, 1u)) : 1.0, loss = 0.0;

        clear(example, run, 2 * symbols + 1);
        if (run > 0)
            loss = loss_of(example, run, 2 * symbols + 1);
        if (gl_LocalInvocationID.x == 0) {
            losses.v[example] = invalid ? uintBitsToFloat(0x7fc00000u) : loss * share;
            used.v[example] = run > 0 ? share : 0.0;
            impossible.v[example] = never ? 1.0 : 0.0;
        }
        barrier();
    } while (pm_next_row(example) < uint(p.n));
}
