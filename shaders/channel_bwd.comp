#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "channel.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int KIND = 0;
#define WANT_DX pm_has(3)
#define WANT_TERMS pm_has(4) /* whose sum is gamma's gradient */
layout(push_constant, scalar) uniform Push {
    InT x;
    InT gamma;
    InT dy;
    OutT dx;
    OutT terms;
    channel_params p;
};

/* Returns the factor of dy; for prelu it is gamma if x <= 0. */
float factor(float value, float g)
{
    return KIND == 0 && value > 0.0 ? 1.0 : g;
}

vec4 factor(vec4 value, vec4 g)
{
    return vec4(factor(value.x, g.x), factor(value.y, g.y),
                factor(value.z, g.z), factor(value.w, g.w));
}

void main()
{
    uint k = uint(p.k / VEC);

    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride()) {
        T value = x.v[i], g = dy.v[i];

        if (WANT_DX)
            dx.v[i] = g * factor(value, gamma.v[i % k]);
        if (WANT_TERMS)
            terms.v[i] = g * (KIND == 0 ? min(value, T(0)) : value);
    }
}
