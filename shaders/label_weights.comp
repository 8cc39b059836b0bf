#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "label_weights.params.h"
layout(local_size_x_id = 0) in;
#define HAS_WEIGHTS pm_has(2)
layout(push_constant, scalar) uniform Push {
    InI32 labels;
    InF32 table;
    InF32 weights;
    OutF32 y;
    label_weights_params p;
};

void main()
{
    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        int label = labels.v[row];
        float weight = HAS_WEIGHTS ? weights.v[row] : 1.0;

        if (label == p.ignore)
            weight = 0.0;
        else if (label >= 0 && label < p.k)
            weight *= table.v[label];
        y.v[row] = weight;
    }
}
