#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "add.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int ACT = 0;
layout(push_constant, scalar) uniform Push {
    InOutT a;
    InOutT b;
    InT c;
    InT d;
    InT e;
    InT f;
    InT g;
    InT h;
    InOutT y;
    add_params p;
};

void main()
{
    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride()) {
        T others = b.v[i];

        if (pm_has(2))
            others += c.v[i];
        if (pm_has(3))
            others += d.v[i];
        if (pm_has(4))
            others += e.v[i];
        if (pm_has(5))
            others += f.v[i];
        if (pm_has(6))
            others += g.v[i];
        if (pm_has(7))
            others += h.v[i];
        y.v[i] = pm_act(ACT, p.slope, a.v[i] + p.scale * others);
    }
}
