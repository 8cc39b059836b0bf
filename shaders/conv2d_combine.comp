/* The last dispatch of a filter gradient (conv2d and depthwise): dw = (accumulate ? dw : 0) + the
 * PARTS partial sums t [PARTS][count], in their order. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int PARTS = 1;
layout(push_constant, scalar) uniform Push { InF32 x; InF32 dy; InOutF32 t; InOutF32 dw;
                                             uvec2 done; conv2d_params p; };

void main()
{
    uint i = conv_item(), count = uint(p.kh * p.kw * (p.c / p.groups) * p.k);
    if (i >= count)
        return;
    float sum = 0.0;

    for (uint part = 0u; part < uint(PARTS); part++)
        sum += t.v[part * count + i];
    dw.v[i] = p.accumulate != 0 ? dw.v[i] + sum : sum;
}
