#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(1)
layout(push_constant, scalar) uniform Push {
    InF32 w;
    InF32 gamma;
    InF32 rstd;
    OutF32 folded;
    quant_fold_params p;
};

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        uint k = i % uint(p.k);

        folded.v[i] = w.v[i] * (HAS_GAMMA ? rstd.v[k] * gamma.v[k] : rstd.v[k]);
    }
}
