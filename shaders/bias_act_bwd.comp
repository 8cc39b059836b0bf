/* bias_act_bwd: dz = f'(y) dy, with f' as a function of y. Twin of bwd_cpu in
 * src/layers/bias_act.c. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/activation.glsl"
#include "bias_act.params.h"

layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 y; InOutF32 dy; InOutF32 dz;
                                             bias_act_params p; };

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride())
        dz.v[i] = dy.v[i] * pm_act_slope(p.activation, p.slope, y.v[i]);
}
