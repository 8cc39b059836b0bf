#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "reduce.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int KIND = 0;
#define WANT_TIES pm_has(2) /* number of terms that equal the maximum or minimum */
layout(push_constant, scalar) uniform Push { InF32 x; OutF32 y; OutF32 ties; reduce_params p; };
#include "lib/reduction.glsl"
#include "lib/reduce.glsl"

/* One workgroup of 64 lanes per output. */
void main()
{
    uint lane = gl_LocalInvocationID.x, terms = uint(p.terms);

    uint i = gl_WorkGroupID.x;

    do {
        uint first = place_of(i, p.k, p.ks);
        float total = KIND == 0 ? 0.0 : x.v[first], same = 0.0;

        for (uint t = lane; t < terms; t += 64) {
            float value = x.v[first + place_of(t, p.r, p.rs)];

            total = KIND == 0 ? total + value : winner(value, total);
        }
        if (KIND == 0)
            total = p.scale * group_sum(total);
        else
            total = KIND == 1 ? group_max(total) : -group_max(-total);
        if (WANT_TIES) {
            for (uint t = lane; t < terms; t += 64)
                same += x.v[first + place_of(t, p.r, p.rs)] == total ? 1.0 : 0.0;
            same = group_sum(same);
        }
        if (lane == 0) {
            y.v[i] = total;
            if (WANT_TIES)
                ties.v[i] = same;
        }
    } while (pm_next_row(i) < uint(p.outputs));
}
