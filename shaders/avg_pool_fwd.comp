#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/pool.glsl"
#include "pool.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InT x; OutT y; pool_params p; };

void main()
{
    uint c = uint(p.c / VEC), count = uint(p.n * p.oh * p.ow) * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint pixel = i / c;
        int ox = int(pixel % uint(p.ow)), row = int(pixel / uint(p.ow));
        int oy = row % p.oh, image = row / p.oh;
        int y0 = oy * p.stride_h - p.top, x0 = ox * p.stride_w - p.left;
        ivec2 ky = pm_taps(y0, p.kh, p.h), kx = pm_taps(x0, p.kw, p.w);
        T sum = T(0);

        for (int u = ky.x; u < ky.y; u++)
            for (int v = kx.x; v < kx.y; v++)
                sum += x.v[uint((image * p.h + y0 + u) * p.w + x0 + v) * c + i % c];
        y.v[i] = sum / float((ky.y - ky.x) * (kx.y - kx.x));
    }
}
