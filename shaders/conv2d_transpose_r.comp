/* conv2d_bwd_data, first dispatch with structure R unless p.transposed is set:
 * t [tap][k][c / groups] = w [tap][c / groups][k]. A lane copies 16 neighbours along k of one c.
 * Its reads share a cache line, and the lanes' writes are contiguous. There is no barrier, because
 * barriers are expensive on drivers that run on the CPU.
 *
 * Grid: x = lanes along c, y = 16 along k, z = tap. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 dy; InF32 w; OutF32 t; OutF32 dx;
                                             OutF32 moments; conv2d_params p; };

void main()
{
    int cg = p.c / p.groups, c = int(gl_GlobalInvocationID.x), k = int(gl_WorkGroupID.y) * 16;
    int tap = int(gl_WorkGroupID.z) * cg * p.k;

    if (c >= cg)
        return;
    if (k + 16 <= p.k)
        [[unroll]] for (int i = 0; i < 16; i++)
            t.v[tap + (k + i) * cg + c] = w.v[tap + c * p.k + k + i];
    else
        for (int i = k; i < p.k; i++)
            t.v[tap + i * cg + c] = w.v[tap + c * p.k + i];
}
