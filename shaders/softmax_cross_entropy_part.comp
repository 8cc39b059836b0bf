#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "softmax_cross_entropy.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 losses;
    InI32 labels;
    InF32 weights;
    InOutF32 part; /* [lanes] sums, [lanes] counts */
    OutF32 loss;
    OutF32 factor;
    softmax_cross_entropy_params p;
};
#include "lib/cross_entropy.glsl"

void main()
{
    float sum = 0.0, count = 0.0;

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        sum += losses.v[row];
        count += counts(row) ? 1.0 : 0.0;
    }
    part.v[pm_first()] = sum;
    part.v[pm_stride() + pm_first()] = count;
}
