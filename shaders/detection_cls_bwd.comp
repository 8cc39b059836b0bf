#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/step.glsl"
#include "detection_loss.params.h"
layout(local_size_x_id = 0) in;
#define HAS_LSE pm_has(4) /* if p.kind is DETECTION_SOFTMAX */
#define HAS_KEPT pm_has(5)
layout(push_constant, scalar) uniform Push {
    InOutF32 logits;
    InI32 matches;
    InI32 classes;
    InF32 weights;
    InF32 lse;
    InF32 kept;
    InF32 factors;
    InStep step;
    InOutF32 dlogits;
    detection_cls_params p;
};
#include "lib/detection_cls.glsl"

float softmax_slope(uint row, int g, int column, float x)
{
    float z = softmax_target(row, g, column, target_lse(row, g)), sum = 1.0;

    /* Targets that may add up to another number than 1. */
    if ((p.flags & DETECTION_LOGITS) == 0 &&
        (g >= 0 ? p.labels > 0
                : (p.flags & (DETECTION_BACKGROUND | DETECTION_ZEROS)) != DETECTION_BACKGROUND)) {
        sum = 0.0;
        for (int i = 0; i < p.columns; i++)
            sum += target_of(row, g, i);
    }
    return (sum * exp(x * p.a - lse.v[row]) - z) * p.a;
}

/* One score per lane. */
void main()
{
    uint count = uint(p.rows) * uint(p.columns);

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint row = i / uint(p.columns), place = detection_place(row);
        int column = int(i % uint(p.columns)), g = matches.v[place];
        float scale = factors.v[2 * (row / uint(p.per)) + 1] * step.loss_scale;
        float w = anchor_weight(row, g) * (HAS_KEPT ? kept.v[place] : 1.0), slope = 0.0;

        if (w != 0.0 && !isnan(w)) {
            float x = logits.v[i], z = target_of(row, g, column);

            slope = HAS_LSE ? softmax_slope(row, g, column, x)
                                                : score_slope(x, z);
        }
        dlogits.v[i] = slope * w * scale;
    }
}
