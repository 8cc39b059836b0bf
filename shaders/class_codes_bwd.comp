#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "detection_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 dy;
    InI32 matches;
    InI32 classes; /* bits of floats if labels > 0 */
    OutF32 dx;
    class_codes_params p;
};
#include "lib/class_codes.glsl"

/* One class of a row per lane. */
void main()
{
    uint codes = uint(p.codes), count = uint(p.rows) * uint(p.classes);

    for (uint at = pm_first(); at < count; at += pm_stride()) {
        uint row = at / uint(p.classes);
        bool is_class = class_of(row) == int(at % uint(p.classes));

        for (uint i = 0; i < codes; i++)
            dx.v[at * codes + i] = is_class ? dy.v[row * codes + i] : 0.0;
    }
}
