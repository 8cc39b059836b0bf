#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "window.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 box; OutF32 big; window_params p; };

void main()
{
    uint count = uint(p.n * p.h * p.w * p.c);

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        int k = int(i % uint(p.c)) - p.c0;
        uint rest = i / uint(p.c);
        int x = int(rest % uint(p.w)) - p.w0, y = int(rest / uint(p.w) % uint(p.h)) - p.h0;
        int n = int(rest / uint(p.w * p.h)) - p.n0;
        float value = p.fill;

        if (n >= 0 && n < p.sn && y >= 0 && y < p.sh && x >= 0 && x < p.sw && k >= 0 && k < p.sc)
            value = box.v[((n * p.sh + y) * p.sw + x) * p.sc + k];
        big.v[i] = value;
    }
}
