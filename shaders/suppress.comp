#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "suppress.params.h"
layout(local_size_x_id = 0) in;
#include "lib/overlap.glsl"
#include "lib/suppress_push.glsl"
#include "lib/select.glsl"
#ifndef ROTATED
shared vec4 boxes_of[SELECT];
#endif
shared uint gone[SELECT / 32]; /* a bit for each selected candidate */
shared uint count;             /* kept so far */
uint list;                     /* the list that the group works on */

uint candidate_key(uint i)
{
    uint key = score_key(floatBitsToUint(scores.v[score_at(list, i)]));

    return key > score_key(floatBitsToUint(p.score_threshold)) ? key : 0;
}

bool is_gone(uint i)
{
    return (gone[i / 32] >> (i % 32) & 1u) != 0;
}

/* The box of the i-th selected candidate. Prepared rotated boxes, 8 KiB, would exceed the shared
 * memory that every device has. */
BOX selected_box(uint i)
{
#ifdef ROTATED
    return box_at(list, min(select_at[i], uint(p.n) - 1));
#else
    return boxes_of[i];
#endif
}

/* The k-th kept box. The limit is for lavapipe (pm_next_row in lib/buffers.glsl). */
BOX kept_box(uint k)
{
    return box_at(list, min(uint(kept.v[list * uint(p.most) + k]), uint(p.n) - 1));
}

/* Loads the boxes of the m selected candidates and marks those that a kept box suppresses. */
void compare_with_kept(uint m)
{
    uint lane = gl_LocalInvocationID.x;

    if (lane < SELECT / 32)
        gone[lane] = 0;
    barrier();
    for (uint i = lane; i < m; i += LANES) {
        BOX box = box_at(list, select_at[i]);
        bool suppressed = false;

        for (uint k = 0; k < count && !suppressed; k++)
            suppressed = boxes_exceed(box, kept_box(min(k, count - 1)), p.iou_threshold);
#ifndef ROTATED
        boxes_of[i] = box;
#endif
        if (suppressed)
            atomicOr(gone[i / 32], 1u << (i % 32));
    }
    barrier();
}

/* Row i of select_words gets a bit for each later candidate that i would suppress. */
void compare_with_later(uint i, uint m)
{
    if (i >= m || is_gone(i))
        return;
    BOX own = selected_box(i);

    for (uint word = i / 32; word < SELECT / 32; word++) {
        uint bits = 0;

        for (uint j = max(i + 1, word * 32); j < min(m, word * 32 + 32); j++)
            if (!is_gone(j) && boxes_exceed(own, selected_box(j), p.iou_threshold))
                bits |= 1u << (j % 32);
        select_words[i * (SELECT / 32) + word] = bits;
    }
}

/* Keeps the best, then the best of those that it leaves, and so on. One lane does it. */
void keep(uint m)
{
    uint first = list * uint(p.most), n = count;

    for (uint i = 0; i < m && n < uint(p.most); i++) {
        if (is_gone(i))
            continue;
        kept.v[first + n] = int(select_at[i]);
        kept_scores.v[first + n] = scores.v[score_at(list, min(select_at[i], uint(p.n) - 1))];
        n++;
        for (uint word = i / 32; word < SELECT / 32; word++)
            gone[word] |= select_words[i * (SELECT / 32) + word];
    }
    count = n;
}

void main()
{
    uint lane = gl_LocalInvocationID.x;

    list = gl_WorkGroupID.x;
    do {
        uvec2 last = uvec2(0xffffffffu);
        uint n = boxes_in(list), m;

        if (lane == 0)
            count = 0;
        do {
            m = select_next(n, last);
            compare_with_kept(m);
            compare_with_later(lane, m);
            compare_with_later(SELECT - 1 - lane, m);
            barrier();
            if (lane == 0)
                keep(m);
            memoryBarrierBuffer();
            barrier();
            last = uvec2(select_key[SELECT - 1], ~select_at[SELECT - 1]);
        } while (m == SELECT && count < uint(p.most));
        for (uint k = count + lane; k < uint(p.most); k += LANES) {
            kept.v[list * uint(p.most) + k] = -1;
            kept_scores.v[list * uint(p.most) + k] = 0.0;
        }
        barrier();
    } while (pm_next_row(list) < uint(p.lists));
}
