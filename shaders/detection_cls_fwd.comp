#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "detection_loss.params.h"
layout(local_size_x_id = 0) in;
#define WANT_LSE pm_has(5) /* if p.kind is DETECTION_SOFTMAX */
layout(push_constant, scalar) uniform Push {
    InF32 logits;
    InI32 matches;
    InI32 classes; /* bits of floats if labels > 0 */
    InF32 weights;
    OutF32 losses;
    OutF32 lse;
    detection_cls_params p;
};
#include "lib/detection_cls.glsl"

float softmax_loss(uint row, int g)
{
    uint at = row * uint(p.columns);
    float largest = logits.v[at], sum = 0.0, loss = 0.0;

    for (int i = 1; i < p.columns; i++)
        largest = max(largest, logits.v[at + uint(i)]);
    for (int i = 0; i < p.columns; i++)
        sum += exp((logits.v[at + uint(i)] - largest) * p.a);
    float rest = log(sum), of_targets = target_lse(row, g);
    for (int i = 0; i < p.columns; i++)
        loss += softmax_target(row, g, i, of_targets) *
                (rest - (logits.v[at + uint(i)] - largest) * p.a);
    lse.v[row] = largest * p.a + rest;
    return loss;
}

/* One anchor per lane. */
void main()
{
    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        int g = matches.v[detection_place(row)];
        float w = anchor_weight(row, g), loss = 0.0;

        if (g >= 0 && g < p.m && !valid_class(row, g))
            w = uintBitsToFloat(0x7fc00000u);
        if (isnan(w))
            g = MATCH_NEGATIVE;
        if (WANT_LSE)
            loss = softmax_loss(row, g);
        else if (w != 0.0)
            for (int i = 0; i < p.columns; i++)
                loss += score_loss(logits.v[row * uint(p.columns) + uint(i)],
                                   target_of(row, g, i));
        losses.v[row] = w == 0.0 ? 0.0 : loss * w;
    }
}
