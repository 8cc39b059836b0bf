/* depthwise_bwd_filter, one element of dw per invocation, over all images and pixels. Supports
 * every shape, multiplier and dilation. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 x; InF32 dy; InOutF32 t; InOutF32 dw;
                                             uvec2 done; conv2d_params p; };

void main()
{
    uint i = conv_item();
    if (i >= uint(p.kh * p.kw * p.k))
        return;
    int k = int(i) % p.k, ky = int(i) / (p.k * p.kw), kx = int(i) / p.k % p.kw;
    int c = k / (p.k / p.c);
    float sum = 0.0;

    for (int n = 0; n < p.n; n++)
        for (int oy = 0; oy < p.oh; oy++) {
            int iy = oy * p.stride_h - p.top + ky * p.dilation_h;
            if (iy < 0 || iy >= p.h)
                continue;
            float line = 0.0; /* separate sums per line give a smaller error */
            for (int ox = 0; ox < p.ow; ox++) {
                int ix = ox * p.stride_w - p.left + kx * p.dilation_w;
                if (ix >= 0 && ix < p.w)
                    line += x.v[((n * p.h + iy) * p.w + ix) * p.c + c]
                          * dy.v[((n * p.oh + oy) * p.ow + ox) * p.k + k];
            }
            sum += line;
        }
    dw.v[i] = p.accumulate != 0 ? dw.v[i] + sum : sum;
}
