/* conv2d_bwd_data, first dispatch unless p.transposed is set: t [tap][k][c / groups] =
 * w [tap][c / groups][k]. It copies squares of 16 x 16 through shared memory, so that both reads
 * and writes are contiguous.
 *
 * Grid: x = square of k, y = square of c, z = tap. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x = 16, local_size_y = 16) in;
layout(push_constant, scalar) uniform Push { InF32 dy; InF32 w; OutF32 t; OutF32 dx;
                                             OutF32 moments; conv2d_params p; };
shared float square[16 * 17];

void main()
{
    int cg = p.c / p.groups, x = int(gl_LocalInvocationID.x), y = int(gl_LocalInvocationID.y);
    int k = int(gl_WorkGroupID.x) * 16, c = int(gl_WorkGroupID.y) * 16;
    int tap = int(gl_WorkGroupID.z) * cg * p.k;

    if (k + x < p.k && c + y < cg)
        square[y * 17 + x] = w.v[tap + (c + y) * p.k + k + x];
    barrier();
    if (k + y < p.k && c + x < cg)
        t.v[tap + (k + y) * cg + c + x] = square[x * 17 + y];
}
