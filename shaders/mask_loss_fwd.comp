#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/log1p.glsl"
#include "lib/reduce.glsl"
#include "mask_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 logits;
    InI32 matches;
    InI32 classes; /* bits of floats if labels > 0 */
    InU32 masks;
    InF32 weights;
    InI32 place;
    InF32 part;
    OutF32 losses;
    OutF32 used;
    OutI32 channel;
    mask_loss_params p;
};
#include "lib/mask_loss.glsl"
#include "lib/target_class.glsl"
const int BACKGROUND = -1, UNKNOWN = -2; /* channels */
const int PADDING = -2;                  /* a match */

int channel_of(uint truth)
{
    if (p.c == 1)
        return 0;
    if (p.labels > 0)
        return target_class(truth * uint(p.labels), p.labels, p.c);
    int own = classes.v[truth];

    return own >= 0 && own < p.c ? own : UNKNOWN;
}

/* Returns the sum of the cross entropies of the lane's pixels. */
float lane_loss(uint row, uint truth, uint k)
{
    uint pixels = uint(p.h) * uint(p.w);
    float sum = 0.0;

    for (uint i = gl_LocalInvocationID.x; i < pixels; i += 64) {
        float x = logits.v[(row * pixels + i) * uint(p.c) + k];

        sum += max(x, 0.0) - x * target_of(row, truth, i / uint(p.w), i % uint(p.w)) +
               log1p(exp(-abs(x)));
    }
    return sum;
}

/* One row per group. */
void main()
{
    uint row = gl_WorkGroupID.x;

    do {
        int g = matches.v[row], k = g < PADDING || g >= p.m ? UNKNOWN : BACKGROUND;
        uint truth = row / uint(p.per) * uint(p.m) + uint(clamp(g, 0, p.m - 1));
        float w = weights.v[truth];

        if (g >= 0 && g < p.m && w != 0.0)
            k = channel_of(truth);
        if (k < 0)
            w = k == UNKNOWN ? uintBitsToFloat(0x7fc00000u) : 0.0;
        float loss = group_sum(k < 0 ? 0.0 : lane_loss(row, truth, uint(k)));

        if (gl_LocalInvocationID.x == 0) {
            losses.v[row] = k < 0 ? w : w * loss;
            used.v[row] = w;
            channel.v[row] = k;
        }
    } while (pm_next_row(row) < uint(p.rows));
}
