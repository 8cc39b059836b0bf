#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "matmul.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const bool A_ACROSS = false;
layout(constant_id = 4) const bool B_ACROSS = false;
layout(push_constant, scalar) uniform Push { InF32 a; InF32 b; OutF32 y; matmul_params p; };

/* A workgroup of 8 x 8 lanes makes TILE x TILE values of y, 4 x 4 per lane, DEPTH terms at a time.
 * An extra column per line avoids conflicts of memory banks. */
const int TILE = 32, DEPTH = 16, EACH = 4;
shared float left[DEPTH][TILE + 1];
shared float right[DEPTH][TILE + 1];

float a_at(int z, int i, int l)
{
    if (i >= p.m || l >= p.k)
        return 0.0;
    return a.v[z * p.m * p.k + (A_ACROSS ? l * p.m + i : i * p.k + l)];
}

float b_at(int z, int l, int j)
{
    if (j >= p.n || l >= p.k)
        return 0.0;
    return b.v[z * p.k * p.n + (B_ACROSS ? j * p.k + l : l * p.n + j)];
}

void load(int z, int row, int column, int depth)
{
    int lane = int(gl_LocalInvocationID.x);

    for (int i = lane; i < TILE * DEPTH; i += 64) {
        /* The order makes neighbouring lanes read neighbouring memory. */
        int al = A_ACROSS ? i / TILE : i % DEPTH, ai = A_ACROSS ? i % TILE : i / DEPTH;
        int bl = B_ACROSS ? i % DEPTH : i / TILE, bj = B_ACROSS ? i / DEPTH : i % TILE;

        left[al][ai] = a_at(z, row + ai, depth + al);
        right[bl][bj] = b_at(z, depth + bl, column + bj);
    }
}

void main()
{
    int row = int(gl_WorkGroupID.y) * TILE, column = int(gl_WorkGroupID.x) * TILE;
    int li = int(gl_LocalInvocationID.x) / 8 * EACH, lj = int(gl_LocalInvocationID.x) % 8 * EACH;

    for (int z = int(gl_WorkGroupID.z); z < p.batch; z += int(gl_NumWorkGroups.z)) {
        vec4 sum[EACH] = { vec4(0), vec4(0), vec4(0), vec4(0) };

        for (int depth = 0; depth < p.k; depth += DEPTH) {
            barrier();
            load(z, row, column, depth);
            barrier();
            for (int l = 0; l < DEPTH; l++) {
                vec4 r = vec4(right[l][lj], right[l][lj + 1], right[l][lj + 2], right[l][lj + 3]);

                [[unroll]] for (int i = 0; i < EACH; i++)
                    sum[i] += left[l][li + i] * r;
            }
        }
        [[unroll]] for (int i = 0; i < EACH; i++)
            [[unroll]] for (int j = 0; j < EACH; j++)
                if (row + li + i < p.m && column + lj + j < p.n)
                    y.v[(z * p.m + row + li + i) * p.n + column + lj + j] = sum[i][j];
    }
}
