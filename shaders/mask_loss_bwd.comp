#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "mask_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InOutF32 logits;
    InI32 matches;
    InI32 channel;
    InU32 masks;
    InF32 used;
    InI32 place;
    InF32 part;
    InF32 factors;
    InStep step;
    InOutF32 dlogits;
    mask_loss_params p;
};
#include "lib/mask_loss.glsl"

/* One logit per lane. */
void main()
{
    uint c = uint(p.c), w = uint(p.w), pixels = uint(p.h) * w, total = uint(p.rows) * pixels * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint pixel = i / c % pixels, row = i / c / pixels, image = row / uint(p.per);
        float slope = 0.0;

        if (channel.v[row] == int(i % c)) {
            uint truth = image * uint(p.m) + uint(clamp(matches.v[row], 0, p.m - 1));
            float x = logits.v[i], e = exp(-abs(x));

            slope = (x < 0.0 ? e : 1.0) / (1.0 + e) - target_of(row, truth, pixel / w, pixel % w);
            slope *= used.v[row];
        }
        dlogits.v[i] = slope * (factors.v[image] * step.loss_scale);
    }
}
