#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "suppress.params.h"
layout(local_size_x_id = 0) in;
#define HAS_CLASSES pm_has(3) /* of each entry; else class = entry / most */
#ifndef ROTATED
#define HAS_WINDOWS pm_has(4) /* of each image; else it is 0, 0, 1, 1 */
#endif
layout(push_constant, scalar) uniform Push {
    InF32 boxes;
    InI32 kept;
    InF32 entry_scores;
    InI32 entry_classes;
#ifndef ROTATED
    InF32 windows;
#endif
    OutF32 y;
    OutF32 y_scores;
    OutI32 y_classes;
    OutI32 y_count;
    OutI32 y_anchors;
    suppress_merge_params p;
};
#include "lib/select.glsl"
#ifdef ROTATED
const uint NUMBERS = 5;
#else
const uint NUMBERS = 4;
#endif
uint image;

uint anchor_of(uint entry)
{
    return uint(kept.v[(image * uint(p.entries) + entry) / uint(p.each)]);
}

#ifdef ROTATED
/* Index of the first number of an entry's box. */
uint box_of(uint entry)
{
    uint at = image * uint(p.n) + anchor_of(entry);

    return 5 * (at * uint(p.boxes) + (p.boxes > 1 ? entry / uint(p.most) : 0));
}

bool has_area(uint entry)
{
    uint at = box_of(entry);

    return boxes.v[at + 2] > 0.0 && boxes.v[at + 3] > 0.0;
}

void put_box(uint at, uint entry)
{
    uint from = box_of(entry);

    [[dont_unroll]] for (uint i = 0; i < 5; i++)
        y.v[5 * at + i] = boxes.v[from + i];
}
#else
vec4 window;

vec4 clipped(uint entry)
{
    uint at = image * uint(p.n) + anchor_of(entry);

    at = 4 * (at * uint(p.boxes) + (p.boxes > 1 ? entry / uint(p.most) : 0));
    vec4 b = vec4(boxes.v[at], boxes.v[at + 1], boxes.v[at + 2], boxes.v[at + 3]);

    /* Selected, because min and max of a NaN are undefined: a NaN becomes the upper limit. */
    b = mix(window.zwzw, b, lessThan(b, window.zwzw));
    return mix(window.xyxy, b, greaterThan(b, window.xyxy));
}

bool has_area(uint entry)
{
    vec4 b = clipped(entry);

    return b.z > b.x && b.w > b.y;
}

void put_box(uint at, uint entry)
{
    vec4 b = clipped(entry);

    if (HAS_WINDOWS && p.change_frame != 0)
        b = (b - window.xyxy) / (window.zwzw - window.xyxy);
    /* Unrolled, NVIDIA's compiler in Mesa 26.1 finds no registers for Pascal. */
    [[dont_unroll]] for (uint i = 0; i < 4; i++)
        y.v[4 * at + i] = b[i];
}
#endif

/* Entries are absent, or their box is empty in the window, or they count by their score. */
uint candidate_key(uint entry)
{
    uint at = image * uint(p.entries) + entry;

    if (kept.v[at / uint(p.each)] < 0 || (HAS_CLASSES && entry_classes.v[at] < 0))
        return 0;
    if (!has_area(entry))
        return 0;
    return score_key(floatBitsToUint(entry_scores.v[at]));
}

void put(uint at, uint entry)
{
    put_box(at, entry);
    y_scores.v[at] = entry_scores.v[image * uint(p.entries) + entry];
    y_classes.v[at] = HAS_CLASSES ? entry_classes.v[image * uint(p.entries) + entry]
                                  : int(entry / uint(p.most));
    y_anchors.v[at] = int(anchor_of(entry));
}

void main()
{
    uint lane = gl_LocalInvocationID.x, outputs = uint(p.outputs);

    image = gl_WorkGroupID.x;
    do {
        uvec2 last = uvec2(0xffffffffu);
        uint m, count = 0;

#ifndef ROTATED
        window = vec4(0, 0, 1, 1);
        if (HAS_WINDOWS)
            window = vec4(windows.v[4 * image], windows.v[4 * image + 1],
                          windows.v[4 * image + 2], windows.v[4 * image + 3]);
#endif
        do {
            m = select_next(uint(p.entries), last);
            for (uint i = lane; i < min(m, outputs - count); i += LANES)
                put(image * outputs + count + i, select_at[i]);
            count = min(count + m, outputs);
            last = uvec2(select_key[SELECT - 1], ~select_at[SELECT - 1]);
            barrier();
        } while (m == SELECT && count < outputs);
        if (lane == 0)
            y_count.v[image] = int(count);
        for (uint i = count + lane; i < outputs; i += LANES) {
            for (uint k = 0; k < NUMBERS; k++)
                y.v[NUMBERS * (image * outputs + i) + k] = 0.0;
            y_scores.v[image * outputs + i] = 0.0;
            y_classes.v[image * outputs + i] = 0;
            y_anchors.v[image * outputs + i] = 0;
        }
    } while (pm_next_row(image) < uint(p.images));
}
