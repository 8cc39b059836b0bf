#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "suppress.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 scores; OutF32 best; suppress_best_params p; };

/* The largest score of a row; a NaN only if all are. Bits are compared, as elsewhere. */
void main()
{
    uint classes = uint(p.classes);

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        uint most = 0;
        float best_score = uintBitsToFloat(0x7fc00000u);

        for (uint k = 0; k < classes; k++) {
            float score = scores.v[row * classes + k];
            uint bits = floatBitsToUint(score), magnitude = bits & 0x7fffffffu;
            uint key = magnitude > 0x7f800000u ? 0
                       : bits > 0x80000000u    ? 0x80000000u - magnitude
                                               : 0x80000000u + magnitude;

            if (key > most)
                most = key, best_score = score;
        }
        best.v[row] = best_score;
    }
}
