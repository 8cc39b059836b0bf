#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "mining.params.h"
layout(local_size_x_id = 0) in;
#include "lib/mining_push.glsl"
#include "lib/mining.glsl"
shared uint bins[MINING_BINS];

void main()
{
    Found f = find();

    for (uint i = gl_LocalInvocationID.x; i < MINING_BINS; i += 256)
        bins[i] = 0;
    barrier();
    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        uint key = mining_key(losses.v[row]);

        if (agrees(f, PASS, key, row))
            atomicAdd(bins[digit_of(PASS, key, row)], 1);
    }
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < MINING_BINS; i += 256)
        if (bins[i] > 0)
            atomicAdd(work.v[PASS * MINING_BINS + i], bins[i]);
}
