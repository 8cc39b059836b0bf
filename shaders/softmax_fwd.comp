#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "softmax.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int LOGARITHM = 0; /* log_softmax */
layout(push_constant, scalar) uniform Push { InOutF32 x; InOutF32 y; softmax_params p; };

void main()
{
    uint k = uint(p.k);

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        uint first = row * k;
        float largest = x.v[first], sum = 0.0;

        for (uint i = 1; i < k; i++)
            largest = max(largest, x.v[first + i]);
        for (uint i = 0; i < k; i++) {
            float e = exp(x.v[first + i] - largest);

            sum += e;
            if (LOGARITHM == 0)
                y.v[first + i] = e;
        }
        for (uint i = 0; i < k; i++)
            if (LOGARITHM == 0)
                y.v[first + i] *= 1.0 / sum;
            else
                y.v[first + i] = x.v[first + i] - (largest + log(sum));
    }
}
