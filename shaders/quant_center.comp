#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/step.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(1)
#define HAS_RSTD pm_has(3) /* with statistics of the batch */
#define HAS_MOVING_MEAN pm_has(4)
#define HAS_VARIANCE pm_has(5)
#define HAS_STEP pm_has(6)
#define WANT_KEPT pm_has(9)
layout(push_constant, scalar) uniform Push {
    InF32 mean;
    InF32 gamma;
    InF32 moving_rstd;
    InF32 rstd;
    InF32 moving_mean;
    InF32 variance;
    InStep step;
    OutF32 center;
    OutF32 scale;
    OutF32 kept;
    quant_center_params p;
};

void main()
{
    bool frozen = false;

    if (HAS_STEP)
        frozen = int(step.step) + 1 > p.freeze;
    for (uint k = pm_first(); k < uint(p.k); k += pm_stride()) {
        float factor = HAS_GAMMA ? gamma.v[k] : 1.0, m = mean.v[k];

        if (HAS_MOVING_MEAN)
            m = frozen ? moving_mean.v[k] : m;
        center.v[k] = m * factor * moving_rstd.v[k];
        scale.v[k] = 1.0;
        if (HAS_RSTD)
            scale.v[k] = frozen ? 1.0 : rstd.v[k] / moving_rstd.v[k];
        if (WANT_KEPT && HAS_VARIANCE)
            kept.v[k] = frozen ? -1.0 : variance.v[k];
    }
}
