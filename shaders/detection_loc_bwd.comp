#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/step.glsl"
#include "detection_loss.params.h"
layout(local_size_x_id = 0) in;
#define HAS_KEPT pm_has(5)
layout(push_constant, scalar) uniform Push {
    InOutF32 codes;
    InF32 anchors;
    InI32 matches;
    InF32 boxes;
    InF32 weights;
    InF32 kept;
    InF32 factors;
    InStep step;
    InOutF32 dcodes;
    detection_loc_params p;
};
#include "lib/detection_loc.glsl"

void main()
{
    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        uint place = detection_place(row), at = row * uint(CODES);
        int g = matches.v[place];
        float scale = factors.v[2 * (row / uint(p.per))] * step.loss_scale;
        float keep = HAS_KEPT ? kept.v[place] * scale : scale;
        float target[5] = float[5](0.0, 0.0, 0.0, 0.0, 0.0);
        float w = 0.0;

        if (g >= 0 && g < p.m && p.kind >= DETECTION_IOU) {
            box_loss(row, g, target);
            for (int i = 0; i < CODES; i++)
                dcodes.v[at + uint(i)] = keep * target[i];
            continue;
        }
        if (g >= 0 && g < p.m) {
            w = weights.v[detection_truth(row, g)];
            target_codes(row, g, target);
        }
        for (int i = 0; i < CODES; i++)
            dcodes.v[at + uint(i)] =
                keep * (g < 0 ? 0.0
                              : code_slope(w, code_difference(codes.v[at + uint(i)], target[i])));
    }
}
