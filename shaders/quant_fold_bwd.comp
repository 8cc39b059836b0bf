#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(2)
#define HAS_RSTD pm_has(3)
#define WANT_DW pm_has(4)
#define WANT_TERMS pm_has(5) /* whose sum is gamma's gradient */
layout(push_constant, scalar) uniform Push {
    InF32 d;
    InF32 w;
    InF32 gamma;
    InF32 rstd;
    InOutF32 dw;
    OutF32 terms;
    quant_fold_bwd_params p;
};

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        uint k = i % uint(p.k);
        float r = HAS_RSTD ? rstd.v[k] : 1.0;
        float gradient = d.v[i] * (HAS_GAMMA ? r * gamma.v[k] : r);

        if (WANT_DW)
            dw.v[i] = p.accumulate != 0 ? dw.v[i] + gradient : gradient;
        if (WANT_TERMS)
            terms.v[i] = d.v[i] * w.v[i] * r;
    }
}
