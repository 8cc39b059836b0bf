#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/pool.glsl"
#include "pool.params.h"
#if VEC == 4
#define InIndex InI32x4
#define SAME(a, b) equal(a, ivec4(b))
#else
#define InIndex InI32
#define SAME(a, b) ((a) == (b))
#endif
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InIndex arg; InT dy; InOutT dx; pool_params p; };

void main()
{
    uint c = uint(p.c / VEC), count = uint(p.n * p.h * p.w) * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint pixel = i / c;
        int ix = int(pixel % uint(p.w)), row = int(pixel / uint(p.w));
        int iy = row % p.h, image = row / p.h, place = iy * p.w + ix;
        ivec2 wy = pm_windows(iy, p.top, (p.kh - 1) * p.dilation_h + 1, p.stride_h, p.oh);
        ivec2 wx = pm_windows(ix, p.left, (p.kw - 1) * p.dilation_w + 1, p.stride_w, p.ow);
        T sum = T(0);

        for (int oy = wy.x; oy < wy.y; oy++) {
            for (int ox = wx.x; ox < wx.y; ox++) {
                uint o = uint((image * p.oh + oy) * p.ow + ox) * c + i % c;
                sum += mix(T(0), dy.v[o], SAME(arg.v[o], place));
            }
        }
        dx.v[i] = p.accumulate != 0 ? dx.v[i] + sum : sum;
    }
}
