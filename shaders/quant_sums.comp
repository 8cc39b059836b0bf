#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/step.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(3)
#define HAS_MOVING_MEAN pm_has(4)
#define HAS_MOVING_RSTD pm_has(5)
#define HAS_STEP pm_has(6)
#define WANT_P pm_has(7)
#define WANT_Q pm_has(8)
#define WANT_DGAMMA pm_has(9)
layout(push_constant, scalar) uniform Push {
    InF32 sums;
    InF32 mean;
    InF32 rstd;
    InF32 gamma;
    InF32 moving_mean;
    InF32 moving_rstd;
    InStep step;
    OutF32 p0;
    OutF32 q;
    InOutF32 dgamma;
    quant_sums_params p;
};

void main()
{
    uint c = uint(p.k);
    bool frozen = false;

    if (HAS_STEP)
        frozen = int(step.step) + 1 > p.freeze;
    for (uint k = pm_first(); k < c; k += pm_stride()) {
        float a = sums.v[k], b = sums.v[c + k], m = mean.v[k], r = rstd.v[k];
        float factor = HAS_GAMMA ? gamma.v[k] : 1.0;

        if (WANT_P)
            p0.v[k] = frozen ? 0.0 : -(a * factor * r * p.inv_count);
        if (WANT_Q)
            q.v[k] = frozen ? 0.0 : -(b * r * r * p.inv_count);
        if (HAS_MOVING_MEAN)
            m = frozen ? moving_mean.v[k] : m;
        if (HAS_MOVING_RSTD)
            r = frozen ? moving_rstd.v[k] : r;
        float gradient = -(a * m * r);

        if (WANT_DGAMMA)
            dgamma.v[k] = p.accumulate != 0 ? dgamma.v[k] + gradient : gradient;
    }
}
