/* depthwise_bwd_data, one element of dx per invocation. It gathers from the outputs that read the
 * element. Supports every shape, multiplier and dilation. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 dy; InF32 w; InOutF32 dx; conv2d_params p; };

void main()
{
    uint i = conv_item();
    if (i >= uint(p.n * p.h * p.w * p.c))
        return;
    int c = int(i) % p.c, ix = int(i) / p.c % p.w, iy = int(i) / (p.c * p.w) % p.h;
    int n = int(i) / (p.c * p.w * p.h), mult = p.k / p.c;
    float sum = 0.0;

    for (int ky = 0; ky < p.kh; ky++) {
        int sy = iy + p.top - ky * p.dilation_h;
        if (sy < 0 || sy % p.stride_h != 0 || sy / p.stride_h >= p.oh)
            continue;
        for (int kx = 0; kx < p.kw; kx++) {
            int sx = ix + p.left - kx * p.dilation_w;
            if (sx < 0 || sx % p.stride_w != 0 || sx / p.stride_w >= p.ow)
                continue;
            int at = ((n * p.oh + sy / p.stride_h) * p.ow + sx / p.stride_w) * p.k + c * mult;
            int wat = (ky * p.kw + kx) * p.k + c * mult;
            for (int m = 0; m < mult; m++)
                sum += dy.v[at + m] * w.v[wat + m];
        }
    }
    dx.v[i] = p.accumulate != 0 ? dx.v[i] + sum : sum;
}
