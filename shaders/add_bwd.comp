#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "add.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int ACT = 0;
#define HAS_Y pm_has(0) /* if there is an activation */
#define WANT_FIRST pm_has(2)
#define WANT_OTHERS pm_has(3)
layout(push_constant, scalar) uniform Push {
    InT y;
    InOutT dy;
    InOutT dfirst;
    OutT dothers;
    add_params p;
};

void main()
{
    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride()) {
        T g = dy.v[i];

        if (HAS_Y)
            g *= pm_act_slope(ACT, p.slope, y.v[i]);
        if (WANT_FIRST)
            dfirst.v[i] = g;
        if (WANT_OTHERS)
            dothers.v[i] = p.scale * g;
    }
}
