#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "hard_examples.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 loc;
    InF32 cls;
    OutF32 scores;
    hard_scores_params p;
};

void main()
{
    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        precise float score = cls.v[i] * p.cls + loc.v[i] * p.loc;
        scores.v[i] = score;
    }
}
