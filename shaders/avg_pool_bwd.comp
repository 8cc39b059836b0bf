#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/pool.glsl"
#include "pool.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InT dy; InOutT dx; pool_params p; };

/* Returns the divisor of the mean over the window at y0, x0. */
float cells(int y0, int x0)
{
    ivec2 ky = pm_taps(y0, p.kh, 1, p.h), kx = pm_taps(x0, p.kw, 1, p.w);

    if (p.count_pad != 0) {
        ky = ivec2(0, min(p.kh, p.h + p.bottom - y0));
        kx = ivec2(0, min(p.kw, p.w + p.right - x0));
    }
    return float((ky.y - ky.x) * (kx.y - kx.x));
}

void main()
{
    uint c = uint(p.c / VEC), count = uint(p.n * p.h * p.w) * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint pixel = i / c;
        int ix = int(pixel % uint(p.w)), row = int(pixel / uint(p.w));
        int iy = row % p.h, image = row / p.h;
        ivec2 wy = pm_windows(iy, p.top, p.kh, p.stride_h, p.oh);
        ivec2 wx = pm_windows(ix, p.left, p.kw, p.stride_w, p.ow);
        T sum = T(0);

        for (int oy = wy.x; oy < wy.y; oy++) {
            for (int ox = wx.x; ox < wx.y; ox++) {
                uint o = uint((image * p.oh + oy) * p.ow + ox) * c + i % c;
                sum += dy.v[o] *
                       (1.0 / cells(oy * p.stride_h - p.top, ox * p.stride_w - p.left));
            }
        }
        dx.v[i] = p.accumulate != 0 ? dx.v[i] + sum : sum;
    }
}
