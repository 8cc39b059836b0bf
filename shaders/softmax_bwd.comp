#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "softmax.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int LOGARITHM = 0; /* log_softmax */
layout(push_constant, scalar) uniform Push { InF32 y; InOutF32 dy; InOutF32 dx; softmax_params p; };

void main()
{
    uint k = uint(p.k);

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        uint first = row * k;
        float dot = 0.0;

        for (uint i = 0; i < k; i++)
            dot += dy.v[first + i] * (LOGARITHM == 0 ? y.v[first + i] : 1.0);
        for (uint i = 0; i < k; i++)
            dx.v[first + i] = LOGARITHM == 0 ? y.v[first + i] * (dy.v[first + i] - dot)
                                            : dy.v[first + i] - exp(y.v[first + i]) * dot;
    }
}
