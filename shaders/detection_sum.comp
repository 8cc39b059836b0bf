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
    float divisor = p.divisor == DETECTION_BY_MATCHES ? max(matched, 1.0) : 1.0;

    if (HAS_NORMALIZER && p.divisor == DETECTION_BY_FIRST)
        divisor = intBitsToFloat(normalizer.v[0]);
    if (p.divisor == DETECTION_BY_COUNT) {
        uint images = uint(p.rows) / uint(p.anchors);
        float present = 0.0; /* small whole numbers: exact */

        for (uint i = gl_LocalInvocationID.x; i < images; i += 64)
            present += is_absent(i) ? 0.0 : 1.0;
        divisor = max(group_sum(present), 1.0) / float(images);
    }
    float sum = loc_sum + cls_sum;
    float bad = isnan(sum) || isinf(sum) ? uintBitsToFloat(0x7fc00000u) : 0.0;

    for (uint i = gl_LocalInvocationID.x; i < uint(p.rows) / uint(p.anchors); i += 64) {
        factors.v[2 * i] = p.loc_scale / divisor * own_factor(i) + bad;
        factors.v[2 * i + 1] = p.cls_scale / divisor * own_factor(i) + bad;
    }
    if (gl_LocalInvocationID.x == 0) {
        loc_loss.v[0] = loc_sum * (p.loc_scale / divisor) + bad;
        cls_loss.v[0] = cls_sum * (p.cls_scale / divisor) + bad;
    }
}
