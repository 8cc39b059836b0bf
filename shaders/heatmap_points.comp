#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "heatmap_points.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 boxes;
    InI32 count;
    OutF32 y;
    OutF32 scores;
    heatmap_points_params p;
};

float bin_centre(float low, float high, uint cell, int cells)
{
    return (float(cell) + 0.5) / float(cells) * (high - low) + low;
}

/* One keypoint of a box per group. */
void main()
{
    uint number = gl_WorkGroupID.x, points = uint(p.points), places = uint(p.h) * uint(p.w);

    do {
        uint row = number / points, first = row * places * points + number % points;
        bool valid = int(row % uint(p.per)) < count.v[row / uint(p.per)];
        float most = uintBitsToFloat(0xff800000u), sum = 0.0; /* -infinity */
        float place = float(places - 1); /* a whole number below 2^24 */

        for (uint i = gl_LocalInvocationID.x; i < places; i += 64)
            most = max(most, x.v[first + i * points]);
        most = group_max(most);
        for (uint i = gl_LocalInvocationID.x; i < places; i += 64) {
            float v = x.v[first + i * points], away = v - most;

            sum += isnan(away) ? away : exp(away); /* some drivers' exp(NaN) is infinity */
            place = v == most ? min(place, float(i)) : place;
        }
        sum = group_sum(sum);
        place = -group_max(-place);

        if (gl_LocalInvocationID.x == 0) {
            uint at = uint(place);
            float line = bin_centre(boxes.v[4 * row], boxes.v[4 * row + 2], at / uint(p.w), p.h);
            float column =
                bin_centre(boxes.v[4 * row + 1], boxes.v[4 * row + 3], at % uint(p.w), p.w);

            y.v[2 * number] = valid ? line : 0.0;
            y.v[2 * number + 1] = valid ? column : 0.0;
            scores.v[number] = valid ? 1.0 / sum : 0.0;
        }
    } while (pm_next_row(number) < uint(p.images) * uint(p.per) * points);
}
