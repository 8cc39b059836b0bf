#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 sums;
    InF32 mean;
    InF32 rstd;
    InF32 gamma;
    OutF32 p0;
    OutF32 q;
    InOutF32 dgamma;
    quant_sums_params p;
};

void main()
{
    uint c = uint(p.k);

    for (uint k = pm_first(); k < c; k += pm_stride()) {
        float a = sums.v[k], b = sums.v[c + k], r = rstd.v[k];
        float factor = (p.flags & QUANT_GAMMA) != 0 ? gamma.v[k] : 1.0;
        float gradient = -(a * mean.v[k] * r);

        if ((p.flags & QUANT_BATCH) != 0) {
            p0.v[k] = -(a * factor * r * p.inv_count);
            q.v[k] = -(b * r * r * p.inv_count);
        }
        if ((p.flags & QUANT_DGAMMA) != 0)
            dgamma.v[k] = p.accumulate != 0 ? dgamma.v[k] + gradient : gradient;
    }
}
