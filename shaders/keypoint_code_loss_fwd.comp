#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "detection_loss.params.h"
#include "keypoint_codes.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 codes;
    InF32 anchors;
    InI32 matches;
    InF32 keypoints;
    InF32 weights;
    OutF32 losses;
    keypoint_code_params p;
};
#include "lib/keypoint_code_loss.glsl"

void main()
{
    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        int g = matches.v[row];
        float sum = g >= p.m || g < -2 ? uintBitsToFloat(0x7fc00000u) : 0.0;

        for (uint i = 0; i < 2 * uint(p.points) && g >= 0 && g < p.m; i++)
            sum += code_loss(weight_of(row, g), difference(row, g, i));
        losses.v[row] = sum;
    }
}
