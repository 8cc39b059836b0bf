#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "decode_boxes.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x1;
    InF32 x2;
    InF32 x3;
    InF32 x4;
    InF32 x5;
    InF32 x6;
    InF32 x7;
    InF32 anchors;
    OutF32 y;
    class_scores_params p;
};
#define LEVELS p
#include "lib/levels.glsl"
#ifdef ROTATED
#include "lib/rotated_clip.h"
#include "lib/rotated_prepare.h"
#endif

float logit(uint level, uint i)
{
    if (pm_has(6) && level == 7)
        return x7.v[i] * p.scale;
    if (pm_has(5) && level == 6)
        return x6.v[i] * p.scale;
    if (pm_has(4) && level == 5)
        return x5.v[i] * p.scale;
    if (pm_has(3) && level == 4)
        return x4.v[i] * p.scale;
    if (pm_has(2) && level == 3)
        return x3.v[i] * p.scale;
    if (pm_has(1) && level == 2)
        return x2.v[i] * p.scale;
    return x1.v[i] * p.scale;
}

bool is_pruned(uint anchor)
{
    if (!pm_has(7))
        return false;
#ifdef ROTATED
    uint at = 5 * anchor;
    rotated r = rotated_prepare(anchors.v[at], anchors.v[at + 1], anchors.v[at + 2],
                                anchors.v[at + 3], anchors.v[at + 4]);

    return !rotated_inside(r, p.width, CLASS_SCORES_BORDER);
#else
    uint at = 4 * anchor;

    return !(anchors.v[at] >= -CLASS_SCORES_BORDER && anchors.v[at + 1] >= -CLASS_SCORES_BORDER &&
             anchors.v[at + 2] <= 1.0 + CLASS_SCORES_BORDER &&
             anchors.v[at + 3] <= 1.0 + CLASS_SCORES_BORDER);
#endif
}

/* One anchor per lane. */
void main()
{
    uint columns = uint(p.columns), skip = uint(p.background), classes = columns - skip;

    for (uint row = pm_first(); row < uint(p.rows); row += pm_stride()) {
        LevelRow from = level_row(row);
        uint first = from.at * columns;
        float most = 0.0, sum = 1.0;
        bool pruned = is_pruned(from.anchor);

        if (p.converter == CLASS_SCORES_SOFTMAX) {
            most = logit(from.level, first);
            for (uint k = 1; k < columns; k++)
                most = max(most, logit(from.level, first + k));
            sum = 0.0;
            for (uint k = 0; k < columns; k++)
                sum += exp(logit(from.level, first + k) - most);
        }
        for (uint k = skip; k < columns; k++) {
            float x = logit(from.level, first + k);

            if (p.converter == CLASS_SCORES_SOFTMAX)
                x = exp(x - most) / sum;
            else if (p.converter == CLASS_SCORES_SIGMOID)
                x = 1.0 / (1.0 + exp(-x));
            y.v[row * classes + k - skip] = pruned ? 0.0 : x;
        }
    }
}
