/* transpose_weights: a workgroup copies a square through shared memory, so that both reads and
 * writes are contiguous.
 *
 * Grid: x + 65535 * y = square. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/transpose_weights.glsl"

const uint LINES = 8; /* written at a time */
layout(local_size_x = TRANSPOSE_SQUARE, local_size_y = 8) in;
shared float tile[TRANSPOSE_SQUARE * (TRANSPOSE_SQUARE + 1)];

void main()
{
    square s = square_of(min(square_number(), uint(p.squares) - 1u));
    if (square_number() >= uint(p.squares))
        s.count_c = s.count_k = 0u; /* no return: all workgroups reach the barrier */
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;

    for (uint c = y; c < s.count_c; c += LINES)
        if (x < s.count_k)
            tile[c * (TRANSPOSE_SQUARE + 1) + x] = w.v[s.from + c * s.all_k + x];
    barrier();
    for (uint k = y; k < s.count_k; k += LINES)
        if (x < s.count_c)
            t.v[s.to + k * s.all_c + x] = tile[x * (TRANSPOSE_SQUARE + 1) + k];
}
