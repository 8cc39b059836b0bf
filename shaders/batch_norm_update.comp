#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "batch_norm_update.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 moments;
    InU32 flag;
    InU32x4 table;
    InOutF32 values;
    batch_norm_update_params p;
};

void main()
{
    if (flag.v[0] == 0)
        return;
    for (uint i = pm_first(); i < uint(p.chunks) * MOVING_CHUNK; i += pm_stride()) {
        uint row = i / MOVING_CHUNK * 2, k = i % MOVING_CHUNK;
        uvec4 at = table.v[row] + k, layer = table.v[row + 1];
        float rate = uintBitsToFloat(layer.y), factor = uintBitsToFloat(layer.z);

        if (k >= layer.x)
            continue;
        float variance = moments.v[at.y];
        if (variance < 0.0) /* of no values */
            continue;
        values.v[at.z] -= rate * (values.v[at.z] - moments.v[at.x]);
        values.v[at.w] -= rate * (values.v[at.w] - variance * factor);
    }
}
