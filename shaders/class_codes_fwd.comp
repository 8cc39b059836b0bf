#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "detection_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InI32 matches;
    InI32 classes; /* bits of floats if labels > 0 */
    OutF32 y;
    class_codes_params p;
};
#include "lib/class_codes.glsl"

/* One row per lane. */
void main()
{
    uint codes = uint(p.codes);

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        int k = class_of(row);

        for (uint i = 0; i < codes; i++) {
            float code = 0.0;

            if (k >= 0)
                code = x.v[(row * uint(p.classes) + uint(k)) * codes + i];
            y.v[row * codes + i] = code;
        }
    }
}
