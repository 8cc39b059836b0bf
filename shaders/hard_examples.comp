#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/reduce.glsl"
#include "hard_examples.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint MARK = 0; /* 0: clear kept; 1: mark the anchors that count */
layout(push_constant, scalar) uniform Push {
    InI32 chosen;
    InI32 matches;
    OutF32 kept;
    OutF32 positives;
    OutF32 negatives;
    hard_examples_params p;
};
shared uint unmatched[64];

/* The anchor in place j of an image's list; -1 after its end. */
int chosen_at(uint image, uint j)
{
    return j < uint(p.most) ? chosen.v[image * uint(p.most) + j] : -1;
}

int match_of(uint image, int anchor)
{
    return anchor < 0 ? -2 : matches.v[image * uint(p.anchors) + uint(anchor)];
}

/* The matched anchors among the chosen ones of an image. */
float matched_of(uint image)
{
    float matched = 0.0;

    for (uint j = gl_LocalInvocationID.x; j < uint(p.most); j += 64)
        matched += match_of(image, chosen_at(image, j)) >= 0 ? 1.0 : 0.0;
    return group_sum(matched);
}

/* The most unmatched anchors of an image. */
uint budget_of(float matched)
{
    float share = p.ratio * matched, most = float(1 << 30);

    return uint(max(p.min_negatives, share < most ? int(share) : 1 << 30));
}

/* One workgroup per image; 64 places of the list at a time, one per lane. */
void mark(uint image)
{
    float matched = matched_of(image), kept_negatives = 0.0;
    uint lane = gl_LocalInvocationID.x, budget = budget_of(matched), before = 0;

    for (uint base = 0; base < uint(p.most); base += 64) {
        int anchor = chosen_at(image, base + lane), g = match_of(image, anchor);
        uint count = before;

        barrier();
        unmatched[lane] = anchor >= 0 && g == -1 ? 1 : 0;
        barrier();
        for (uint i = 0; i < 64; i++) {
            count += i <= lane ? unmatched[i] : 0;
            before += unmatched[i];
        }
        if (anchor >= 0 && (p.ratio == 0.0 || g >= 0 || count <= budget)) {
            kept.v[image * uint(p.anchors) + uint(anchor)] = 1.0;
            kept_negatives += g == -1 ? 1.0 : 0.0;
        }
    }
    kept_negatives = group_sum(kept_negatives);
    if (lane == 0) {
        positives.v[image] = matched;
        negatives.v[image] = kept_negatives;
    }
}

void main()
{
    uint count = uint(p.images) * uint(p.anchors);

    for (uint i = pm_first(); MARK == 0 && i < count; i += pm_stride())
        kept.v[i] = 0.0;
    for (uint image = gl_WorkGroupID.x; MARK == 1 && image < uint(p.images);
         image += gl_NumWorkGroups.x)
        mark(image);
}
