#version 450
#extension GL_GOOGLE_include_directive : require
/* batch_norm_valid_sums is built from this file with VALID_ROWS: then only some rows count. */
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
#ifdef VALID_ROWS
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer WideParams {
    batch_norm_valid_sums_params p;
};
#define VALID at.p
#define SLOPE at.p.slope
#endif
layout(push_constant, scalar) uniform Push {
    InT x;
    InT y;
    InT dy;
    InT residual;
    InT mean;
    InT rstd;
    InT gamma;
    InT beta;
#ifdef VALID_ROWS
    InI32 count;
#endif
    InOutT part; /* [chunk][2][c]: sums of g and of g (x - mean) r */
    OutF32 sums;
    InOutF32 dbeta;
    InOutF32 dgamma;
#ifdef VALID_ROWS
    WideParams at;
#else
    uvec2 done;
    batch_norm_sums_params p;
#endif
};
#include "lib/batch_norm_gradient.glsl"
#ifdef VALID_ROWS
#include "lib/valid_rows.glsl"
#endif

void main()
{
#ifdef VALID_ROWS
    uint c = uint(at.p.c / VEC), length = uint(at.p.chunk);
    uint chunks = uint(at.p.examples) * valid_chunks(length);

    for (uint i = pm_first(); i < chunks * c; i += pm_stride()) {
        uint chunk = i / c, k = i % c;
        uvec2 rows = valid_chunk(chunk, length);
        uint first = rows.x, last = rows.y;
#else
    uint c = uint(p.c / VEC), length = uint((p.rows + p.chunks - 1) / p.chunks);

    for (uint i = pm_first(); i < uint(p.chunks) * c; i += pm_stride()) {
        uint chunk = i / c, k = i % c, first = chunk * length;
        uint last = min(first + length, uint(p.rows));
#endif
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
