#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
/* y = x + a + b. Whether a is present is a constant, as it must be. Whether b is present is a
 * run-time value: the wrong way, which a test must find. */
struct optional_params { int count, has_b; };
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 a;
    InF32 b;
    OutF32 y;
    optional_params p;
};

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride())
        y.v[i] = x.v[i] + (pm_has(1) && p.count > 0 ? a.v[i] : 0.0) +
                 (p.has_b != 0 ? b.v[i] : 0.0);
}
