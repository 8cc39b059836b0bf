/* bias_grad, first of two dispatches: t [chunks][channels] = sums over CHUNK rows each. Workgroups
 * are gl_WorkGroupSize.x lanes wide and have as many lines as fit. Line l adds rows l, l + lines,
 * ..., and the lines' sums are added in order. bias_grad_combine.comp adds the chunks. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "bias_grad.params.h"

layout(local_size_x_id = 0, local_size_y_id = 1) in;
layout(constant_id = 3) const int CHUNK = 256;
layout(push_constant, scalar) uniform Push { InF32 dz; InOutF32 t; InOutF32 db;
                                             bias_grad_params p; };
shared float line_sum[256];

void main()
{
    int wide = int(gl_WorkGroupSize.x), lines = int(gl_WorkGroupSize.y);
    int lane = int(gl_LocalInvocationID.x), line = int(gl_LocalInvocationID.y);
    int channel = int(gl_WorkGroupID.x) * wide + lane, chunk = int(gl_WorkGroupID.y);
    int end = min((chunk + 1) * CHUNK, p.rows);
    float sum = 0.0;

    if (channel < p.channels)
        for (int row = chunk * CHUNK + line; row < end; row += lines)
            sum += dz.v[row * p.channels + channel];
    line_sum[line * wide + lane] = sum;
    barrier();
    if (line == 0 && channel < p.channels) {
        for (int l = 1; l < lines; l++)
            sum += line_sum[l * wide + lane];
        t.v[chunk * p.channels + channel] = sum;
    }
}
