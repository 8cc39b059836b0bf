#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "channel.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int KIND = 0; /* kinds of src/layers/channel.c */
#define HAS_GAMMA pm_has(1)
#define HAS_BETA pm_has(2)
layout(push_constant, scalar) uniform Push {
    InOutT x; InT gamma; InT beta; InOutT y; channel_params p;
};

float rectify(float value, float g)
{
    return value > 0.0 ? value : g * value;
}

vec4 rectify(vec4 value, vec4 g)
{
    return vec4(rectify(value.x, g.x), rectify(value.y, g.y), rectify(value.z, g.z),
                rectify(value.w, g.w));
}

void main()
{
    uint k = uint(p.k / VEC);

    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride()) {
        T value = x.v[i];

        if (HAS_GAMMA)
            value = KIND == 0 ? rectify(value, gamma.v[i % k]) : value * gamma.v[i % k];
        if (HAS_BETA)
            value += beta.v[i % k];
        y.v[i] = value;
    }
}
