#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/step.glsl"
#include "mining.params.h"
layout(local_size_x_id = 0) in;
#include "lib/mining_push.glsl"

void main()
{
    uint count = (MINING_KEY_DIGITS + uint(p.index_digits)) * MINING_BINS;

    for (uint i = pm_first(); i < count; i += pm_stride())
        work.v[i] = 0;
}
