#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "matting.params.h"
layout(local_size_x_id = 0) in;
#define HAS_WEIGHTS pm_has(2)
layout(push_constant, scalar) uniform Push {
    InF32 logits;
    InF32 labels;
    InF32 weights;
    OutF32 prob;
    OutF32 losses;
    OutF32 used;
    matting_params p;
};

void main()
{
    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        float label = labels.v[row], d = logits.v[2 * row + 1] - logits.v[2 * row];
        float w = HAS_WEIGHTS ? weights.v[row] : 1.0, e = exp(-abs(d)), sum = 1.0 + e;
        bool valid = label >= 0.0 && label <= 1.0;

        if (p.ignores != 0 && label == p.ignore)
            w = 0.0;
        prob.v[row] = (d < 0.0 ? e : 1.0) / sum;
        losses.v[row] = w == 0.0 ? 0.0
                      : !valid ? uintBitsToFloat(0x7fc00000u)
                      : w * (log(sum) + (d < 0.0 ? 0.0 : d) - label * d);
        used.v[row] = w;
    }
}
