#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "detection_loss.params.h"
#include "keypoint_codes.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InOutF32 codes;
    InF32 anchors;
    InI32 matches;
    InF32 keypoints;
    InF32 weights;
    InF32 factors;
    InStep step;
    InOutF32 dcodes;
    keypoint_code_params p;
};
#include "lib/keypoint_code_loss.glsl"

/* One code per lane. */
void main()
{
    uint number = 2 * uint(p.points), total = uint(p.rows) * number;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint row = i / number;
        int g = matches.v[row];
        float slope = 0.0;

        if (g >= 0 && g < p.m)
            slope = code_slope(weight_of(row, g), difference(row, g, i % number));
        dcodes.v[i] = slope * (factors.v[2 * (row / uint(p.per))] * step.loss_scale);
    }
}
