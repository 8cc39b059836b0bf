#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "quantize.params.h"
layout(local_size_x_id = 0) in;
#define HAS_ADD pm_has(2)
#define HAS_MEAN pm_has(3)
#define HAS_GAMMA pm_has(4)
#define HAS_RSTD pm_has(5) /* with the mean */
layout(push_constant, scalar) uniform Push {
    InF32 input_grid;
    InF32 weights_grid;
    InF32 add;
    InF32 mean;
    InF32 gamma;
    InF32 rstd;
    OutF32 center;
    OutF32 scale;
    quant_bias_params p;
};

void main()
{
    precise float unit = input_grid.v[GRID_STEP] * weights_grid.v[GRID_STEP];
    bool rounds = unit >= LEAST_WIDTH;

    unit = rounds ? unit : LEAST_WIDTH;
    for (uint k = pm_first(); k < uint(p.k); k += pm_stride()) {
        precise float bias = HAS_ADD ? add.v[k] : 0.0;

        if (HAS_MEAN) {
            precise float factor = 1.0;

            if (HAS_RSTD)
                factor = rstd.v[k];
            if (HAS_GAMMA)
                factor *= gamma.v[k];
            precise float middle = mean.v[k] * factor;

            bias -= middle;
        }
        precise float steps = bias / unit;

        center.v[k] = rounds ? -clamp(roundEven(steps), -MOST_STEPS, MOST_STEPS) : -steps;
        scale.v[k] = unit;
    }
}
