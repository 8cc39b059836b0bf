#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "suppress.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 scores;
    InI32 kept;
    InF32 kept_scores;
    OutF32 entry_scores;
    OutI32 entry_classes;
    suppress_classes_params p;
};

uint key_of(float score)
{
    uint bits = floatBitsToUint(score), magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return 0;
    return bits > 0x80000000u ? 0x80000000u - magnitude : 0x80000000u + magnitude;
}

/* The best classes of a kept box in the order of their scores; equal scores by class. */
void main()
{
    uint most = uint(p.most), each = uint(p.each), classes = uint(p.classes);

    for (uint i = pm_first(); i < uint(p.images) * most; i += pm_stride()) {
        int anchor = kept.v[i];
        uint row = (i / most * uint(p.n) + uint(max(anchor, 0))) * classes;
        uint last = 0xffffffffu, at = 0, limit = key_of(p.score_threshold);

        for (uint j = 0; j < each; j++) {
            uint best = 0, place = 0;

            for (uint k = 0; k < classes; k++) {
                uint key = key_of(scores.v[row + k]);

                if (key > best && (key < last || (key == last && j > 0 && k > at)))
                    best = key, place = k;
            }
            bool has = anchor >= 0 && best > limit;

            has = has || (anchor >= 0 && j == 0);
            entry_classes.v[i * each + j] = has ? int(place) : -1;
            entry_scores.v[i * each + j] = !has ? 0.0 : j == 0 ? kept_scores.v[i]
                                                               : scores.v[row + place];
            last = best, at = place;
        }
    }
}
