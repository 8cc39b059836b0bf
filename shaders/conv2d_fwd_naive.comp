/* conv2d_fwd, one output per invocation. Supports every shape, group and dilation. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 x; InF32 w; InOutF32 t; OutF32 y; OutF32 moments;
                                             conv2d_params p; };

void main()
{
    uint i = conv_item();
    if (i >= uint(p.n * p.oh * p.ow * p.k))
        return;
    int k = int(i) % p.k, ox = int(i) / p.k % p.ow, oy = int(i) / (p.k * p.ow) % p.oh;
    int n = int(i) / (p.k * p.ow * p.oh);
    int cg = p.c / p.groups, first = k / (p.k / p.groups) * cg;
    float sum = 0.0;

    for (int ky = 0; ky < p.kh; ky++) {
        int iy = oy * p.stride_h - p.top + ky * p.dilation_h;
        if (iy < 0 || iy >= p.h)
            continue;
        for (int kx = 0; kx < p.kw; kx++) {
            int ix = ox * p.stride_w - p.left + kx * p.dilation_w;
            if (ix < 0 || ix >= p.w)
                continue;
            int at = ((n * p.h + iy) * p.w + ix) * p.c + first;
            int wat = (ky * p.kw + kx) * cg * p.k + k;
            for (int c = 0; c < cg; c++)
                sum += x.v[at + c] * w.v[wat + c * p.k];
        }
    }
    y.v[i] = sum;
}
