#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT x;
    InT y;
    InT dy;
    InT residual;
    InT mean;
    InT rstd;
    InT gamma;
    InT beta;
    InOutT part; /* [chunk][2][c]: sums of g and of g (x - mean) r */
    OutF32 sums;
    InOutF32 dbeta;
    InOutF32 dgamma;
    uvec2 done;
    batch_norm_sums_params p;
};
#include "lib/batch_norm_gradient.glsl"

void main()
{
    uint c = uint(p.c / VEC), length = uint((p.rows + p.chunks - 1) / p.chunks);

    for (uint i = pm_first(); i < uint(p.chunks) * c; i += pm_stride()) {
        uint chunk = i / c, k = i % c, first = chunk * length;
        uint last = min(first + length, uint(p.rows));
        T sum = T(0), product = T(0), m = mean.v[k];

        for (uint row = first; row < last; row++) {
            T g = bn_gradient(row * c + k, k);

            sum += g;
            product += g * (x.v[row * c + k] - m);
        }
        part.v[chunk * 2 * c + k] = sum;
        part.v[(chunk * 2 + 1) * c + k] = product * rstd.v[k];
    }
}
