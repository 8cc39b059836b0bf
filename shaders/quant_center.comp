#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(1)
#define HAS_RSTD pm_has(3) /* with statistics of the batch */
layout(push_constant, scalar) uniform Push {
    InF32 mean;
    InF32 gamma;
    InF32 moving_rstd;
    InF32 rstd;
    OutF32 center;
    OutF32 scale;
    quant_center_params p;
};

void main()
{
    for (uint k = pm_first(); k < uint(p.k); k += pm_stride()) {
        float factor = HAS_GAMMA ? gamma.v[k] : 1.0;

        center.v[k] = mean.v[k] * factor * moving_rstd.v[k];
        scale.v[k] = HAS_RSTD ? rstd.v[k] / moving_rstd.v[k] : 1.0;
    }
}
