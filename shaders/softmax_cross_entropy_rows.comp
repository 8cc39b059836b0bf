#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "softmax_cross_entropy.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InOutF32 logits;
    InI32 labels;
    InF32 weights;
    InOutF32 prob;
    OutF32 losses;
    softmax_cross_entropy_params p;
};
#include "lib/cross_entropy.glsl"

/* One row per lane. prob may use the logits' memory. */
void main()
{
    uint k = uint(p.k);

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        uint first = row * k;
        float w = weight_of(row), largest = logits.v[first], sum = 0.0, offset_sum = 0.0;
        int label = labels.v[row];
        bool valid = label >= 0 && label < p.k;

        for (uint i = 1; i < k; i++)
            largest = max(largest, logits.v[first + i]);
        float at_label = valid ? logits.v[first + uint(label)] - largest : 0.0;
        for (uint i = 0; i < k; i++) {
            float z = logits.v[first + i] - largest, e = exp(z);

            offset_sum += z;
            sum += e;
            prob.v[first + i] = e;
        }
        for (uint i = 0; i < k; i++)
            prob.v[first + i] *= 1.0 / sum;
        losses.v[row] = w == 0.0 ? 0.0
                      : !valid ? uintBitsToFloat(0x7fc00000u)
                      : w * (log(sum) - (1.0 - p.smoothing) * at_label -
                             p.smoothing / float(k) * offset_sum);
    }
}
