/* bias_grad, second dispatch: db = (accumulate ? db : 0) + the sums of all chunks, in order. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "bias_grad.params.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int CHUNKS = 1;
layout(push_constant, scalar) uniform Push { InF32 dz; InOutF32 t; InOutF32 db;
                                             bias_grad_params p; };

void main()
{
    int channel = int(gl_GlobalInvocationID.x);
    if (channel >= p.channels)
        return;
    float sum = 0.0;

    for (int chunk = 0; chunk < CHUNKS; chunk++)
        sum += t.v[chunk * p.channels + channel];
    db.v[channel] = p.accumulate != 0 ? db.v[channel] + sum : sum;
}
