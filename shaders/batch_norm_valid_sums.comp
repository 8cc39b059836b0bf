#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer WideParams {
    batch_norm_valid_sums_params p;
};
layout(push_constant, scalar) uniform Push {
    InT x;
    InT y;
    InT dy;
    InT residual;
    InT mean;
    InT rstd;
    InT gamma;
    InT beta;
    InI32 count;
    InOutT part; /* [chunk][2][c]: sums of g and of g (x - mean) r */
    OutF32 sums;
    InOutF32 dbeta;
    InOutF32 dgamma;
    WideParams at;
};
#define VALID at.p
#define SLOPE at.p.slope
#include "lib/valid_rows.glsl"
#include "lib/batch_norm_gradient.glsl"

void main()
{
    uint c = uint(at.p.c / VEC), length = uint(at.p.chunk);
    uint chunks = uint(at.p.examples) * valid_chunks(length);

    for (uint i = pm_first(); i < chunks * c; i += pm_stride()) {
        uint chunk = i / c, k = i % c;
        uvec2 rows = valid_chunk(chunk, length);
        T sum = T(0), product = T(0), m = mean.v[k];

        for (uint row = rows.x; row < rows.y; row++) {
            T g = bn_gradient(row * c + k, k);

            sum += g;
            product += g * (x.v[row * c + k] - m);
        }
        part.v[chunk * 2 * c + k] = sum;
        part.v[(chunk * 2 + 1) * c + k] = product * rstd.v[k];
    }
}
