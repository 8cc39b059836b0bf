#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/step.glsl"
#include "ctc_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InOutF32 logits;
    InF32 lse;
    InI32 labels;
    InI32 label_lengths;
    InI32 lengths;
    InF32 shares;
    InF32 used;
    InF32 factors;
    InStep step;
    InOutF32 dlogits;
    ctc_loss_params p;
};
#define HAS_LENGTHS pm_has(4)
#include "lib/ctc_loss.glsl"

/* The sum of the shares of the states of class k. */
float share_of(uint example, uint row, uint k)
{
    uint at = row * row_states(), symbols = symbols_of(example);
    float sum = 0.0;

    if (k == uint(p.blank)) {
        for (uint i = 0; i <= symbols; i++)
            sum += shares.v[at + 2 * i];
        return sum;
    }
    for (uint i = 0; i < symbols; i++)
        if (labels.v[example * uint(p.most) + i] == int(k))
            sum += shares.v[at + 2 * i + 1];
    return sum;
}

/* One logit per lane. */
void main()
{
    uint c = uint(p.c), total = uint(p.n) * uint(p.t) * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint row = i / c, example = row / uint(p.t);
        float f = factors.v[example] * step.loss_scale, slope = 0.0;

        if (used.v[example] > 0.0 && row % uint(p.t) < steps_of(example))
            slope = (exp(logits.v[i] - lse.v[row]) - share_of(example, row, i % c)) *
                    used.v[example];
        dlogits.v[i] = slope * f;
    }
}
