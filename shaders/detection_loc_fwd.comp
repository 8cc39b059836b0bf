#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "detection_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 codes;
    InF32 anchors;
    InI32 matches;
    InF32 boxes;
    InF32 weights;
    OutF32 losses;
    detection_loc_params p;
};
#include "lib/detection_loc.glsl"

/* One anchor per lane. */
void main()
{
    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        int g = matches.v[detection_place(row)];
        float sum = 0.0;

        if (g >= p.m || g < MATCH_IGNORED) {
            sum = uintBitsToFloat(0x7fc00000u);
        } else if (g >= 0 && p.kind >= DETECTION_IOU) {
            float dcode[5];

            sum = box_loss(row, g, dcode);
        } else if (g >= 0) {
            float w = weights.v[detection_truth(row, g)];
            float target[5];

            target_codes(row, g, target);
            for (int i = 0; i < CODES; i++)
                sum += code_loss(
                    w, code_difference(codes.v[row * uint(CODES) + uint(i)], target[i]));
        }
        losses.v[row] = sum;
    }
}
