/* depthwise_bwd_filter: all taps of one channel per lane, over one of PARTS runs of output lines,
 * TX outputs along x at a time (lib/depthwise.glsl). Each part writes its own sums to t [part],
 * which conv2d_combine adds. A single part writes dw.
 *
 * Grid: x = lanes of channels, y = part. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/depthwise.glsl"

layout(local_size_x_id = 0) in;
#ifdef FIXED_TX
const int KH = FIXED_KH;
#else
layout(constant_id = 7) const int KH = 3;
#endif
layout(constant_id = 8) const int PARTS = 1;
layout(push_constant, scalar) uniform Push { InF32 x; InF32 dy; InOutF32 t; InOutF32 dw;
                                             uvec2 done; conv2d_params p; };

const int WINDOW = (TX - 1) * SX + (KW - 1) * DX + 1;

void main()
{
    int k = int(gl_GlobalInvocationID.x), part = int(gl_WorkGroupID.y);
    if (k >= p.k)
        return;
    int c = k / (p.k / p.c), lines = p.n * p.oh, chunk = (lines + PARTS - 1) / PARTS;
    int end = min((part + 1) * chunk, lines);

    float sum[KH * KW];
    [[unroll]] for (int i = 0; i < KH * KW; i++)
        sum[i] = 0.0;
    for (int line = part * chunk; line < end; line++)
        for (int ox = 0; ox < p.ow; ox += TX) {
            float g[TX];
            [[unroll]] for (int j = 0; j < TX; j++) {
                g[j] = 0.0;
                if (ox + j < p.ow)
                    g[j] = dy.v[(line * p.ow + ox + j) * p.k + k];
            }
            int left = ox * SX - p.left;
            [[unroll]] for (int ky = 0; ky < KH; ky++) {
                int iy = line % p.oh * p.stride_h - p.top + ky * p.dilation_h;
                int at = ((line / p.oh * p.h + iy) * p.w + left) * p.c + c;
                if (uint(iy) < uint(p.h)) {
                    float window[WINDOW];
                    [[unroll]] for (int i = 0; i < WINDOW; i++) {
                        window[i] = 0.0;
                        if (uint(left + i) < uint(p.w))
                            window[i] = x.v[at + i * p.c];
                    }
                    [[unroll]] for (int kx = 0; kx < KW; kx++)
                        [[unroll]] for (int j = 0; j < TX; j++)
                            sum[ky * KW + kx] = fma(window[j * SX + kx * DX], g[j],
                                                    sum[ky * KW + kx]);
                }
            }
        }

    bool add = PARTS == 1 && p.accumulate != 0;
    [[unroll]] for (int i = 0; i < KH * KW; i++) {
        int to = (part * KH * KW + i) * p.k + k;
        if (PARTS == 1)
            dw.v[to] = add ? dw.v[to] + sum[i] : sum[i];
        else
            t.v[to] = sum[i];
    }
}
