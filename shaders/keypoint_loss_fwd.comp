#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "keypoint_loss.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 logits;
    InF32 boxes;
    InI32 matches;
    InF32 keypoints;
    OutF32 losses;
    OutI32 target;
    OutF32 lse;
    OutF32 used; /* 1: the keypoint has a target */
    keypoint_loss_params p;
};
const int NONE = -1, UNKNOWN = -2; /* targets */
const int PADDING = -2;            /* a match */

/* Which of n equal parts of low..high has v. Twin of bin_of() in src/layers/keypoint_loss.c. */
int bin_of(float v, float low, float high, int n)
{
    precise float side = high - low, at = (v - low) * float(n);

    if (!(side > 0.0 && side <= 1e30 && v >= low && v <= high))
        return NONE;
    int k = min(int(at / side), n - 1);
    precise float edge = float(k) * side;

    for (; k > 0 && edge > at; edge = float(k) * side)
        k--;
    for (edge = float(k + 1) * side; k + 1 < n && edge <= at; edge = float(k + 1) * side)
        k++;
    return k;
}

/* The place of keypoint k in the heatmap of a box. */
int target_of(uint row, uint k)
{
    int g = matches.v[row];
    uint truth = row / uint(p.per) * uint(p.m) + uint(clamp(g, 0, p.m - 1));
    uint at = 2 * (truth * uint(p.points) + k);
    int y = bin_of(keypoints.v[at], boxes.v[4 * row], boxes.v[4 * row + 2], p.h);
    int x = bin_of(keypoints.v[at + 1], boxes.v[4 * row + 1], boxes.v[4 * row + 3], p.w);

    if (g < PADDING || g >= p.m)
        return UNKNOWN;
    return g < 0 || y < 0 || x < 0 ? NONE : y * p.w + x;
}

/* One keypoint of a box per group. */
void main()
{
    uint number = gl_WorkGroupID.x, points = uint(p.points), places = uint(p.h) * uint(p.w);

    do {
        uint row = number / points, k = number % points, first = row * places * points + k;
        int at = target_of(row, k);
        float most = uintBitsToFloat(0xff800000u), sum = 0.0; /* -infinity */

        for (uint i = gl_LocalInvocationID.x; i < places && at >= 0; i += 64)
            most = max(most, logits.v[first + i * points]);
        most = group_max(most);
        for (uint i = gl_LocalInvocationID.x; i < places && at >= 0; i += 64)
            sum += exp(logits.v[first + i * points] - most);
        sum = log(group_sum(sum));

        if (gl_LocalInvocationID.x == 0) {
            float x = logits.v[first + uint(max(at, 0)) * points];
            float bad = at == UNKNOWN ? uintBitsToFloat(0x7fc00000u) : 0.0;

            losses.v[number] = at >= 0 ? most - x + sum : bad;
            target.v[number] = at;
            lse.v[number] = at >= 0 ? most + sum : 0.0;
            used.v[number] = at >= 0 ? 1.0 : 0.0;
        }
    } while (pm_next_row(number) < uint(p.rows) * points);
}
