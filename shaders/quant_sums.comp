#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(3)
#define WANT_P pm_has(4)
#define WANT_Q pm_has(5)
#define WANT_DGAMMA pm_has(6)
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
        float factor = HAS_GAMMA ? gamma.v[k] : 1.0;
        float gradient = -(a * mean.v[k] * r);

        if (WANT_P)
            p0.v[k] = -(a * factor * r * p.inv_count);
        if (WANT_Q)
            q.v[k] = -(b * r * r * p.inv_count);
        if (WANT_DGAMMA)
            dgamma.v[k] = p.accumulate != 0 ? dgamma.v[k] + gradient : gradient;
    }
}
