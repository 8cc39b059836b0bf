#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/pool.glsl"
#include "pool.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InT x; OutT y; pool_params p; };

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
    uint c = uint(p.c / VEC), count = uint(p.n * p.oh * p.ow) * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint pixel = i / c;
        int ox = int(pixel % uint(p.ow)), row = int(pixel / uint(p.ow));
        int oy = row % p.oh, image = row / p.oh;
        int y0 = oy * p.stride_h - p.top, x0 = ox * p.stride_w - p.left;
        ivec2 ky = pm_taps(y0, p.kh, 1, p.h), kx = pm_taps(x0, p.kw, 1, p.w);
        T sum = T(0);

        for (int u = ky.x; u < ky.y; u++)
            for (int v = kx.x; v < kx.y; v++)
                sum += x.v[uint((image * p.h + y0 + u) * p.w + x0 + v) * c + i % c];
        y.v[i] = sum / cells(y0, x0);
    }
}
