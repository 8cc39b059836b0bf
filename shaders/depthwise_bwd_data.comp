/* depthwise_bwd_data: TX elements of dx along x per lane (lib/depthwise.glsl).
 *
 * Element ix reads dy at ox = (ix + left - kx * DX) / SX if the division has no remainder. A strip
 * begins at a multiple of TX, and TX is a multiple of SX. So the taps that divide, and every tap's
 * place in the window, are known when the pipeline is created. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/depthwise.glsl"

layout(local_size_x_id = 0, local_size_y_id = 1) in;
#ifdef FIXED_TX
const int LEFT = FIXED_LEFT;
#else
layout(constant_id = 7) const int LEFT = 1; /* p.left */
#endif
layout(push_constant, scalar) uniform Push { InF32 dy; InF32 w; InOutF32 dx; conv2d_params p; };

/* The window begins BEFORE columns before column strip / SX; operands of / and % are positive. */
const int REACH = (KW - 1) * DX, BEFORE = (REACH + SX - 1) / SX;
const int WINDOW = (TX - 1 + LEFT) / SX + BEFORE + 1;

void main()
{
    int c = int(gl_GlobalInvocationID.x), strip = depthwise_strip();
    int strips = (p.w + TX - 1) / TX, line = strip / strips, ix = strip % strips * TX;
    int iy = line % p.h, n = line / p.h;
    if (c >= p.c || n >= p.n)
        return;
    int mult = p.k / p.c, left = ix / SX - BEFORE;

    float sum[TX];
    [[unroll]] for (int j = 0; j < TX; j++)
        sum[j] = 0.0;
    for (int ky = 0; ky < p.kh; ky++) {
        int oy = iy + p.top - ky * p.dilation_h;
        if (oy < 0 || oy % p.stride_h != 0 || oy / p.stride_h >= p.oh)
            continue;
        int at = ((n * p.oh + oy / p.stride_h) * p.ow + left) * p.k + c * mult;
        for (int m = 0; m < mult; m++) {
            float window[WINDOW], weight[KW];
            [[unroll]] for (int i = 0; i < WINDOW; i++) {
                window[i] = 0.0;
                if (uint(left + i) < uint(p.ow))
                    window[i] = dy.v[at + i * p.k + m];
            }
            [[unroll]] for (int kx = 0; kx < KW; kx++)
                weight[kx] = w.v[(ky * KW + kx) * p.k + c * mult + m];
            [[unroll]] for (int j = 0; j < TX; j++)
                [[unroll]] for (int kx = 0; kx < KW; kx++)
                    if ((j + LEFT + BEFORE * SX - kx * DX) % SX == 0)
                        sum[j] = fma(window[(j + LEFT + BEFORE * SX - kx * DX) / SX], weight[kx],
                                     sum[j]);
        }
    }
    int to = (line * p.w + ix) * p.c + c;
    if (p.accumulate != 0)
        [[unroll]] for (int j = 0; j < TX; j++)
            if (ix + j < p.w)
                sum[j] = dx.v[to + j * p.c] + sum[j];
    [[unroll]] for (int j = 0; j < TX; j++)
        if (ix + j < p.w)
            dx.v[to + j * p.c] = sum[j];
}
