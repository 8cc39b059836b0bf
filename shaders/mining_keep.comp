#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/step.glsl"
#include "mining.params.h"
layout(local_size_x_id = 0) in;
#include "lib/mining_push.glsl"
#include "lib/mining.glsl"

void main()
{
    Found last = find();

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        float loss = losses.v[row];
        uint key = mining_key(loss);
        bool keeps = key > last.key || (key == last.key && row <= last.row);

        keeps = keeps && key != 0x80000000u; /* the key of 0 */
        mined.v[row] = !keeps ? 0.0 : HAS_WEIGHTS ? weights.v[row] : 1.0;
        mined_losses.v[row] = keeps ? loss : 0.0;
    }
}
