#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "keypoint_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InOutF32 logits;
    InI32 target;
    InF32 lse;
    InF32 factors;
    InStep step;
    InOutF32 dlogits;
    keypoint_loss_params p;
};

/* One logit per lane. */
void main()
{
    uint points = uint(p.points), places = uint(p.h) * uint(p.w);
    uint total = uint(p.rows) * places * points;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint place = i / points % places, row = i / points / places;
        uint number = row * points + i % points;
        int at = target.v[number];
        float slope = 0.0;

        if (at >= 0)
            slope = exp(logits.v[i] - lse.v[number]) - (place == uint(at) ? 1.0 : 0.0);
        dlogits.v[i] = slope * (factors.v[row / uint(p.per)] * step.loss_scale);
    }
}
