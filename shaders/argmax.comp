#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "argmax.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InI32 x; OutI32 y; argmax_params p; };
#include "lib/argmax.glsl"

/* One row per lane. The floats are read as their bits. */
void main()
{
    uint k = uint(p.k);

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        int best = key_of(x.v[row * k]), at = 0;

        for (uint i = 1; i < k; i++) {
            int key = key_of(x.v[row * k + i]);

            at = key > best ? int(i) : at;
            best = max(key, best);
        }
        y.v[row] = at;
    }
}
