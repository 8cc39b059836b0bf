/* Finds the weights of a square of transpose_weights. */
#ifndef PM_TRANSPOSE_WEIGHTS_GLSL
#define PM_TRANSPOSE_WEIGHTS_GLSL

#include "buffers.glsl"
#include "../transpose_weights.params.h"

layout(push_constant, scalar) uniform Push { InF32 w; InU32x4 table; OutF32 t;
                                             transpose_weights_params p; };

/* A square: its first elements in w and t, and how many elements it has along c and along k. */
struct square {
    uint from, to; /* w.v[from + c * all_k + k], t.v[to + k * all_c + c] */
    uint all_c, all_k, count_c, count_k;
};

/* Number of this workgroup's square; the whole workgroup returns if it is too large. */
uint square_number()
{
    return gl_WorkGroupID.y * 65535u + gl_WorkGroupID.x;
}

square square_of(uint number)
{
    uint low = 0u, high = uint(p.weights);

    while (high - low > 1u) {
        uint middle = (low + high) / 2u;

        if (table.v[2u * middle].x <= number)
            low = middle;
        else
            high = middle;
    }
    uvec4 first = table.v[2u * low];
    uvec2 all = table.v[2u * low + 1u].xy;
    uint n = TRANSPOSE_SQUARE, across = (all.y + n - 1u) / n, down = (all.x + n - 1u) / n;
    uint i = number - first.x, tap = i / (across * down), place = i % (across * down);
    uint c = place / across * n, k = place % across * n, start = tap * all.x * all.y;

    return square(first.y + start + c * all.y + k, first.z + start + k * all.x + c, all.x, all.y,
                  min(all.x - c, n), min(all.y - k, n));
}

#endif
