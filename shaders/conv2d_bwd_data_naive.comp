/* conv2d_bwd_data, one element of dx per invocation. It gathers from the outputs that read the
 * element. Supports every shape, group and dilation. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 dy; InF32 w; InOutF32 t; InOutF32 dx;
                                             OutF32 moments; conv2d_params p; };

void main()
{
    uint i = conv_item();
    if (i >= uint(p.n * p.h * p.w * p.c))
        return;
    int c = int(i) % p.c, ix = int(i) / p.c % p.w, iy = int(i) / (p.c * p.w) % p.h;
    int n = int(i) / (p.c * p.w * p.h);
    int cg = p.c / p.groups, kg = p.k / p.groups, first = c / cg * kg;
    float sum = 0.0;

    for (int ky = 0; ky < p.kh; ky++) {
        int sy = iy + p.top - ky * p.dilation_h;
        if (sy < 0 || sy % p.stride_h != 0 || sy / p.stride_h >= p.oh)
            continue;
        for (int kx = 0; kx < p.kw; kx++) {
            int sx = ix + p.left - kx * p.dilation_w;
            if (sx < 0 || sx % p.stride_w != 0 || sx / p.stride_w >= p.ow)
                continue;
            int at = ((n * p.oh + sy / p.stride_h) * p.ow + sx / p.stride_w) * p.k + first;
            int tap = ky * p.kw + kx, step = p.transposed != 0 ? cg : 1;
            int wat = p.transposed != 0 ? (tap * p.k + first) * cg + c % cg
                                        : (tap * cg + c % cg) * p.k + first;
            for (int k = 0; k < kg; k++)
                sum += dy.v[at + k] * w.v[wat + k * step];
        }
    }
    dx.v[i] = p.accumulate != 0 ? dx.v[i] + sum : sum;
}
