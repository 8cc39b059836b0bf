#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "window.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 big; OutF32 box; window_params p; };

void main()
{
    uint count = uint(p.sn * p.sh * p.sw * p.sc);

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint k = i % uint(p.sc), rest = i / uint(p.sc);
        uint x = rest % uint(p.sw), y = rest / uint(p.sw) % uint(p.sh),
             n = rest / uint(p.sw * p.sh);

        box.v[i] = big.v[(((n + uint(p.n0)) * uint(p.h) + y + uint(p.h0)) * uint(p.w) + x +
                          uint(p.w0)) * uint(p.c) + k + uint(p.c0)];
    }
}
