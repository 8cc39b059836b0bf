#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "softmax_cross_entropy.params.h"
#include "lib/reduce.glsl"
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

/* One workgroup per row. prob may use the logits' memory, so all values of other lanes' logits are
 * read before the first logit is overwritten. */
void main()
{
    uint k = uint(p.k), lane = gl_LocalInvocationID.x;

    uint row = gl_WorkGroupID.x;

    do {
        uint first = row * k;
        int label = labels.v[row];
        bool valid = label >= 0 && label < p.k;
        float at_label = logits.v[first + (valid ? uint(label) : 0)];
        float largest = at_label, sum = 0.0, offset_sum = 0.0, w = weight_of(row);

        for (uint i = lane; i < k; i += 64)
            largest = max(largest, logits.v[first + i]);
        memoryBarrierBuffer();
        largest = group_max(largest);
        for (uint i = lane; i < k; i += 64) {
            float z = logits.v[first + i] - largest, e = exp(z);

            offset_sum += z;
            sum += e;
            prob.v[first + i] = e;
        }
        sum = group_sum(sum);
        offset_sum = group_sum(offset_sum);
        for (uint i = lane; i < k; i += 64)
            prob.v[first + i] *= 1.0 / sum;
        if (lane == 0)
            losses.v[row] = w == 0.0 ? 0.0
                          : !valid ? uintBitsToFloat(0x7fc00000u)
                          : w * (log(sum) - (1.0 - p.smoothing) * (at_label - largest) -
                                 p.smoothing / float(k) * offset_sum);
    } while (pm_next_row(row) < uint(p.rows));
}
