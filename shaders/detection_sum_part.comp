#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/reduce.glsl"
#include "detection_loss.params.h"
layout(local_size_x_id = 0) in;
#include "lib/detection_sum.glsl"

void main()
{
    float loc_sum = 0.0, cls_sum = 0.0, matched = 0.0;

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        int g = matches.v[row];
        float factor = own_factor(row / uint(p.anchors));

        /* A NaN is never kept, but must not be lost. An infinite loss that is not kept does not
         * count. */
        if (!HAS_KEPT || kept.v[row] != 0.0 || isnan(loc.v[row]) || isnan(cls.v[row])) {
            loc_sum += loc.v[row] * factor;
            cls_sum += cls.v[row] * factor;
        }
        if (g >= 0 && g < p.m)
            matched += weights.v[row / uint(p.anchors) * uint(p.m) + uint(g)];
    }
    loc_sum = group_sum(loc_sum);
    cls_sum = group_sum(cls_sum);
    matched = group_sum(matched);
    if (gl_LocalInvocationID.x == 0) {
        part.v[3 * gl_WorkGroupID.x] = loc_sum;
        part.v[3 * gl_WorkGroupID.x + 1] = cls_sum;
        part.v[3 * gl_WorkGroupID.x + 2] = matched;
    }
}
