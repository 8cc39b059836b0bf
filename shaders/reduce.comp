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

/* Sums of 32 terms first, then their sum, so that the error grows only with terms / 32. */
void main()
{
    for (uint i = pm_first(); i < uint(p.outputs); i += pm_stride()) {
        uint first = place_of(i, p.k, p.ks);
        float total = KIND == 0 ? 0.0 : x.v[first], part = 0.0, same = 0.0;
        uint taken = 0;

        for (int a = 0; a < p.r[0]; a++)
            for (int b = 0; b < p.r[1]; b++) {
                uint line = first + uint(a * p.rs[0] + b * p.rs[1]);

                for (int c = 0; c < p.r[2]; c++) {
                    float value = x.v[line + uint(c * p.rs[2])];

                    if (KIND == 0) {
                        part += value;
                        if ((++taken & 31u) == 0u) {
                            total += part;
                            part = 0.0;
                        }
                    } else {
                        same = value == total ? same + 1.0
                             : winner(value, total) == total ? same : 1.0;
                        total = winner(value, total);
                    }
                }
            }
        y.v[i] = KIND == 0 ? p.scale * (total + part) : total;
        if (WANT_TIES)
            ties.v[i] = same;
    }
}
