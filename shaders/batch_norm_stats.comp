#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT x;
    InOutT part; /* [chunk][2][c]: mean, sum of squared distances from it */
    OutF32 mean;
    OutF32 rstd;
    OutF32 var;
    batch_norm_stats_params p;
};

/* Sums of d = x - (the chunk's first row), so that a large mean does not cancel. */
void main()
{
    uint c = uint(p.c / VEC), length = uint((p.rows + p.chunks - 1) / p.chunks);

    for (uint i = pm_first(); i < uint(p.chunks) * c; i += pm_stride()) {
        uint chunk = i / c, channel = i % c, first = chunk * length;
        uint last = min(first + length, uint(p.rows));
        T sum = T(0), square = T(0);

        if (first >= last)
            continue;
        T shift = x.v[first * c + channel];
        for (uint row = first; row < last; row++) {
            T d = x.v[row * c + channel] - shift;

            sum += d;
            square += d * d;
        }
        float inv = 1.0 / float(last - first);
        part.v[chunk * 2 * c + channel] = shift + sum * inv;
        part.v[(chunk * 2 + 1) * c + channel] = max(square - sum * sum * inv, T(0));
    }
}
