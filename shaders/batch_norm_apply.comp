#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
#define HAS_GAMMA pm_has(3)
#define HAS_BETA pm_has(4)
#define HAS_RESIDUAL pm_has(5)
#define HAS_COUNT pm_has(7) /* if padded rows become 0 */
layout(push_constant, scalar) uniform Push {
    InOutT x;
    InT mean;
    InT rstd;
    InT gamma;
    InT beta;
    InOutT residual;
    InOutT y;
    InI32 count;
    batch_norm_params p;
};
#define VALID p
#include "lib/valid_rows.glsl"
#include "lib/batch_norm.glsl"

void main()
{
    uint c = uint(p.c / VEC);

    for (uint i = pm_first(); i < uint(p.rows) * c; i += pm_stride()) {
        if (HAS_COUNT && !is_valid(i / c))
            y.v[i] = T(0);
        else
            y.v[i] = pm_act(ACT, p.slope, bn_z(i, i % c));
    }
}
