#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "suppress.params.h"
layout(local_size_x_id = 0) in;
#include "lib/overlap.glsl"
#include "lib/suppress_push.glsl"
const uint LANES = 128, NONE = 0xffffffffu;
shared uvec2 best[LANES]; /* key, ~number */

/* The key of a score, 0 if it is NaN or not above the threshold. */
uint key_of(uint bits)
{
    uint magnitude = bits & 0x7fffffffu;
    uint limit = floatBitsToUint(p.score_threshold), below = limit & 0x7fffffffu;
    uint key = bits > 0x80000000u ? 0x80000000u - magnitude : 0x80000000u + magnitude;

    limit = limit > 0x80000000u ? 0x80000000u - below : 0x80000000u + below;
    return magnitude > 0x7f800000u || key <= limit ? 0 : key;
}

/* Returns the best candidate of a list, after the box `kept` has lowered the others' scores. work
 * has the current score of each candidate; each lane uses only its own. NaN: no candidate. */
uvec2 next(uint list, uint taken)
{
    uint lane = gl_LocalInvocationID.x, first = list * uint(p.n);
    BOX strong = box_at(list, min(taken, uint(p.n) - 1)); /* unused if there is none */
    uvec2 mine = uvec2(0);
    uint n = boxes_in(list);

    for (uint i = lane; i < n; i += LANES) {
        uint bits = taken == NONE ? floatBitsToUint(scores.v[score_at(list, i)])
                                  : work.v[first + i];

        if (i == taken)
            bits = NONE;
        if (taken != NONE && key_of(bits) != 0) {
            float inner, joined;

            box_overlap(strong, box_at(list, i), inner, joined);
            float iou = inner > 0.0 ? inner / joined : 0.0;

            bits = quotient_above(inner, joined, p.iou_threshold)
                       ? 0u : floatBitsToUint(uintBitsToFloat(bits) * exp(p.decay * iou * iou));
        }
        work.v[first + i] = bits;
        uint key = key_of(bits);
        if (key > mine.x)
            mine = uvec2(key, ~i);
    }
    best[lane] = mine;
    barrier();
    for (uint width = LANES / 2; width > 0; width /= 2) {
        if (lane < width) {
            uvec2 a = best[lane], b = best[lane + width];

            if (b.x > a.x || (b.x == a.x && b.y > a.y))
                best[lane] = b;
        }
        barrier();
    }
    mine = best[0];
    barrier();
    return mine;
}

void main()
{
    uint list = gl_WorkGroupID.x;

    do {
        uint first = list * uint(p.most), taken = NONE, count = 0;

        for (; count < uint(p.most); count++) {
            uvec2 found = next(list, taken);

            if (found.x == 0)
                break;
            taken = ~found.y;
            if (gl_LocalInvocationID.x == 0)
                kept.v[first + count] = int(taken);
            if (taken % LANES == gl_LocalInvocationID.x)
                kept_scores.v[first + count] =
                    uintBitsToFloat(work.v[list * uint(p.n) + min(taken, uint(p.n) - 1)]);
        }
        for (uint k = count + gl_LocalInvocationID.x; k < uint(p.most); k += LANES) {
            kept.v[first + k] = -1;
            kept_scores.v[first + k] = 0.0;
        }
    } while (pm_next_row(list) < uint(p.lists));
}
