#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "suppress.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 boxes; OutF32 y; rotated_prepare_params p; };
#include "lib/rotated_clip.h"
#include "lib/rotated_prepare.h"

/* One box per lane. */
void main()
{
    for (uint i = pm_first(); i < uint(p.rows); i += pm_stride()) {
        rotated r = rotated_prepare(boxes.v[5 * i], boxes.v[5 * i + 1], boxes.v[5 * i + 2],
                                    boxes.v[5 * i + 3], boxes.v[5 * i + 4]);

        y.v[8 * i] = r.y;
        y.v[8 * i + 1] = r.x;
        y.v[8 * i + 2] = r.h;
        y.v[8 * i + 3] = r.w;
        y.v[8 * i + 4] = r.c;
        y.v[8 * i + 5] = r.c_low;
        y.v[8 * i + 6] = r.s;
        y.v[8 * i + 7] = r.s_low;
    }
}
