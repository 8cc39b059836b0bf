#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/activation.glsl"
#include "add.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int ACT = 0;
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

        if (ACT != PM_ACT_NONE)
            g *= pm_act_slope(ACT, p.slope, y.v[i]);
        if ((p.want & 1) != 0)
            dfirst.v[i] = g;
        if ((p.want & 2) != 0)
            dothers.v[i] = p.scale * g;
    }
}
