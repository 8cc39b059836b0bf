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
    InF32 used;
    InOutF32 alpha;
    InOutF32 shares;
    ctc_loss_params p;
};
#define HAS_LENGTHS pm_has(4)
#include "lib/ctc_loss.glsl"
shared float last[MOST_STATES + 1], next[MOST_STATES + 1];

/* State s at step t from `last`, which holds the states of step t + 1 times their probability. */
float step_of(uint example, uint states, uint s)
{
    float one = s + 1 < states ? last[s + 1] : NEVER, two = NEVER;

    if (s + 2 < states && may_skip(example, s + 2))
        two = last[s + 2];
    return log_add(last[s], one, two);
}

/* The largest of the states in `next`. */
float most_of(uint states)
{
    float most = uintBitsToFloat(0xff800000u);

    for (uint s = gl_LocalInvocationID.x; s < states; s += 64)
        most = max(most, next[s]);
    return group_max(most);
}

/* Makes `last` of `next` for the step before. */
void settle(uint example, uint t, uint states)
{
    float most = most_of(states);

    for (uint s = gl_LocalInvocationID.x; s < states; s += 64)
        last[s] = next[s] - most + log_prob(example, t, s);
    barrier();
}

/* Writes the shares of a step: e^(alpha + beta), divided by their sum. */
void write_shares(uint at, uint states)
{
    float most = uintBitsToFloat(0xff800000u), sum = 0.0;

    for (uint s = gl_LocalInvocationID.x; s < states; s += 64)
        most = max(most, alpha.v[at + s] > 0.0 ? NEVER : alpha.v[at + s] + next[s]);
    most = group_max(most);
    for (uint s = gl_LocalInvocationID.x; s < states; s += 64)
        sum += alpha.v[at + s] > 0.0 ? 0.0 : exp(alpha.v[at + s] + next[s] - most);
    sum = group_sum(sum);
    for (uint s = gl_LocalInvocationID.x; s < states; s += 64) {
        float a = alpha.v[at + s];

        shares.v[at + s] = a > 0.0 ? 0.0 : exp(a + next[s] - most) / sum;
    }
    barrier();
}

void clear(uint example, uint from, uint states)
{
    uint row = row_states();

    for (uint i = gl_LocalInvocationID.x; i < uint(p.t) * row; i += 64)
        if (i / row >= from || i % row >= states)
            shares.v[example * uint(p.t) * row + i] = 0.0;
}

/* One example per group. */
void main()
{
    uint example = gl_WorkGroupID.x;

    do {
        uint states = 2 * symbols_of(example) + 1;
        uint steps = used.v[example] > 0.0 ? steps_of(example) : 0u;

        clear(example, steps, states);
        for (uint t = steps; t-- > 0;) {
            for (uint s = gl_LocalInvocationID.x; s < states; s += 64)
                if (t + 1 == steps)
                    next[s] = s + 2 >= states ? 0.0 : NEVER;
                else
                    next[s] = step_of(example, states, s);
            barrier();
            write_shares((example * uint(p.t) + t) * row_states(), states);
            settle(example, t, states);
        }
    } while (pm_next_row(example) < uint(p.n));
}
