/* The last dispatch of a convolution whose sums are cut into parts: out = (accumulate ? out : 0) +
 * the PARTS partial sums t [PARTS][count], in their order. Filter gradients use it (conv2d and
 * depthwise), and with IMAGE the forward pass and the data gradient of conv2d. A data gradient that
 * transposes the weights itself has them first in t. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int PARTS = 1;
#ifdef IMAGE
layout(constant_id = 4) const bool BACK = false;
layout(push_constant, scalar) uniform Push { InF32 a; InF32 w; InOutF32 t; InOutF32 c;
                                             uvec2 moments; conv2d_params p; };
#else
layout(push_constant, scalar) uniform Push { InF32 x; InF32 dy; InOutF32 t; InOutF32 c;
                                             uvec2 done; conv2d_params p; };
#endif

void main()
{
    uint i = conv_item(), weights = uint(p.kh * p.kw * (p.c / p.groups) * p.k);
#ifdef IMAGE
    uint count = uint(BACK ? p.n * p.h * p.w * p.c : p.n * p.oh * p.ow * p.k);
    uint first = i + (BACK && p.transposed == 0 ? weights : 0u);
#else
    uint count = weights, first = i;
#endif
    if (i >= count)
        return;
    float sum = 0.0;

    for (uint part = 0u; part < uint(PARTS); part++)
        sum += t.v[part * count + first];
    c.v[i] = p.accumulate != 0 ? c.v[i] + sum : sum;
}
