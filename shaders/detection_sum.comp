#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lib/reduce.glsl"
#include "detection_loss.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint GROUPS = 1; /* groups of detection_sum_part */
#include "lib/detection_sum.glsl"

void main()
{
    float loc_sum = 0.0, cls_sum = 0.0, matched = 0.0;

    for (uint i = gl_LocalInvocationID.x; i < GROUPS; i += 64) {
        loc_sum += part.v[3 * i];
        cls_sum += part.v[3 * i + 1];
        matched += part.v[3 * i + 2];
    }
    loc_sum = group_sum(loc_sum);
    cls_sum = group_sum(cls_sum);
    matched = group_sum(matched);
    if (gl_LocalInvocationID.x == 0) {
        float divisor = HAS_NORMALIZER      ? normalizer.v[0]
                        : p.by_matches != 0 ? max(matched, 1.0)
                                            : 1.0;
        float sum = loc_sum + cls_sum;
        float bad = isnan(sum) || isinf(sum) ? uintBitsToFloat(0x7fc00000u) : 0.0;

        factors.v[0] = p.loc_scale / divisor + bad;
        factors.v[1] = p.cls_scale / divisor + bad;
        loc_loss.v[0] = loc_sum * (p.loc_scale / divisor) + bad;
        cls_loss.v[0] = cls_sum * (p.cls_scale / divisor) + bad;
    }
}
