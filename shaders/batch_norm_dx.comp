#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
#define HAS_SUMS pm_has(8) /* if the statistics are the batch's */
#define WANT_DX pm_has(9)
#define WANT_DRESIDUAL pm_has(10)
#define HAS_COUNT pm_has(11) /* if padded rows have no gradient */
layout(push_constant, scalar) uniform Push {
    InT x;
    InT y;
    InOutT dy;
    InT residual;
    InT mean;
    InT rstd;
    InT gamma;
    InT beta;
    InT sums;
    InOutT dx;
    OutT dresidual;
    InI32 count;
    batch_norm_params p;
};
#define VALID p
#include "lib/valid_rows.glsl"
#include "lib/batch_norm_gradient.glsl"

void main()
{
    uint c = uint(p.c / VEC);

    for (uint i = pm_first(); i < uint(p.rows) * c; i += pm_stride()) {
        uint k = i % c;

        if (HAS_COUNT && !is_valid(i / c)) {
            if (WANT_DX)
                dx.v[i] = T(0);
            if (WANT_DRESIDUAL)
                dresidual.v[i] = T(0);
            continue;
        }
        T g = bn_gradient(i, k), without = g;

        if (HAS_SUMS)
            without -= (sums.v[k] + (x.v[i] - mean.v[k]) * rstd.v[k] * sums.v[c + k]) * p.inv_count;
        if (WANT_DX)
            dx.v[i] = bn_scale(k) * without;
        if (WANT_DRESIDUAL)
            dresidual.v[i] = g;
    }
}
