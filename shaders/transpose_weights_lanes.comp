/* transpose_weights without a barrier, because barriers are expensive on drivers that run on the
 * CPU. A lane copies the square's elements of one c. Its reads share a cache line, and the lanes'
 * writes are contiguous.
 *
 * Grid: x + 65535 * y = square. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/transpose_weights.glsl"

layout(local_size_x_id = 0) in;

void main()
{
    if (square_number() >= uint(p.squares))
        return;
    square s = square_of(square_number());

    for (uint c = gl_LocalInvocationID.x; c < s.count_c; c += gl_WorkGroupSize.x) {
        uint k = 0u;

        for (; k + 16u <= s.count_k; k += 16u)
            [[unroll]] for (uint i = 0u; i < 16u; i++)
                t.v[s.to + (k + i) * s.all_c + c] = w.v[s.from + c * s.all_k + k + i];
        for (; k < s.count_k; k++)
            t.v[s.to + k * s.all_c + c] = w.v[s.from + c * s.all_k + k];
    }
}
