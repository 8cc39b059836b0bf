#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
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
        float r = (p.flags & QUANT_RSTD) != 0 ? rstd.v[k] : 1.0;
        float gradient = d.v[i] * ((p.flags & QUANT_GAMMA) != 0 ? r * gamma.v[k] : r);

        if ((p.flags & QUANT_DX) != 0)
            dw.v[i] = p.accumulate != 0 ? dw.v[i] + gradient : gradient;
        if ((p.flags & QUANT_DGAMMA) != 0)
            terms.v[i] = d.v[i] * w.v[i] * r;
    }
}
