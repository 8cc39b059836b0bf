#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/binary.glsl"
#include "binary.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int KIND = 0;
layout(constant_id = 4) const int RANK = 6;
#include "lib/strided.glsl"
#define WANT_DA pm_has(3)
#define WANT_DB pm_has(4)
layout(push_constant, scalar) uniform Push {
    InT a; InT b; InT dy; OutT da; OutT db; binary_params p;
};

/* da and db are as large as y. */
void main()
{
    for (uint i = pm_first(); i < uint(p.count / VEC); i += pm_stride()) {
        T va = a.v[pm_at(i, p.d, p.a)], vb = b.v[pm_at(i, p.d, p.b)], g = dy.v[i];

        if (WANT_DA)
            da.v[i] = g * slope_a(KIND, va, vb);
        if (WANT_DB)
            db.v[i] = g * slope_b(KIND, va, vb);
    }
}
