#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT x;
    InI32 count;
    InOutT part; /* [chunk][2][c]: mean, sum of squared distances from it */
    OutF32 mean;
    OutF32 rstd;
    OutF32 var;
    batch_norm_valid_stats_params p;
};
#define VALID p
#include "lib/valid_rows.glsl"
#include "lib/moments.glsl"

void main()
{
    uint c = uint(p.c / VEC), chunks = uint(p.examples) * valid_chunks(uint(p.chunk));

    for (uint i = pm_first(); i < chunks * c; i += pm_stride()) {
        uint chunk = i / c;
        uvec2 rows = valid_chunk(chunk, uint(p.chunk));

        if (rows.x < rows.y) {
            row_moments(rows.x, rows.y, c, chunk, i % c);
        } else {
            part.v[chunk * 2 * c + i % c] = T(0);
            part.v[(chunk * 2 + 1) * c + i % c] = T(0);
        }
    }
}
