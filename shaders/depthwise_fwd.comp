/* depthwise_fwd: TX outputs along x per lane (lib/depthwise.glsl). */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/depthwise.glsl"

layout(local_size_x_id = 0, local_size_y_id = 1) in;
layout(push_constant, scalar) uniform Push { InF32 x; InF32 w; OutF32 y; conv2d_params p; };

const int WINDOW = (TX - 1) * SX + (KW - 1) * DX + 1;

void main()
{
    int k = int(gl_GlobalInvocationID.x), strip = depthwise_strip();
    int strips = (p.ow + TX - 1) / TX, line = strip / strips, ox = strip % strips * TX;
    int oy = line % p.oh, n = line / p.oh;
    if (k >= p.k || n >= p.n)
        return;
    int c = k / (p.k / p.c), left = ox * SX - p.left;

    float sum[TX];
    [[unroll]] for (int j = 0; j < TX; j++)
        sum[j] = 0.0;
    for (int ky = 0; ky < p.kh; ky++) {
        int iy = oy * p.stride_h - p.top + ky * p.dilation_h;
        if (uint(iy) >= uint(p.h))
            continue;
        int at = ((n * p.h + iy) * p.w + left) * p.c + c;
        float window[WINDOW], weight[KW];
        [[unroll]] for (int i = 0; i < WINDOW; i++) {
            window[i] = 0.0;
            if (uint(left + i) < uint(p.w))
                window[i] = x.v[at + i * p.c];
        }
        [[unroll]] for (int kx = 0; kx < KW; kx++)
            weight[kx] = w.v[(ky * KW + kx) * p.k + k];
        [[unroll]] for (int j = 0; j < TX; j++)
            [[unroll]] for (int kx = 0; kx < KW; kx++)
                sum[j] = fma(window[j * SX + kx * DX], weight[kx], sum[j]);
    }
    [[unroll]] for (int j = 0; j < TX; j++)
        if (ox + j < p.ow)
            y.v[(line * p.ow + ox + j) * p.k + k] = sum[j];
}
